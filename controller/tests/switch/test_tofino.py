"""Tests of the controller with a fake switch that answers P4Runtime requests as the gateway sluice-tofino does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import tofinoprogram
from configs import web
from fakeswitch import FakeSwitch
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.names import REGISTER_SIZES, Meter, Register
from sluice.switch import pipeline
from sluice.switch.errors import SwitchError
from sluice.switch.ledger import read_ledger
from sluice.switch.pipeline import Pipeline
from sluice.switch.programmer import initial_state
from sluice.switch.reconcile import read_back, reconcile
from sluice.switch.registers import open_registers
from sluice.switch.session import Session
from sluice.switch.targets import TOFINO
from tofinoswitch import TofinoSwitch


@pytest.fixture
async def switch() -> AsyncGenerator[TofinoSwitch]:
    async with TofinoSwitch() as fake:
        yield fake


@pytest.fixture
def program(tmp_path: Path) -> Pipeline:
    return pipeline.load(tofinoprogram.write(tmp_path / "tofino"))


@pytest.fixture
async def session(switch: TofinoSwitch, program: Pipeline) -> AsyncGenerator[Session]:
    async with Session(switch.address, 1, program) as opened:
        await opened.push_pipeline()
        yield opened


def _config(more: str = "") -> Config:
    return parse(web().replace("  servers:", f"{more}  servers:"))


async def test_what_is_there_is_adopted_without_a_write(switch: TofinoSwitch, session: Session) -> None:
    """Adopted entries need no write, even limits that the driver has rounded."""
    limited = _config("  admission: {rate_per_s: 250, burst: 25}\n")
    state = initial_state(limited, {"10.0.2.2": (2, "02:aa:00:00:00:02")})
    await reconcile(session, await read_back(session), state)
    before = len(switch.writes)
    readback = await read_back(session)
    assert {origin.endpoint: origin.id for origin in readback.origins.values()} == {
        s.endpoint: s.id for s in state.plan.servers
    }
    assert await reconcile(session, readback, state) == 0
    assert len(switch.writes) == before


async def test_drained_and_ejected_servers_are_known_again(switch: TofinoSwitch, session: Session) -> None:
    weights = {1: {1: 6, 2: 250}}
    state = replace(initial_state(_config()), weights=weights, ejected=frozenset({1}))
    readback = await read_back(session)
    await reconcile(session, readback, state)
    again = await read_back(session)
    assert (again.draining, again.ejected) == (frozenset(), {1})
    await reconcile(
        session, readback, replace(state, weights={1: {2: 256}}, draining=frozenset({1}), ejected=frozenset())
    )
    again = await read_back(session)
    assert (again.draining, again.ejected) == ({1}, frozenset())


async def test_a_limit_is_one_that_the_meter_can_hold(switch: TofinoSwitch, session: Session) -> None:
    state = initial_state(_config("  admission: {rate_per_s: 250, burst: 100}\n"))
    await reconcile(session, await read_back(session), state)
    admission = switch.schema.meters[Meter.ADMISSION].id
    (written,) = [config for (meter, index), config in switch.meters.items() if (meter, index) == (admission, 1)]
    assert (written.cir, written.cburst) == (255, 100), "of which the driver makes 254"


async def _asked(switch: FakeSwitch, program: Pipeline, servers: int) -> set[bool]:
    """Read the counters of this many servers; return which kinds of requests this takes.

    True: requests for complete registers; False: requests for single cells.
    """
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        registers = await open_registers(session, None)
        switch.asked.clear()
        await read_ledger(registers, range(1, servers + 1))
        return {not entity.register_entry.HasField("index") for entity in switch.asked}


async def test_few_cells_are_read_by_themselves_and_many_as_whole_registers(
    switch: TofinoSwitch, program: Pipeline
) -> None:
    """On a Tofino the counters of 20 servers are read as single cells, those of 200 servers as complete registers.

    To read a single cell takes the driver as long as to copy 32 cells of a complete register (`cell_cost`).
    """
    assert await _asked(switch, program, 20) == {False}
    assert await _asked(switch, program, 200) == {True}
    async with FakeSwitch() as plain:
        assert await _asked(plain, pipeline.load(), 200) == {False}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("connections: {pending_s: 5}", "connections.pending_s is part of the program"),
        ("connections: {linger_s: 400}", "leave connections.pending_s, answered_s and linger_s at or below idle_s"),
        ("news: {rate_window_s: 4}", "news.rate_window_s is part of the program"),
    ],
)
async def test_what_the_program_has_built_in_is_refused_before_anything_is_written(
    switch: TofinoSwitch, session: Session, more: str, said: str
) -> None:
    with pytest.raises(SwitchError, match=said):
        await reconcile(session, await read_back(session), initial_state(parse(web(more=more))))
    assert switch.writes == []


async def test_a_register_has_the_cells_that_the_program_gives_it(session: Session) -> None:
    registers = await open_registers(session, None)
    cells = session.pipeline.schema.registers[Register.PIN_KEY_1].size
    assert cells < REGISTER_SIZES[Register.PIN_KEY_1], "fewer than on v1model, or this shows nothing"
    assert len((await registers.arrays([Register.PIN_KEY_1]))[0]) == cells


async def test_the_program_that_comes_with_sluice_is_loaded_and_known_again(switch: TofinoSwitch) -> None:
    """The program exceeds gRPC's default message size; the controller recognises it by its cookie.

    Without the cookie, the controller installs the program again.
    """
    program = pipeline.load(target=TOFINO)
    async with Session(switch.address, 1, program) as session:
        assert not await session.runs_pipeline()
        await session.push_pipeline()
        assert await session.runs_pipeline()
        assert switch.config is not None
        assert switch.config.p4_device_config == program.config().p4_device_config
        switch.config.ClearField("cookie")
        assert not await session.runs_pipeline()
        await session.push_pipeline()
        assert await session.runs_pipeline()


def test_a_program_for_another_target_is_refused() -> None:
    with pytest.raises(SwitchError, match=r"is for v1model, and tofino runs tna; set another --target"):
        pipeline.load(pipeline.artefacts(), TOFINO)
