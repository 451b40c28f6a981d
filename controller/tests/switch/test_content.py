"""Tests of content services in the switch: table entries, absent agents, servers that keep their numbers after changes
of the configuration, and programs without content switching."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from configs import web
from content import content
from fakeswitch import FakeSwitch
from finsy import P4IndirectAction, P4TableAction, P4TableEntry
from sluice.addresses import from_text
from sluice.config.load import parse
from sluice.dataplane.units import MICROSECONDS
from sluice.names import Action, Table
from sluice.switch import pipeline
from sluice.switch.plan import Plan, ServerMoved, make_plan
from sluice.switch.programmer import initial_state
from sluice.switch.reconcile import read_back, reconcile, wanted_entries
from sluice.switch.session import Session
from sluice.switch.state import State
from sluice.switch.targets import EMBEDDED, TOFINO

NEIGHBOURS = {"10.0.4.32": (5, "02:00:00:00:04:32")}
Call = tuple[tuple[Any, ...], str, dict[Any, Any]]


def _state(text: str | None = None) -> State:
    return initial_state(parse(text or content()), NEIGHBOURS)


def _calls(state: State, table: Table) -> list[Call]:
    """Return the expected entries of a table, each as match, action and parameters."""
    return [_call(entry) for entry in wanted_entries(state, [table])]


def _call(entry: P4TableEntry) -> Call:
    match, action = entry.match, entry.action
    assert match is not None
    if isinstance(action, P4TableAction):
        return tuple(match.values()), str(action.name), dict(action.args)
    assert isinstance(action, P4IndirectAction) and action.action_set is not None
    return tuple(match.values()), "", {member.args["id"]: weight for weight, member in action.action_set}


SHOP, ALL, FAST, PLAIN = 1, 2, 3, 4
A1, A2, X1, X2, X3, S1, S2 = 1, 2, 3, 4, 5, 6, 7


def test_numbers_are_one_a_server_however_many_groups_it_is_in() -> None:
    plan = _state().plan
    assert [service.id for service in plan.services] == [SHOP, ALL, FAST, PLAIN]
    assert [[server.id for server in service.servers] for service in plan.services] == [
        [A1, A2],
        [X1, X2],
        [X2, X3],
        [S1, S2],
    ]
    assert len(list(plan.servers)) == 7


def test_entries() -> None:
    state = _state()
    services = {match: (action, args) for match, action, args in _calls(state, Table.SERVICES)}
    shop = from_text("10.0.0.100")
    assert services[shop, 6, 80] == (
        Action.TO_CONTENT,
        {"service": SHOP, "generation": 1, "remember_time": MICROSECONDS.ticks(300)},
    )
    to_group = {"shares": 256, "address": shop, "port": 80}
    assert services[from_text("10.9.0.1"), 6, 80] == (Action.TO_GROUP, {"service": ALL, **to_group})
    assert services[from_text("10.9.0.2"), 6, 8080] == (Action.TO_GROUP, {"service": FAST, **to_group})
    assert services[from_text("10.0.0.101"), 6, 80] == (Action.TO_SERVICE, {"service": PLAIN, "shares": 256})
    assert (
        services[from_text("10.0.3.31"), 6, 80] == services[from_text("10.0.2.12"), 6, 8000] == (Action.DENY_DIRECT, {})
    )
    assert len(services) == 4 + 7

    home = {"service": SHOP, "address": shop, "port": 80}
    origins = {match[0]: (action, args) for match, action, args in _calls(state, Table.ORIGINS)}
    assert origins[from_text("10.0.3.31")] == (Action.FROM_SERVER, {"server": A1, **home})
    assert origins[from_text("10.0.2.12")] == (Action.FROM_CONTENT, {"server": X2, **home})
    assert origins[from_text("10.0.2.21")][0] == Action.FROM_SERVER
    assert len(origins) == 7

    assert [match for match, _, _ in _calls(state, Table.SERVERS)] == [
        (number,) for number in (A1, A2, X1, X2, X3, S1, S2)
    ]
    assert (shop,) in [match for match, _, _ in _calls(state, Table.OWNED)]
    assert (from_text("10.9.0.1"),) not in [match for match, _, _ in _calls(state, Table.OWNED)]


def test_agents_are_behind_the_port_of_their_subnet_or_where_they_answer_arp() -> None:
    state = _state()
    shop = from_text("10.0.0.100")
    first = ((3, shop, 80), Action.SET_AGENT, {"agent": A1})
    second = ((5, shop, 80), Action.SET_AGENT, {"agent": A2})
    assert _calls(state, Table.AGENTS) == [first, second]
    assert _calls(replace(state, neighbours={}), Table.AGENTS) == [first], "its subnet has two ports"
    hops = [((A1,), "10.0.3.31"), ((A2,), "10.0.4.32")]
    assert _calls(state, Table.AGENT_HOPS) == [
        (match, Action.SET_AGENT_HOP, {"neighbour": state.neighbour_ids[from_text(address)]}) for match, address in hops
    ]


def test_groups_are_chosen_from_as_services_are_and_agents_by_capacity() -> None:
    state = _state()
    assert [match for match, _, _ in _calls(state, Table.CHOOSE)] == [(ALL,), (FAST,), (PLAIN,)]
    assert _calls(state, Table.CHOOSE_STABLE)[0] == ((SHOP,), "", {A1: 64, A2: 192})
    others = {match[0]: members for match, _, members in _calls(state, Table.CHOOSE_OTHER)}
    assert len(others) == 6, "each server of each service draws from the others of that service"
    assert sorted(tuple(members) for members in others.values()) == [(X1,), (X2,), (X2,), (X3,), (S1,), (S2,)]


@pytest.mark.parametrize(
    ("change", "weights"),
    [
        ({"absent": {A1}}, {A2: 256}),
        ({"draining": {A2}}, {A1: 256}),
        ({"ejected": {A2}}, {A1: 223, A2: 33}),
        ({"ejected": {A1, A2}}, {A1: 64, A2: 192}),
        ({"absent": {A1}, "draining": {A2}}, {A2: 256}),
    ],
)
def test_new_clients_go_to_agents_that_are_there(change: dict[str, set[int]], weights: dict[int, int]) -> None:
    state = replace(_state(), **{name: frozenset(servers) for name, servers in change.items()})
    assert _calls(state, Table.CHOOSE_STABLE)[0] == ((SHOP,), "", weights)


async def test_an_absent_agents_packets_go_to_another_before_its_address_is_gone(
    switch: FakeSwitch, session: Session
) -> None:
    readback = await read_back(session)
    state = _state()
    await reconcile(session, readback, state)
    assert await reconcile(session, readback, replace(state, absent=frozenset({A1}))) == 2
    kinds = [(u.type, u.entity.table_entry.table_id) for u in switch.writes[-1].updates]
    tables = session.pipeline.schema.tables
    assert [kind[1] for kind in kinds] == [tables[Table.CHOOSE_STABLE].id, tables[Table.SERVERS].id]
    assert (await read_back(session)).absent == {A1}, "a controller that starts anew knows it"
    assert await reconcile(session, readback, replace(state, draining=frozenset({A1}))) == 1
    assert len(switch.entries("servers")) == 7, "a draining one keeps its entry, for what waits there"
    assert await reconcile(session, readback, replace(state, absent=frozenset({A1, A2}))) == 3
    assert switch.weights(SHOP, "choose_stable") == {}


async def test_a_controller_that_starts_anew_changes_nothing(switch: FakeSwitch, session: Session) -> None:
    state = _state()
    assert await reconcile(session, await read_back(session), state) > 0
    readback = await read_back(session)
    assert await reconcile(session, readback, state) == 0
    plan = make_plan(state.plan.config, readback.services, readback.origins.values(), {X1, X2, X3})
    assert plan == state.plan


async def test_rules_have_another_generation_when_requests_may_go_to_other_servers(
    switch: FakeSwitch, session: Session
) -> None:
    rules = _state().rules
    assert rules.following(parse(content().replace("capacity: 3", "capacity: 4"))) == rules
    for old, new in (
        ("5000", "6000"),
        ("address: 10.0.2.11, port: 8000", "address: 10.0.2.11, port: 8001"),
    ):
        assert old in content()
        assert rules.following(parse(content().replace(old, new))).generation == 2
    guessing = content().replace("refuse: 403", "to: all")
    rules_that_guess = rules.following(parse(guessing))
    without = guessing.replace("protocol: http", "protocol: http\n    guess: false")
    assert rules_that_guess.following(parse(without)).generation == rules_that_guess.generation + 1
    assert replace(rules, generation=255).following(parse(content().replace("5000", "6000"))).generation == 1
    await reconcile(session, await read_back(session), replace(_state(), rules=replace(rules, generation=7)))
    readback = await read_back(session)
    assert readback.rules is not None
    assert readback.rules.following(parse(content())).generation == 7, "a controller that starts anew goes on with it"
    assert readback.rules.following(parse(content().replace("5000", "6000"))).generation == 8


# -- Changes of the configuration


def _present(plan: Plan) -> dict[str, Any]:
    return {
        "known": {service.endpoint: service.id for service in plan.services},
        "retired": [server for service in plan.services for server in service.installed],
    }


def _changed(old: str, new: str, server_ids: Iterable[int] = (X1, X2, X3)) -> Plan:
    text = content()
    assert old in text
    return make_plan(parse(text.replace(old, new)), **_present(make_plan(parse(text))), pinned=set(server_ids))


def test_a_server_that_has_left_all_groups_stays_translated_to_the_content_service() -> None:
    plan = _changed("  - {name: x3, address: 10.0.2.13, port: 8000}\n", "")
    assert [(server.id, server.service_id, server.in_group) for server in plan.retired] == [(X3, SHOP, True)]
    entries = {match[0]: (action, args) for match, action, args in _calls(State(plan, {}), Table.ORIGINS)}
    assert entries[from_text("10.0.2.13")][0] == Action.FROM_CONTENT


def test_a_server_that_changes_its_group_keeps_itsfrom_text() -> None:
    plan = _changed("- {name: x3, address: 10.0.2.13, port: 8000}", "- {name: x1, address: 10.0.2.11, port: 8000}")
    assert [server.id for server in plan.services[2].servers] == [X2, X1]


def test_an_agent_that_is_configured_no_more_is_gone_at_once() -> None:
    agent = '    - {name: a2, address: 10.0.4.32, control: "127.0.0.1:9471", capacity: 3}\n'
    assert _changed(agent, "").retired == ()


def test_a_server_does_not_move_between_a_group_and_a_plain_service() -> None:
    text = content().replace("  - {name: x3, address: 10.0.2.13, port: 8000}\n", "")
    moved = parse(
        text.replace("{name: s1, address: 10.0.2.21, port: 80}", "{name: x3, address: 10.0.2.13, port: 8000}")
    )
    entries = _present(_state().plan)
    with pytest.raises(ServerMoved, match="server x3 moves from service shop to plain"):
        make_plan(moved, **entries, pinned={X3})
    assert make_plan(moved, **entries).services[3].servers[0].id not in (X3, S1), "without connections it may"


def test_a_service_does_not_begin_to_switch_by_content_while_it_has_connections() -> None:
    entries = _present(make_plan(parse(web())))
    with pytest.raises(ServerMoved, match="service shop begins or ends to switch by content"):
        make_plan(parse(content()), **entries, pinned={1})
    assert make_plan(parse(content()), **entries).retired == ()


def test_a_program_without_content_switching_refuses_it() -> None:
    config = parse(content())
    without, having = pipeline.load(target=TOFINO).schema, pipeline.load().schema
    said = (
        "its program has no content switching, and shop asks for it; take `content` out, or use the program for "
        "v1model that comes with sluice"
    )
    assert EMBEDDED.objection(config, without) == TOFINO.objection(config, without) == said
    assert EMBEDDED.objection(parse(web()), without) is None
    assert EMBEDDED.objection(config, having) is None
