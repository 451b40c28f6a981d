"""A server that is no longer configured stays translated until its last connection is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from configs import web
from fakeswitch import FakeSwitch, Memory
from live import WriteConfig
from numpy.typing import NDArray
from sluice.configload import load, parse
from sluice.loops.link import Link
from sluice.loops.retirement import forget_unused, retire
from sluice.loops.secondlook import keep_loads
from sluice.loops.world import World
from sluice.names import TICK_BASE, Register
from sluice.switch import pipeline
from sluice.switch.reconcile import Found, read_back
from sluice.switch.session import Session
from virtual import in_virtual_time


async def test_retired_server_leaves_with_its_last_connection(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    registers = Memory()
    async with Session(switch.address, 1, pipeline.load()) as session:
        await session.push_pipeline()
        world = World.of(load(config))
        link = Link(session, registers, await read_back(session))
        await link.apply(world.state())
        await registers.write(Register.PIN_KEY_1, 9, 1 << 32 | TICK_BASE)
        await registers.write(Register.PIN_SERVER_1, 9, 1)

        config.write_text(config.read_text().replace("  - {name: s1, address: 10.0.2.2, port: 80}\n", ""))
        world.reconfigure(load(config), now_s=0)
        await link.apply(world.state())
        await forget_unused(world, link)
        assert len(switch.entries("servers")) == 2
        assert set(switch.weights(1)) == {2}

        await registers.write(Register.PIN_KEY_1, 9, 0)
        await forget_unused(world, link)
        assert len(switch.entries("servers")) == len(switch.entries("origins")) == 1
        assert len(switch.entries("services")) == 2


class OneSlot(Memory):
    """A connection table with one connection, to the first server, and by which task it was read when."""

    def __init__(self) -> None:
        super().__init__()
        self.cells[Register.PIN_KEY_1][0], self.cells[Register.PIN_SERVER_1][0] = 1 << 32 | TICK_BASE, 1
        self.read_at: dict[str, set[float]] = {"retirement": set(), "second-look": set()}

    async def arrays(self, registers: Sequence[Register]) -> list[NDArray[np.uint64]]:
        task = asyncio.current_task()
        assert task is not None
        self.read_at[task.get_name()].add(asyncio.get_running_loop().time())
        return [np.array([self.cells[register].get(0, 0)], np.uint64) for register in registers]


def test_tables_are_swept_in_time_however_often_the_configuration_is_reloaded() -> None:
    table = OneSlot()

    async def run() -> None:
        text = web(mode="production", more="connections: {idle_s: 90}")
        world, link = World.of(parse(text)), Link(cast(Session, None), table, Found(entries={}, meters={}))
        world.plan = replace(world.plan, retired=(next(world.plan.servers).retired(1),))
        while asyncio.get_running_loop().time() < 280:
            tasks = [
                asyncio.create_task(retire(world, link), name="retirement"),
                asyncio.create_task(keep_loads(world, link), name="second-look"),
            ]
            await asyncio.sleep(47)
            for task in tasks:
                task.cancel()

    in_virtual_time(run())
    assert sorted(table.read_at["retirement"]) == pytest.approx([90, 180, 270])
    assert sorted(table.read_at["second-look"]) == pytest.approx([60, 120, 180, 240])


async def test_restarted_controller_still_knows_the_retired_one(switch: FakeSwitch, write_config: WriteConfig) -> None:
    config = write_config()
    async with Session(switch.address, 1, pipeline.load()) as session:
        await session.push_pipeline()
        world = World.of(load(config))
        found = await read_back(session)
        await Link(session, Memory(), found).apply(world.state())

        config.write_text(config.read_text().replace("  - {name: s1, address: 10.0.2.2, port: 80}\n", ""))
        fresh = World.of(load(config))
        found = await read_back(session)
        fresh.adopt(found, now_s=0)
        assert [r.id for r in fresh.plan.retired] == [1]
        await Link(session, Memory(), found).apply(fresh.state())
        assert len(switch.entries("servers")) == 2
        assert switch.weights(1) == {2: 256}
