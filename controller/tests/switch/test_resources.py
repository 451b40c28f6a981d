"""Tests of the switch's table `resources`: which servers have an entry, and which programs have the table."""

from __future__ import annotations

from dataclasses import replace

from configs import web
from finsy import P4TableAction
from sluice.config.load import parse
from sluice.resources.sharer import Defaults
from sluice.switch import pipeline
from sluice.switch.plan import InstalledServer
from sluice.switch.programmer import initial_state
from sluice.switch.resources import entries
from sluice.switch.state import State
from sluice.switch.targets import EMBEDDED, TOFINO

MANAGED = web().replace(
    "  servers:", "  resources: {send: {budget: 1MB}, receive: {budget: 1MB}, sampling: 3}\n  servers:"
)


def rows(state: State) -> dict[int, dict[str, object]]:
    """Return the parameters of each server's entry, by server number."""
    parameters: dict[int, dict[str, object]] = {}
    for entry in entries(state):
        assert isinstance(entry.action, P4TableAction) and isinstance(entry.match, dict)
        parameters[int(str(entry.match["server"]))] = dict(entry.action.args)
    return parameters


def test_drained_servers_have_theirs_and_removed_ones_none() -> None:
    state = initial_state(parse(MANAGED))
    none = {"measured": 1, "sampling": 3, "closed": 0, "send_cap": 0, "receive_cap": 0}
    assert rows(state) == {1: none, 2: none}
    capped = replace(state, caps={2: Defaults(0, 64_000), 7: Defaults(1, 1)}, draining=frozenset({2}))
    assert rows(capped) == {1: none, 2: none | {"receive_cap": 64_000}}
    server = next(state.plan.servers)
    gone = InstalledServer(7, (server.address, server.protocol, 8080), state.plan.services[0].id)
    assert rows(replace(capped, plan=replace(state.plan, retired=(gone,)))).keys() == {1, 2}


def test_services_without_it_have_none() -> None:
    assert rows(initial_state(parse(web()))) == {}


def test_a_program_without_the_stages_refuses_it() -> None:
    config = parse(MANAGED)
    without, having = pipeline.load(target=TOFINO).schema, pipeline.load().schema
    said = (
        "its program has no management of servers' resources, and web asks for it; take `resources` out, or use the "
        "program for v1model that comes with sluice"
    )
    assert EMBEDDED.objection(config, without) == TOFINO.objection(config, without) == said
    assert EMBEDDED.objection(config, having) is None
