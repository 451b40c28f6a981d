"""Tests of stage translate: servers without new connections, while the connection table still has entries for them."""

from __future__ import annotations

from dataclasses import replace

from configs import web
from finsy import P4TableAction
from sluice.config.load import parse
from sluice.switch.plan import InstalledServer
from sluice.switch.programmer import initial_state
from sluice.switch.state import State
from sluice.switch.translate import entries


def draining(state: State) -> set[int]:
    """Return the servers whose table entries mark them as draining."""
    ids: set[int] = set()
    for entry in entries(state):
        assert isinstance(entry.action, P4TableAction) and isinstance(entry.match, dict)
        if entry.action.args["draining"]:
            ids.add(int(str(entry.match["server"])))
    return ids


def test_ejected_drained_and_removed_servers_take_no_new_connections() -> None:
    state = initial_state(parse(web()))
    assert draining(state) == set()
    assert draining(replace(state, ejected=frozenset({1}))) == {1}
    assert draining(replace(state, draining=frozenset({2}))) == {2}
    server = next(state.plan.servers)
    gone = InstalledServer(7, (server.address, server.protocol, 8080), state.plan.services[0].id)
    assert draining(replace(state, plan=replace(state.plan, retired=(gone,)))) == {7}


def test_a_server_drained_by_configuration_takes_no_new_connections() -> None:
    text = web().replace("address: 10.0.3.2, port: 80}", "address: 10.0.3.2, port: 80, drain: true}")
    assert draining(initial_state(parse(text))) == {2}
