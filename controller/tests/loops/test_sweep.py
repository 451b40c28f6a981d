"""Tests of the sweep of the connection table each minute: removed servers, and the timeout of idle connections."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
from configs import web
from fakeswitch import FakeSwitch, Memory
from live import WriteConfig
from numpy.typing import NDArray
from sluice.config.load import load, parse
from sluice.config.model import ConnectionsConfig
from sluice.features import world_of
from sluice.loops.adoption import adopt
from sluice.loops.commands import reconfigure
from sluice.loops.link import Link
from sluice.loops.sweep import sweep, sweep_once
from sluice.names import CONNECTION_SLOTS, TICK_BASE, PinState, Register
from sluice.switch.connections import idle_for
from sluice.switch.reconcile import Readback, read_back
from sluice.switch.session import Session
from virtual import in_virtual_time


async def test_retired_server_leaves_with_its_last_connection(
    switch: FakeSwitch, session: Session, write_config: WriteConfig
) -> None:
    config = write_config()
    registers = Memory()
    world = world_of(load(config))
    link = Link(session, registers, await read_back(session))
    await link.apply(world.state())
    await registers.write(Register.PIN_KEY_1, 9, 1 << 36 | TICK_BASE)
    await registers.write(Register.PIN_SERVER_1, 9, 1)

    config.write_text(config.read_text().replace("  - {name: s1, address: 10.0.2.2, port: 80}\n", ""))
    reconfigure(world, load(config), now_s=0)
    await link.apply(world.state())
    await sweep_once(world, link, 0.0)
    assert len(switch.entries("servers")) == 2
    assert set(switch.weights(1)) == {2}
    assert world.ages.since(9, 1 << 16 | 1, 2 * link.size(Register.PIN_KEY_1), is_open=True).before_s is not None, (
        "`explain` knows of it"
    )

    await registers.write(Register.PIN_KEY_1, 9, 0)
    await sweep_once(world, link, 0.0)
    assert len(switch.entries("servers")) == len(switch.entries("origins")) == 1
    assert len(switch.entries("services")) == 2


class OneSlot(Memory):
    """A connection table with one connection, to server 1; it records the times of readings."""

    def __init__(self) -> None:
        super().__init__()
        self.cells[Register.PIN_KEY_1][0], self.cells[Register.PIN_SERVER_1][0] = 1 << 36 | TICK_BASE, 1
        self.read_at: set[float] = set()

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        self.read_at.add(asyncio.get_running_loop().time())
        return [np.array([self.cells[Register(register)].get(0, 0)], np.uint64) for register in registers]


def test_the_table_is_swept_in_time_however_often_the_configuration_is_reloaded() -> None:
    table = OneSlot()

    async def run() -> None:
        world, link = world_of(parse(web())), Link(cast(Session, None), table, Readback(entries={}, meters={}))
        while asyncio.get_running_loop().time() < 280:
            task = asyncio.create_task(sweep(world, link))
            await asyncio.sleep(47)
            task.cancel()

    in_virtual_time(run())
    assert sorted(table.read_at) == pytest.approx([60, 120, 180, 240])


@pytest.mark.parametrize(
    ("taken", "idle_s"), [(0.0, 7440.0), (0.25, 7440.0), (0.375, 1494.0), (0.5, 300.0), (1.0, 300.0)]
)
def test_the_idle_time_is_short_when_the_table_is_full(taken: float, idle_s: float) -> None:
    assert idle_for(taken, ConnectionsConfig()) == pytest.approx(idle_s, abs=1)
    assert idle_for(taken, ConnectionsConfig(idle_s=60)) == 60, "never longer than configured"


async def test_the_switch_is_given_the_idle_time_that_fits_its_table(
    switch: FakeSwitch, session: Session, write_config: WriteConfig
) -> None:
    registers = Memory()
    world = world_of(load(write_config()))
    link = Link(session, registers, await read_back(session))
    await link.apply(world.state())
    assert idle_ticks(switch) == registers.units.ticks(7440)
    for slot in range(CONNECTION_SLOTS):
        registers.cells[Register.PIN_KEY_2][slot] = 1 << 36 | PinState.ESTABLISHED << 32 | TICK_BASE
    await sweep_once(world, link, 0.0)
    assert idle_ticks(switch) == registers.units.ticks(300)


def idle_ticks(switch: FakeSwitch) -> int:
    """Return the timeout of idle connections in ticks: the first parameter of the default action of table `timers`."""
    number = switch.schema.tables["timers"].id
    (entry,) = [entity for (table, default, *_), entity in switch.tables.items() if table == number and default]
    return int.from_bytes(entry.action.action.params[0].value, "big")


async def test_restarted_controller_still_has_the_retired_server(
    switch: FakeSwitch, session: Session, write_config: WriteConfig
) -> None:
    config = write_config()
    world = world_of(load(config))
    readback = await read_back(session)
    await Link(session, Memory(), readback).apply(world.state())

    config.write_text(config.read_text().replace("  - {name: s1, address: 10.0.2.2, port: 80}\n", ""))
    fresh = world_of(load(config))
    readback = await read_back(session)
    adopt(fresh, readback, now_s=0)
    assert [r.id for r in fresh.plan.retired] == [1]
    await Link(session, Memory(), readback).apply(fresh.state())
    assert len(switch.entries("servers")) == 2
    assert switch.weights(1) == {2: 256}
