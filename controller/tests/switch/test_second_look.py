"""Tests of the second candidate server of a new connection: its groups, and the controller's corrections of loads."""

from __future__ import annotations

from dataclasses import replace

import pytest
from configs import web
from fakeswitch import FakeSwitch, Memory
from finsy import P4IndirectAction, P4TableAction, P4TableEntry
from finsy.proto import p4r
from sluice.balance import Mode, weight_sum
from sluice.balance.looks import MOST_LOOKS, SMALL_POOL
from sluice.config.load import parse
from sluice.config.model import ConnectionsConfig
from sluice.dataplane.units import MICROSECONDS
from sluice.features.balance.decisions import WEIGHTS
from sluice.names import SERVERS, TICK_BASE, PinState, Register
from sluice.switch import pipeline
from sluice.switch.balance import choose_other, idle_members, others, shares
from sluice.switch.classify import services
from sluice.switch.connections import read_slots
from sluice.switch.programmer import initial_state
from sluice.switch.reconcile import read_back, reconcile
from sluice.switch.secondlook import STALE, correct, count_expired, read_loads
from sluice.switch.session import Session
from sluice.switch.state import State
from sluice.switch.switchclock import SwitchClock
from sluice.switch.targets import TOFINO
from sluice.switch.targets.profile import most_looks, seeks_idle


def looking(second_look: str = "true", servers: int = 2) -> State:
    text = web().replace("  servers:", f"  second_look: {second_look}\n  servers:")
    more = "".join(f"  - {{name: t{n}, address: 10.0.3.{n}, port: 81}}\n" for n in range(3, servers + 1))
    last = "  - {name: s2, address: 10.0.3.2, port: 80}\n"
    return initial_state(parse(text.replace(last, last + more)))


def test_in_a_small_pool_each_server_has_a_group_of_the_others() -> None:
    state = looking(servers=3)
    (service,) = state.plan.services
    state = replace(state, weights={service.id: {1: 100, 2: 100, 3: 56}})
    assert others(state, service) == {
        1: ({2: 100, 3: 56}, [1]),
        2: ({1: 100, 3: 56}, [2]),
        3: ({1: 100, 2: 100}, [3]),
    }


def test_a_large_pool_has_one_group_that_is_no_servers_number() -> None:
    state = looking(servers=SMALL_POOL + 1)
    (service,) = state.plan.services
    ((number, (weights, named_by)),) = others(state, service).items()
    assert number >= SERVERS and weights == state.weights[service.id] and len(named_by) == SMALL_POOL + 1


def test_a_large_pool_of_which_few_are_left_looks_as_before() -> None:
    """A large pool has one group of further candidates, also if only two of its servers still have a weight.

    In a small pool, each first candidate has a group of its own.
    """
    state = looking(servers=SMALL_POOL + 4)
    (service,) = state.plan.services
    few = {SMALL_POOL + 3: 128, SMALL_POOL + 4: 128}
    ((number, (weights, named_by)),) = others(replace(state, weights={service.id: few}), service).items()
    assert number >= SERVERS and weights == few and named_by == list(few)


def test_a_server_that_is_alone_needs_no_look() -> None:
    state = looking()
    (service,) = state.plan.services
    assert others(replace(state, weights={service.id: {1: 256}}), service) == {}


@pytest.mark.parametrize(
    ("configured", "mode", "looks"),
    [
        (None, Mode.PRODUCTION, True),
        (None, Mode.PAPER, False),
        (None, Mode.FIXED, False),
        (False, Mode.PRODUCTION, False),
        (True, Mode.FIXED, True),
    ],
)
def test_production_mode_looks_twice_by_default(configured: bool | None, mode: Mode, looks: bool) -> None:
    state = looking("null" if configured is None else str(configured).lower())
    assert state.plan.services[0].second_look(mode) is looks


@pytest.mark.parametrize(("servers", "shares"), [(2, 256), (SMALL_POOL, 256), (SMALL_POOL + 1, 512), (100, 2048)])
def test_a_service_that_looks_draws_evenly_from_what_its_weights_sum_to(servers: int, shares: int) -> None:
    entry = next(entry for entry in services(looking(servers=servers)))
    assert isinstance(entry.action, P4TableAction) and entry.action.args["shares"] == shares
    entry = next(entry for entry in services(looking("false", servers=servers)))
    assert isinstance(entry.action, P4TableAction) and entry.action.args["shares"] == 0


@pytest.mark.parametrize("servers", range(2, 200, 7))
def test_shares_are_a_multiple_of_the_weights_sum_for_any_omitted_server(servers: int) -> None:
    state = looking(servers=servers)
    (service,) = state.plan.services
    for left in range(1, servers + 1):
        assert shares(state, service) % weight_sum(left) == 0


async def test_more_looks_are_drawn_at_once(switch: FakeSwitch, session: Session) -> None:
    state = looking("true\n  looks: 3", servers=4)
    await reconcile(session, await read_back(session), state)
    for entry in switch.entries("choose_other"):
        first = int.from_bytes(entry.match[0].exact.value, "big")
        members = entry.action.action_profile_action_set.action_profile_actions
        seen = [tuple(values[place] for place in (0, 2)) for values in params(list(members)) if len(values) == 6]
        assert len(seen) == len(members), "each member names two servers"
        assert all(first not in pair and len(set(pair)) == 2 for pair in seen)
        assert {values[4] for values in params(list(members))} == {0}, "nobody is looked at as a fourth"
    assert await reconcile(session, await read_back(session), state) == 0, "as it was read back"


@pytest.mark.parametrize(("asked", "drawn"), [("", 4), ("\n  looks: 2", 2), ("\n  looks: 3", 3), ("\n  looks: 4", 4)])
def test_four_servers_are_looked_at_by_default(asked: str, drawn: int) -> None:
    state = looking("true" + asked, servers=5)
    assert state.plan.services[0].looks == drawn
    wide = {len(member.args) for entry in choose_other(state) for member in group(entry)}
    assert wide == ({2} if drawn == 2 else {6})
    narrow = {len(member.args) for entry in choose_other(replace(state, most_looks=2)) for member in group(entry)}
    assert narrow == {2}, "a program that can look at two"


def sought(state: State) -> list[tuple[object, object]]:
    calls = [(entry.match, entry.action) for entry in idle_members(state)]
    return [(dict(match or {}), dict(action.args)) for match, action in calls if isinstance(action, P4TableAction)]


def test_large_servers_are_sought_out_while_they_are_idle() -> None:
    state = looking(servers=33)
    (service,) = state.plan.services
    whole = {service.id: dict.fromkeys(range(1, 34), 10)}
    assert sought(replace(state, weights=whole)) == [
        ({"service": 1, "word": 0}, {"servers": (1 << 32) - 2, "before_any": 1}),
        ({"service": 1, "word": 1}, {"servers": 0b11, "before_any": 1}),
    ]
    uneven = replace(state, weights={service.id: {1: 100, 2: 80, 3: 60}})
    assert sought(uneven) == [({"service": 1, "word": 0}, {"servers": 0b110, "before_any": 0})], "no small one"
    assert sought(replace(uneven, seeks_idle=False)) == [], "a program that knows of none"
    assert sought(replace(uneven, second_look=frozenset())) == sought(looking("false")) == []
    assert sought(replace(uneven, weights={service.id: {1: 100}})) == [], "nobody looks"


async def test_only_changed_words_are_written_and_unused_ones_are_deleted(switch: FakeSwitch, session: Session) -> None:
    state, readback = looking(servers=40), await read_back(session)
    await reconcile(session, readback, state)
    before = list(switch.entries("idle_members"))
    assert len(before) == 2
    incomplete, far = replace(state, is_complete=False), {33: 9, 34: 9}
    for weights, words in ((dict.fromkeys(range(1, 41), 7), 2), ({1: 9, 2: 9, 33: 1}, 1), (far, 1)):
        await reconcile(session, readback, replace(incomplete, weights={1: weights}), WEIGHTS)
        assert len(switch.entries("idle_members")) == words
    assert await reconcile(session, readback, replace(incomplete, weights={1: weights}), WEIGHTS) == 0
    assert await reconcile(session, await read_back(session), replace(state, weights={1: weights})) == 0


def group(entry: P4TableEntry) -> list[P4TableAction]:
    assert isinstance(entry.action, P4IndirectAction) and entry.action.action_set is not None
    return [action for _, action in entry.action.action_set]


def test_tofinos_program_looks_at_two() -> None:
    schema = pipeline.load(target=TOFINO).schema
    assert most_looks(schema) == 2 and most_looks(pipeline.load().schema) == MOST_LOOKS
    assert not seeks_idle(schema) and seeks_idle(pipeline.load().schema)
    asking = looking("true\n  looks: 3").plan.config
    assert TOFINO.objection(asking, schema) == (
        "its program looks at 2 servers for a new connection, and web asks for more; take `looks` out, or use the "
        "program for v1model that comes with sluice"
    )
    assert TOFINO.objection(looking("true\n  looks: 2").plan.config, schema) is None
    assert TOFINO.objection(looking("true").plan.config, schema) is None


def params(members: list[p4r.ActionProfileAction]) -> list[list[int]]:
    return [[int.from_bytes(p.value, "big") for p in member.action.params] for member in members]


async def test_the_switch_is_given_groups_before_they_are_named_and_loses_them_after(
    switch: FakeSwitch, session: Session
) -> None:
    readback = await read_back(session)
    await reconcile(session, readback, looking())
    (entry,) = switch.entries("choose")
    members = list(entry.action.action_profile_action_set.action_profile_actions)
    assert params(members) == [[1, 128, 1], [2, 128, 2]]
    groups = [e.action.action_profile_action_set.action_profile_actions for e in switch.entries("choose_other")]
    assert [params(list(group)) for group in groups] == [[[2, 128]], [[1, 128]]]
    names = {table.id: table.alias for table in switch.schema.tables}
    order = [names[u.entity.table_entry.table_id] for u in switch.writes[0].updates if u.entity.HasField("table_entry")]
    assert order.index("choose_other") < order.index("choose")

    await reconcile(session, readback, looking("false"))
    assert [names[u.entity.table_entry.table_id] for u in switch.writes[-1].updates] == [
        "choose",
        "services",
        "idle_members",
        "choose_other",
        "choose_other",
    ]
    assert switch.entries("choose_other") == []
    assert switch.weights(1) == {1: 128, 2: 128}


async def connection(registers: Memory, slot: int, server: int, state: PinState, *, age_s: float, way: int = 1) -> None:
    stamp = TICK_BASE + MICROSECONDS.ticks(1000.0) - MICROSECONDS.ticks(age_s)
    key, pin = (Register.PIN_KEY_1, Register.PIN_SERVER_1) if way == 1 else (Register.PIN_KEY_2, Register.PIN_SERVER_2)
    await registers.write(key, slot, slot << 36 | state << 32 | stamp)
    await registers.write(pin, slot, server)


async def expired(registers: Memory, clock: SwitchClock, now_s: float) -> list[int]:
    slots = await read_slots(registers)
    assert slots.newest is not None
    unexpired = slots.unexpired(ConnectionsConfig(), 300.0, MICROSECONDS, clock.at(now_s, slots.newest))
    return count_expired(slots, unexpired)


async def test_what_ended_unseen_is_taken_off() -> None:
    registers = Memory()
    await connection(registers, 1, 1, PinState.ESTABLISHED, age_s=0.0)
    await connection(registers, 2, 1, PinState.PENDING, age_s=11.0)
    await connection(registers, 3, 1, PinState.ESTABLISHED, age_s=400.0, way=2)
    await connection(registers, 4, 2, PinState.CLOSED, age_s=400.0)
    await connection(registers, 5, 2, PinState.CLIENT_RESET, age_s=400.0)
    await registers.write(Register.LOAD_EVICTED, 2, 5)
    for server, load in ((1, 3), (2, 6)):
        await registers.write(Register.LOAD_FIRST, server, load)
    gone = await expired(registers, SwitchClock(MICROSECONDS), 0.0)
    assert (gone[1], gone[2], sum(gone)) == (2, 0, 2)
    assert await correct(registers, [1, 2], gone) == {1: 2, 2: 5}
    for register in STALE:
        assert await registers.read(register, [1, 2]) == [2, 5]
    assert await read_loads(registers, [1, 2]) == {1: 1, 2: 1}
    assert await correct(registers, [1, 2], gone) == {}


async def test_what_ended_unseen_stays_off_when_all_that_is_open_has_ended() -> None:
    registers, clock = Memory(), SwitchClock(MICROSECONDS)
    await connection(registers, 1, 1, PinState.ESTABLISHED, age_s=301.0)
    await connection(registers, 2, 2, PinState.ESTABLISHED, age_s=0.0)
    assert (await expired(registers, clock, 5000.0))[1] == 1
    await connection(registers, 2, 2, PinState.CLOSED, age_s=0.0)
    assert (await expired(registers, clock, 5060.0))[1] == 1
    await connection(registers, 3, 1, PinState.ESTABLISHED, age_s=280.0)
    assert (await expired(registers, clock, 5060.0))[1] == 2, "a minute has passed without a newer stamp"


def test_the_switchs_time_is_at_least_what_was_seen_and_what_has_passed_since() -> None:
    clock = SwitchClock(MICROSECONDS)
    late = (1 << 32) - MICROSECONDS.ticks(1.0)
    assert clock.at(100.0, late) == late
    assert clock.at(110.0, late) == pytest.approx(MICROSECONDS.ticks(9.0), abs=2), "it wraps"
    assert clock.at(110.0, MICROSECONDS.ticks(12.0)) == MICROSECONDS.ticks(12.0), "a newer stamp is seen"
    assert clock.at(111.0, late) == pytest.approx(MICROSECONDS.ticks(13.0), abs=2)


async def test_loads_wrap_and_are_never_below_nothing() -> None:
    registers = Memory()
    await registers.write(Register.LOAD_FIRST, 1, 2)
    await registers.write(Register.STALE_FIRST, 1, (1 << 32) - 3)
    await registers.write(Register.STALE_FIRST, 2, 7)
    assert await read_loads(registers, [1, 2]) == {1: 5, 2: 0}
