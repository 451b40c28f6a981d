"""The task that takes connections which ended unseen out of what the second look takes for open."""

from __future__ import annotations

import asyncio

from sluice.log import logger
from sluice.switch.registers import Registers
from sluice.switch.secondlook import correct
from sluice.switch.switchclock import SwitchClock

from .grid import until_next
from .link import Link
from .world import World

_log = logger("second-look")

SWEEP_S = 60.0
"""So often. Half a second of work on a table of 2 x 2^17 slots."""


async def keep_loads(world: World, link: Link) -> None:
    """Never returns. Raises SwitchError. Without it a client that vanishes would count against its server for ever."""
    time = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(until_next(link.since_s, SWEEP_S, time()))
        await correct_loads(world, link.registers, link.clock, time())


async def correct_loads(world: World, registers: Registers, clock: SwitchClock, now_s: float) -> None:
    """Correct the loads of the servers of all services that take a second look. Raises SwitchError."""
    looking = world.second_look(world.plan.services)
    servers = [server.id for service in world.plan.services if service.id in looking for server in service.servers]
    if not servers:
        return
    changed = await correct(registers, servers, world.config.connections.idle_s, clock, now_s)
    if changed:
        _log.debug("connections that ended unseen", extra={"servers": changed})
