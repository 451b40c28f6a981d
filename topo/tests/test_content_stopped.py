"""Tests in which controller, switch or agent is stopped for seconds and continues: only a stopped agent is reported as
gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from topo.plan.network import LOAD_CLIENT
from topo.testbed.processes import Process, await_true
from topo.tests import answering, needs
from topo.tests.answering import AnsweringLab
from topo.tests.test_content_life import A1, A2, EACH, LONG, RECOVERED_S, assert_right, await_agents, shop

pytestmark = needs.AGENTS
lab = pytest.fixture(scope="module")(answering.running)

STOPPED_S = 4.0


@contextmanager
def stopped(process: Process) -> Generator[None]:
    """Stop the process (SIGSTOP) while the context is active."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process.pid, signal.SIGCONT)


def events(lab: AnsweringLab) -> list[Mapping[str, Any]]:
    return lab.controller.ask(command="events")


def repeated_syns(lab: AnsweringLab) -> int:
    """Return the number of SYNs that the load's client has repeated."""
    printed = lab.call(LOAD_CLIENT.name, "nstat", "-asz", "TcpExtTCPSynRetrans")
    return int(float(printed.split()[-2]))


def of_kinds(lab: AnsweringLab, since: int, *kinds: str) -> list[str]:
    return [event["text"] for event in events(lab)[since:] if event["kind"] in kinds]


def test_a_stopped_controller_blames_nothing(lab: AnsweringLab) -> None:
    await_agents(lab, {A1.name: True, A2.name: True})
    since, repeated = len(events(lab)), repeated_syns(lab)
    client = lab.ask(*LONG, connections=10, at_once=10, requests=80, pause_s=0.1)
    fresh = lab.ask(*EACH, seconds=12, at_once=10)
    assert lab.controller.process is not None
    for _ in range(2):
        with stopped(lab.controller.process):
            time.sleep(STOPPED_S)
        await_agents(lab, {A1.name: True, A2.name: True})
    assert assert_right(client) == 800
    assert assert_right(fresh) > 0
    assert repeated_syns(lab) == repeated, "no connection request was lost"
    assert of_kinds(lab, since, "agent", "ejected") == []


def test_a_stopped_agent_is_gone_and_comes_back_alone(lab: AnsweringLab) -> None:
    since = len(events(lab))
    with stopped(lab.agents[A1.name]):
        await_agents(lab, {A1.name: False, A2.name: True})
        assert assert_right(lab.ask(*EACH, connections=60)) == 60
        time.sleep(STOPPED_S)
    await_agents(lab, {A1.name: True, A2.name: True})
    assert assert_right(lab.ask(*EACH, connections=60)) == 60
    # The status reports an agent's answer as soon as it arrives. The controller judges the agents every 0.25 s, and
    # reports the event then.
    await_true("two events of agents", lambda: len(of_kinds(lab, since, "agent", "ejected")) >= 2, RECOVERED_S)
    changes = of_kinds(lab, since, "agent", "ejected")
    # Compare only the name of the agent's socket, because the folder's name is random.
    assert [text.rpartition("/")[2] for text in changes] == [f"{A1.name}.sock is gone", f"{A1.name}.sock is back"]


def test_a_stopped_switch_leaves_agents_and_servers_in_place(lab: AnsweringLab) -> None:
    since = len(events(lab))
    client = lab.ask(*LONG, connections=10, at_once=10, requests=40, pause_s=0.1)
    fresh = lab.ask(*EACH, seconds=8, at_once=10)
    assert lab.switch.process is not None
    with stopped(lab.switch.process):
        time.sleep(STOPPED_S)
    assert assert_right(client) == 400
    assert assert_right(fresh) > 0
    await_agents(lab, {A1.name: True, A2.name: True})
    assert of_kinds(lab, since, "agent", "ejected") == []
    assert all(server["state"] == "in" for server in shop(lab)["servers"])
