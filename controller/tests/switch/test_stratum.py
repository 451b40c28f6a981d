"""The controller's side of a switch against a Tofino under Stratum, as far as P4Runtime shows it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import tofinoprogram
from configs import web
from finsy.proto import p4r
from sluice.balance import Counts
from sluice.config import Config
from sluice.configload import parse
from sluice.names import REGISTER_SIZES, Meter, Register
from sluice.switch import pipeline
from sluice.switch.errors import SwitchError, SwitchLost
from sluice.switch.ledger import read_ledger
from sluice.switch.pipeline import Pipeline
from sluice.switch.programmer import initial_state
from sluice.switch.reconcile import read_back, reconcile
from sluice.switch.registers import open_registers
from sluice.switch.session import Session
from sluice.switch.state import State
from sluice.switch.targets import STRATUM
from stratumswitch import StratumSwitch

INSERT, MODIFY, DELETE = p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE
MEMBER, GROUP, ENTRY = "action_profile_member", "action_profile_group", "table_entry"


@pytest.fixture
async def switch() -> AsyncGenerator[StratumSwitch]:
    async with StratumSwitch() as fake:
        yield fake


@pytest.fixture
def program(tmp_path: Path) -> Pipeline:
    return pipeline.load(tofinoprogram.write(tmp_path / "tofino"))


@pytest.fixture
async def session(switch: StratumSwitch, program: Pipeline) -> AsyncGenerator[Session]:
    async with Session(switch.address, 1, program) as opened:
        await opened.push_pipeline()
        yield opened


def _config(more: str = "", text: str = "") -> Config:
    return parse((text or web()).replace("  servers:", f"{more}  servers:"))


def _weighted(state: State, first: int, second: int) -> State:
    return replace(state, weights={1: {1: first, 2: second}})


async def test_weights_are_repeated_members_each_of_its_own(switch: StratumSwitch, session: Session) -> None:
    state = _weighted(initial_state(_config()), 192, 64)
    await reconcile(session, await read_back(session), state)
    assert switch.weights(1) == {1: 192, 2: 64}
    assert switch.weights(1, "choose_stable") == {1: 128, 2: 128}
    assert switch.surplus() == (0, 0)


async def test_a_change_is_a_new_group_one_entry_and_the_end_of_the_old_one(
    switch: StratumSwitch, session: Session
) -> None:
    state, found = initial_state(_config()), await read_back(session)
    await reconcile(session, found, state)
    before = len(switch.requests)
    assert await reconcile(session, found, _weighted(state, 100, 156)) == 1
    assert switch.weights(1) == {1: 100, 2: 156}
    assert switch.requests[before:] == [
        {(MEMBER, INSERT)},
        {(GROUP, INSERT)},
        {(ENTRY, MODIFY)},
        {(GROUP, DELETE)},
        {(MEMBER, DELETE)},
    ]
    assert switch.surplus() == (0, 0)


@pytest.mark.parametrize(
    ("lost_at", "serves"),
    [
        ((MEMBER, INSERT), {1: 128, 2: 128}),
        ((GROUP, INSERT), {1: 128, 2: 128}),
        ((ENTRY, MODIFY), {1: 128, 2: 128}),
        ((GROUP, DELETE), {1: 100, 2: 156}),
        ((MEMBER, DELETE), {1: 100, 2: 156}),
    ],
)
async def test_a_switch_lost_on_the_way_serves_a_whole_group_and_the_rest_is_cleared_away(
    switch: StratumSwitch, program: Pipeline, lost_at: tuple[str, int], serves: dict[int, int]
) -> None:
    state = initial_state(_config())
    async with Session(switch.address, 1, program) as first:
        await first.push_pipeline()
        found = await read_back(first)
        await reconcile(first, found, state)
        switch.fail_at = lost_at
        with pytest.raises(SwitchLost):
            await reconcile(first, found, _weighted(state, 100, 156))
        assert switch.weights(1) == serves
    async with Session(switch.address, 1, program) as second:
        found = await read_back(second)
        assert found.weights[1] == serves
        await reconcile(second, found, _weighted(state, 100, 156))
    assert switch.weights(1) == {1: 100, 2: 156}
    assert switch.surplus() == (0, 0)


async def test_what_is_there_is_adopted_without_a_write(switch: StratumSwitch, session: Session) -> None:
    limited = _config("  admission: {rate_per_s: 250, burst: 25}\n")
    state = initial_state(limited, {"10.0.2.2": (2, "02:aa:00:00:00:02")})
    await reconcile(session, await read_back(session), state)
    before = len(switch.requests)
    found = await read_back(session)
    assert {one.endpoint: one.id for one in found.origins.values()} == {s.endpoint: s.id for s in state.plan.servers}
    assert await reconcile(session, found, state) == 0
    assert len(switch.requests) == before


async def test_a_drained_server_is_known_by_its_absence(switch: StratumSwitch, session: Session) -> None:
    state = replace(initial_state(_config()), weights={1: {2: 256}}, draining=frozenset({1}))
    await reconcile(session, await read_back(session), state)
    found = await read_back(session)
    assert (found.draining, found.ejected) == ({1}, frozenset())


async def test_an_ejected_server_is_known_by_its_probes_share(switch: StratumSwitch, session: Session) -> None:
    state = replace(initial_state(_config()), weights={1: {1: 6, 2: 250}}, ejected=frozenset({1}))
    await reconcile(session, await read_back(session), state)
    found = await read_back(session)
    assert (found.draining, found.ejected) == (frozenset(), {1})


async def test_weights_are_scaled_to_the_selector(switch: StratumSwitch, tmp_path: Path) -> None:
    program = pipeline.load(tofinoprogram.write(tmp_path / "small", tofinoprogram.info(members=256, group=120)))
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        found = await read_back(session)
        await reconcile(session, found, _weighted(initial_state(_config()), 255, 1))
        assert switch.weights(1) == {1: 63, 2: 1}


async def test_a_selector_too_small_is_named(switch: StratumSwitch, tmp_path: Path) -> None:
    program = pipeline.load(tofinoprogram.write(tmp_path / "tiny", tofinoprogram.info(members=2, group=1)))
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        with pytest.raises(SwitchError, match=r"selector .* has room for 1 members .* 2 servers"):
            await reconcile(session, await read_back(session), initial_state(_config()))
    assert switch.requests == []


async def test_a_limit_is_held_within_what_the_meter_can(switch: StratumSwitch, session: Session) -> None:
    state = initial_state(_config("  admission: {rate_per_s: 250, burst: 100}\n"))
    await reconcile(session, await read_back(session), state)
    (held,) = [
        config
        for (meter, index), config in switch.meters.items()
        if meter == switch.schema.meters[Meter.ADMISSION].id and index == 1
    ]
    assert (held.cir, held.cburst) == (254, 100)


async def test_registers_are_asked_for_whole(switch: StratumSwitch, session: Session) -> None:
    await reconcile(session, await read_back(session), initial_state(_config()))
    switch.count("ledger_syn", 1, 7)
    switch.count("ledger_synack", 2, 5)
    registers = await open_registers(session, None)
    switch.asked.clear()
    readings = await read_ledger(registers, [1, 2])
    assert (readings[1].syn, readings[2].synack) == (7, 5)
    assert isinstance(readings[1], Counts)
    assert [register.register_entry.HasField("index") for register in switch.asked] == [False] * 5


@pytest.mark.parametrize(
    ("text", "stamp", "said"),
    [
        (web().replace("port: 3,", "port: 131,"), "f1", "ports 131 are not on pipe 0"),
        (web().replace("device_id: 1", "device_id: 0"), "f1", "device 0 cannot be had with Stratum"),
        (web(more="connections: {pending_s: 5}"), "f1", "connections.pending_s is part of the program"),
        (web(more="news: {rate_window_s: 4}"), "f1", "news.rate_window_s is part of the program"),
        (web(), "stamp", "reads the one named f1, and pin_key_1, pin_key_2, rate_flow has none"),
    ],
)
async def test_what_cannot_be_had_is_refused_before_anything_is_written(
    switch: StratumSwitch, tmp_path: Path, text: str, stamp: str, said: str
) -> None:
    program = pipeline.load(tofinoprogram.write(tmp_path / "other", tofinoprogram.info(stamp=stamp)))
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        with pytest.raises(SwitchError, match=said):
            await reconcile(session, await read_back(session), initial_state(parse(text)))
    assert switch.requests == []


async def test_a_half_that_stratum_does_not_read_is_an_error_in_its_words(
    switch: StratumSwitch, tmp_path: Path
) -> None:
    program = pipeline.load(tofinoprogram.write(tmp_path / "other", tofinoprogram.info(stamp="stamp")))
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        registers = await open_registers(session, None)
        with pytest.raises(SwitchError, match="Could not find register data field id"):
            await registers.arrays([Register.PIN_KEY_1])


async def test_a_register_has_the_cells_that_the_program_gives_it(session: Session) -> None:
    await session.push_pipeline()
    registers = await open_registers(session, None)
    cells = session.pipeline.schema.registers[Register.PIN_KEY_1].size
    assert cells < REGISTER_SIZES[Register.PIN_KEY_1], "fewer than on v1model, or this shows nothing"
    assert len((await registers.arrays([Register.PIN_KEY_1]))[0]) == cells


async def test_the_program_that_comes_with_sluice_is_loaded_and_known_again(switch: StratumSwitch) -> None:
    program = pipeline.load(target=STRATUM)
    async with Session(switch.address, 1, program) as session:
        assert not await session.runs_pipeline()
        await session.push_pipeline()
        assert await session.runs_pipeline()
    assert switch.config is not None
    assert switch.config.p4_device_config == program.config().p4_device_config


async def test_a_large_program_that_others_have_loaded_is_replaced(switch: StratumSwitch) -> None:
    program = pipeline.load(target=STRATUM)
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        assert switch.config is not None
        switch.config.ClearField("cookie")
        assert not await session.runs_pipeline()
        await session.push_pipeline()
        assert await session.runs_pipeline()


async def test_a_program_for_another_target_is_refused(program: Pipeline, tmp_path: Path) -> None:
    with pytest.raises(SwitchError, match=r"is for v1model, and stratum runs tna; set another --target"):
        pipeline.load(pipeline.artefacts(), STRATUM)


def test_one_shot_groups_and_weights_are_refused_in_stratums_words() -> None:
    """The fake refuses what the real one does; a profile that forgot would fail here."""
    fake, found = StratumSwitch(), tofinoprogram.info()
    fake.schema.set_p4info(found)
    table = next(t for t in found.tables if t.preamble.alias == "choose")
    entry = p4r.TableEntry(table_id=table.preamble.id)
    entry.action.action_profile_action_set.action_profile_actions.add(weight=1)
    assert fake.tried(_insert(table_entry=entry)) == "Unsupported action type: 4"
    group = p4r.ActionProfileGroup(action_profile_id=table.implementation_id, group_id=1, max_size=2)
    group.members.add(member_id=1, weight=2)
    assert fake.tried(_insert(action_profile_group=group)) == "Member weights greater than 1 are not supported."


def _insert(**entity: p4r.TableEntry | p4r.ActionProfileGroup) -> p4r.Update:
    return p4r.Update(type=INSERT, entity=p4r.Entity(**entity))  # type: ignore[arg-type]
