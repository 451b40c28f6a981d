"""Tests in which all agents of a service end: the service acts as `without_agents` specifies, and spliced connections
continue."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from topo.plan.network import LOAD_CLIENT
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.answering import RULES, AnsweringLab
from topo.tests.test_content_life import A1, A2, EACH, LONG, RECOVERED_S, assert_right, await_agents, shop

pytestmark = needs.AGENTS

REFUSED = 7
"""curl's exit status for a refused connection."""
HELD: dict[str, Any] = {"connections": 10, "at_once": 10, "requests": 150, "pause_s": 0.1}


@contextmanager
def without_agents(lab: AnsweringLab, does: str) -> Generator[None]:
    """Kill all agents, and start them again when the context ends; ``does``: the value of `without_agents` in the
    status."""
    for agent in (A1, A2):
        os.kill(lab.agents[agent.name].pid, signal.SIGKILL)
        lab.agents[agent.name].wait(5.0)
    await_true("no agent is left", lambda: shop(lab)["content"]["without_agents"] == does, RECOVERED_S)
    yield
    for agent in (A1, A2):
        lab.start_agent(agent)
    await_agents(lab, {A1.name: True, A2.name: True})
    await_true("agents are back", lambda: shop(lab)["content"]["without_agents"] is None, RECOVERED_S)


def test_new_connections_are_refused_at_once() -> None:
    with AnsweringLab(switch_kind(), content={"guess": False}) as lab:
        client = lab.ask(*LONG, **HELD)
        assert assert_right(lab.ask(*EACH, connections=20)) == 20
        with without_agents(lab, "refuse"):
            output = lab.call(
                LOAD_CLIENT.name, "sh", "-c", f"curl -sS --max-time 20 http://{lab.target}/fast 2>&1; echo status=$?"
            )
            assert output.endswith(f"status={REFUSED}\n"), output
        assert assert_right(lab.ask(*EACH, connections=60)) == 60
        assert assert_right(client) == 1500


def test_a_group_gets_new_connections_unread() -> None:
    rules = [rule for rule in RULES if "refuse" not in rule]
    with AnsweringLab(switch_kind(), content={"guess": False, "without_agents": "images", "rules": rules}) as lab:
        client = lab.ask(*LONG, **HELD)
        assert assert_right(lab.ask(*EACH, connections=20)) == 20
        with without_agents(lab, "images"):
            assert assert_right(lab.ask(*LONG, connections=60, requests=3)) == 180
            output = lab.call(LOAD_CLIENT.name, "curl", "-sSi", "--max-time", "10", f"http://{lab.target}/fast")
            assert output.startswith("HTTP/1.1 200 "), "by layer 4, whatever its path"
            unread = lab.ask(*LONG, **HELD)
            await_true("connections without an agent", lambda: unread.exit_code() is None, RECOVERED_S)
        assert assert_right(lab.ask(*EACH, connections=60)) == 60
        assert assert_right(client) == 1500
        assert assert_right(unread) == 1500
        assert {server["name"] for server in shop(lab)["servers"] if server["state"] == "in"} == {A1.name, A2.name}
