"""Tests of content-switched connections while agents, controller, rules and weights are replaced; clients compare every
byte.

With `FULL=1` in the environment clients make 100,000 transfers under loss instead of 1,000.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from topo.plan.content import AGENTS, GROUPS, S3, SHOP
from topo.plan.network import LOAD_CLIENT, SERVERS, WEB_PORT
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import connect_in
from topo.testbed.processes import Process, await_true
from topo.tests import answering, needs
from topo.tests.answering import FLOOD_END_S, FLOOD_SYNS, AnsweringLab, flood, outcome_of

pytestmark = needs.AGENTS
lab = pytest.fixture(scope="module")(answering.running)

A1, A2 = AGENTS
TRANSFERS = 100_000 if os.environ.get("FULL") else 1000
IMAGES = {server.name for server in GROUPS["images"]}
RECOVERED_S = 10.0
TOLD_S = 5.0
"""Seconds after which all agents have reported to the controller; they report twice per second."""
SPLICED = ("/stay/images", "/stay/fast")
"""Paths whose connections are spliced, for clients with one request per connection."""
LONG = ("/stay/images",)
EACH = ("/images", "/fast")


def shop(lab: AnsweringLab) -> Mapping[str, Any]:
    """Return the report of `sluice status` on the content service."""
    return next(service for service in lab.controller.ask(command="status")["services"] if service["name"] == SHOP)


def counts(lab: AnsweringLab) -> Mapping[str, int]:
    return shop(lab)["content"]["counts"]


def syns(lab: AnsweringLab, agent: str) -> int:
    return next(server["syn"] for server in shop(lab)["servers"] if server["name"] == agent)


def await_agents(lab: AnsweringLab, answering: Mapping[str, bool]) -> None:
    """Return once the controller's status reports, for each agent, whether it answers as in ``answering``."""

    def answer() -> bool:
        return {agent["name"]: agent["answers"] for agent in shop(lab)["content"]["agents"]} == answering

    await_true(f"agents answer: {answering}", answer, RECOVERED_S)


@contextmanager
def lossy(lab: AnsweringLab, probability: float) -> Generator[None]:
    """Make clients and servers drop arriving segments with a probability while the context is active."""
    rule = f"INPUT -p tcp -m statistic --mode random --probability {probability} -j DROP".split()
    hosts = (LOAD_CLIENT, *SERVERS)
    for host in hosts:
        lab.call(host.name, "iptables", "-A", *rule)
    try:
        yield
    finally:
        for host in hosts:
            lab.call(host.name, "iptables", "-D", *rule)


def assert_right(client: Process, timeout_s: float = 60.0) -> int:
    """Check that every answer is correct and from the group that the rules select for the path, and that no connection
    was broken; return the number of answers."""
    outcome = outcome_of(client, timeout_s)
    assert (outcome.wrong, outcome.broken) == ([], {})
    for path, servers in outcome.servers.items():
        assert set(servers) <= ({S3.name} if path.endswith("fast") else IMAGES)
    return outcome.answered


def test_a_drained_agent_gets_no_new_clients(lab: AnsweringLab) -> None:
    lab.controller.drain(f"{SHOP}/{A1.name}", drain=True)
    before = syns(lab, A1.name), syns(lab, A2.name)
    assert assert_right(lab.ask(*EACH, connections=60, requests=3)) == 180
    assert syns(lab, A1.name) == before[0]
    assert syns(lab, A2.name) >= before[1] + 60
    lab.controller.drain(f"{SHOP}/{A1.name}", drain=False)
    assert assert_right(lab.ask(*EACH, connections=60)) == 60
    assert syns(lab, A1.name) > before[0]


def test_rules_are_replaced_under_load(lab: AnsweringLab) -> None:
    """No request is refused, and the rules of a connection do not change: its requests for a path all reach one
    server."""
    options: dict[str, Any] = {"seconds": 5, "at_once": 10, "requests": 10, "pause_s": 0.02}
    client, spliced = lab.ask("/swap", **options), lab.ask(*LONG, **options)
    targets = 0
    while client.exit_code() is None:
        to = "fast" if targets % 2 else "images"
        lab.controller.reload(lab.with_rule({"name": "swap", "match": {"path": "/swap"}, "to": to, "sticky": "none"}))
        targets += 1
        time.sleep(0.3)
    outcome = outcome_of(client)
    assert (outcome.wrong, outcome.broken, outcome.mixed) == ([], {}, 0)
    assert IMAGES | {S3.name} == set(outcome.servers["/swap"])
    assert assert_right(spliced) > 0
    assert shop(lab)["content"]["refused"] == {}


def test_an_agent_is_killed_and_comes_back(lab: AnsweringLab) -> None:
    """Spliced connections continue. The other agent answers requests that the killed agent had not acknowledged. The
    only lost connections are those for which the agent decides on every request; the controller counts them."""
    spliced = lab.ask(*LONG, connections=10, at_once=10, requests=50, pause_s=0.1)
    short = lab.ask(*SPLICED, seconds=6, at_once=10)
    client = lab.ask(*EACH, seconds=4, at_once=20, requests=50, pause_s=0.1)
    time.sleep(2.0)
    os.kill(lab.agents[A1.name].pid, signal.SIGKILL)
    lab.agents[A1.name].wait(5.0)
    await_agents(lab, {A1.name: False, A2.name: True})
    lab.start_agent(A1)
    await_agents(lab, {A1.name: True, A2.name: True})
    assert assert_right(spliced) == 500
    assert assert_right(short) > 0
    outcome = outcome_of(client)
    assert outcome.wrong == []
    assert 0 < sum(outcome.broken.values()) <= 20
    await_true("they are counted", lambda: counts(lab)["lost"] >= sum(outcome.broken.values()), TOLD_S)
    generations = {agent["generation"] for agent in shop(lab)["content"]["agents"]}
    assert len(generations) == 1
    before = syns(lab, A1.name)

    def takes_clients() -> bool:
        return assert_right(lab.ask(*EACH, connections=60)) == 60 and syns(lab, A1.name) > before

    await_true("the agent gets clients again", takes_clients, RECOVERED_S)


def test_the_controller_is_killed_and_comes_back(lab: AnsweringLab) -> None:
    generation = shop(lab)["content"]["generation"]
    load = lab.ask(*EACH, seconds=5, at_once=10, requests=5, pause_s=0.02)
    assert lab.controller.process is not None
    os.kill(lab.controller.process.pid, signal.SIGKILL)
    lab.controller.process.wait(5.0)
    assert assert_right(lab.ask(*EACH, connections=60)) == 60
    lab.controller.start()
    await_agents(lab, {A1.name: True, A2.name: True})
    assert assert_right(load) > 0
    assert shop(lab)["content"]["generation"] == generation


def test_transfers_under_loss_weight_changes_and_reloads(lab: AnsweringLab) -> None:
    options: dict[str, Any] = {"at_once": 30, "most_bytes": 300_000}
    refused = shop(lab)["content"]["refused"]
    with lossy(lab, 0.01):
        spliced = lab.ask(*SPLICED, connections=TRANSFERS, **options)
        each = lab.ask(*EACH, connections=TRANSFERS // 30, requests=10, **options)
        times = 0
        while spliced.exit_code() is None or each.exit_code() is None:
            to = "fast" if times % 2 else "images"
            rule = {"name": "other", "match": {"path": "/other"}, "to": to}
            lab.controller.reload(lab.with_rule(rule))
            lab.controller.drain("s1", drain=times % 2 == 0)
            times += 1
            time.sleep(0.3)
    assert shop(lab)["content"]["refused"] == refused
    assert assert_right(spliced) == TRANSFERS
    assert assert_right(each) == TRANSFERS // 30 * 10
    assert times


def test_a_flood_of_syns_takes_nothing(lab: AnsweringLab) -> None:
    before = counts(lab)
    spliced = lab.ask(*LONG, seconds=4, at_once=10, requests=20)
    flood(lab).wait(FLOOD_END_S)
    assert assert_right(spliced) > 0
    agents = shop(lab)["content"]["agents"]
    assert sum(agent["memory"] for agent in agents) < 100_000
    await_true(
        "the flood is counted", lambda: counts(lab)["handshakes"] > before["handshakes"] + FLOOD_SYNS // 2, TOLD_S
    )
    assert counts(lab)["orders_failed"] == before["orders_failed"]


def test_a_client_uses_a_port_again(lab: AnsweringLab) -> None:
    """A client makes two connections from the same port. The server ends the first one, so that the port is free at
    once."""
    for _ in range(2):
        own = (str(LOAD_CLIENT.address), 4711)
        with connect_in(lab.pid(LOAD_CLIENT.name), (str(lab.target), WEB_PORT), TOLD_S, source=own) as client:
            client.sendall(b"GET /stay/fast HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n")
            assert client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
            while client.recv(1 << 16):
                pass


def test_the_switch_begins_anew(lab: AnsweringLab) -> None:
    """After a restart of the switch the controller programs it again, and clients are served as before."""
    lab.switch.stop_process()
    lab.switch.start([])

    def served() -> bool:
        curl = ["curl", "-sS", "--max-time", "2", f"http://{lab.target}/fast"]
        try:
            lab.call(LOAD_CLIENT.name, *curl)
        except SetupError:
            return False
        return True

    await_true("served again", served, 20.0)
    assert assert_right(lab.ask(*EACH, *SPLICED, connections=60)) == 60
