"""Test of real TCP under drains, reloads and ejections: every connection is answered by one server, and no connection
breaks.

With `FULL=1` in the environment the test makes 100,000 connections instead of 1,000.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

from topo.plan.network import LOAD_CLIENT, SERVER_NAMES, VIP, WEB_PORT
from topo.testbed.processes import Process, await_true
from topo.tests import needs
from topo.tests.client import Requests
from topo.tests.talking import TIMEOUT_S, TalkingLab

pytestmark = needs.LONG

FULL = bool(os.environ.get("FULL"))
CONNECTIONS, AT_ONCE = (100_000, 2_000) if FULL else (1_000, 100)
ASKS, PAUSE_S = (3, 0.5) if FULL else (4, 1.0)
CHANGE_S = 0.25
DRAINED_S = 1.5
SILENT_S = 1.0
"""Seconds that a server stays unreachable after its ejection."""
EACH_S = 20.0
"""Seconds from the end of one server's silence until the next server may be silenced."""
GRACE_S = 900.0 if FULL else 120.0


def test_every_connection_has_one_server() -> None:
    with TalkingLab() as lab, lab.configured(production):
        requests = Requests(
            f"{VIP}:{WEB_PORT}",
            connections=CONNECTIONS,
            at_once=AT_ONCE,
            requests=ASKS,
            most_bytes=10,
            pause_s=PAUSE_S,
            draws=True,
            ends=("fin", "server", "reset"),
        )
        clients = lab.start_program(requests, LOAD_CLIENT.name)
        happened = unrest(lab, clients)
        outcome = clients.result(GRACE_S)
        (service,) = lab.controller.ask(command="status")["services"]
        counted = {name: service[name] for name in ("pinned", "unpinned_new", "moved", "disowned", "weight_changes")}
        print(outcome, happened, counted)
        assert outcome["answered"] == ASKS * CONNECTIONS
        assert (outcome["wrong"], outcome["broken"], outcome["mixed"]) == ([], {}, 0)
        assert set(outcome["servers"]["/"]) == set(SERVER_NAMES) and happened["ejections"] > 0
        assert (counted["unpinned_new"], counted["disowned"]) == (0, 0)


def production(wanted: dict[str, Any]) -> None:
    """Change the configuration to production mode without a slow start, so that a server that returns receives SYNs at
    once."""
    wanted["services"][0]["balance"] |= {"mode": "production", "production": {"slow_start_s": 0}}


def unrest(lab: TalkingLab, clients: Process) -> dict[str, int]:
    """Drain and remove the servers in turn, and silence the server with the largest ratio every EACH_S seconds, until
    the clients have ended. Restore each server. Return the numbers of drains, reloads and ejections."""
    happened = {"drains": 0, "reloads": 0, "ejections": 0}
    silent = time.monotonic() + 1
    for name in itertools.cycle(SERVER_NAMES):
        with lab.draining(name):
            time.sleep(CHANGE_S)
        time.sleep(CHANGE_S)
        happened["drains"] += 1
        if clients.exit_code() is not None:
            return happened
        if time.monotonic() > silent:
            happened["ejections"] += ejected(lab, busiest(lab), clients)
            silent = time.monotonic() + EACH_S
        with lab.removed(name):
            time.sleep(CHANGE_S)
        happened["reloads"] += 2
    raise AssertionError("never")


def ejected(lab: TalkingLab, name: str, clients: Process) -> bool:
    """Remove a server's route to the clients until SILENT_S after the controller has ejected the server; return False
    if the clients ended earlier.

    The server is drained first, so that it has fewer connections than the others. The switch therefore selects it for
    SYNs, which it cannot answer.
    """

    def is_out() -> bool:
        return servers(lab)[name]["state"] == "ejected"

    with lab.draining(name):
        time.sleep(DRAINED_S)
    route = ["ip", "route", "add", "blackhole", f"{LOAD_CLIENT.address}/32"]
    lab.call(name, *route)
    try:
        await_true(f"{name} is ejected", lambda: is_out() or clients.exit_code() is not None, TIMEOUT_S)
        time.sleep(SILENT_S)
        return is_out()
    finally:
        lab.call(name, *route[:2], "delete", *route[3:])


def busiest(lab: TalkingLab) -> str:
    shares = {name: server["ratio"] for name, server in servers(lab).items()}
    return max(shares, key=lambda name: shares[name])


def servers(lab: TalkingLab) -> dict[str, Any]:
    (service,) = lab.controller.ask(command="status")["services"]
    return {server["name"]: server for server in service["servers"]}
