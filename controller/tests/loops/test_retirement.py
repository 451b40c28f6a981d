"""A server that is no longer configured stays translated until its last connection is gone."""

from __future__ import annotations

from fakeswitch import FakeSwitch, Memory
from live import WriteConfig
from sluice.configload import load
from sluice.loops.link import Link
from sluice.loops.retirement import forget_unused
from sluice.loops.world import World
from sluice.names import TICK_BASE, Register
from sluice.switch import pipeline
from sluice.switch.reconcile import read_back
from sluice.switch.session import Session


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
