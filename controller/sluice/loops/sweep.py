"""The task that reads the connection table once a minute, since the switch does not report its changes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sluice.log import logger
from sluice.names import Table
from sluice.switch.connections import Slots, idle_for, pins_of, read_slots
from sluice.switch.registers import Registers
from sluice.switch.secondlook import correct, count_expired
from sluice.switch.switchclock import SwitchClock

from .grid import until_next
from .link import Link
from .world import Occupancy, World

_log = logger("sweep")

SWEEP_S = 60.0
"""Seconds between two sweeps. A sweep of 2 x 2^17 slots takes half a second."""

_CHANGE = 0.05
"""The idle time in the switch is only rewritten if it has changed by more than this share."""


async def sweep(world: World, link: Link) -> None:
    """Sweep the connection table every SWEEP_S. Never returns. Raises SwitchError.

    Without sweeps, connections of vanished clients would count as open for ever, and entries of removed servers would
    stay. Idle connections would keep their slots in a full table for as long as in an empty one.
    """
    now_s = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(until_next(link.since_s, SWEEP_S, now_s()))
        await sweep_once(world, link, now_s())


async def sweep_once(world: World, link: Link, now_s: float) -> None:
    """Correct the servers' numbers of open connections, adapt the idle time to the table's occupancy, and drop removed
    servers that have no connections. Raises SwitchError.

    ``now_s``: the time by the event loop's clock, in seconds.
    """
    slots, unexpired = await kept_slots(world, link.registers, link.clock, now_s)
    world.ages.look(slots, unexpired, time.time())
    await correct_loads(world, link.registers, slots, unexpired)
    world.table = Occupancy(slots.size, int(np.count_nonzero(unexpired)))
    idle_s = idle_for(world.table.share, world.config.connections)
    if abs(idle_s - world.idle_s) > _CHANGE * world.idle_s:
        world.idle_s = idle_s
        await link.apply(world.state(), [Table.TIMERS])
        _log.info("the idle time follows the table", extra={"idle_s": round(idle_s)})
    world.pinned = pins_of(slots, unexpired).pinned
    await forget_unused(world, link)


async def kept_slots(
    world: World, registers: Registers, clock: SwitchClock, now_s: float
) -> tuple[Slots, NDArray[np.bool_]]:
    """Return the table's slots, and a mask of the slots that have not expired. Raises SwitchError.

    Expiry is computed at a lower bound of the switch's time (``SwitchClock``). So an expired slot may count as
    unexpired, but an unexpired slot never counts as expired.
    """
    slots = await read_slots(registers)
    newest = slots.newest
    now = 0 if newest is None else clock.at(now_s, newest)
    return slots, slots.unexpired(world.config.connections, world.idle_s, registers.units, now)


async def correct_loads(world: World, registers: Registers, slots: Slots, unexpired: NDArray[np.bool_]) -> None:
    """Correct the numbers of open connections of all servers except agents, which report their own numbers. Raises
    SwitchError."""
    servers = [server.id for service in world.plan.services if not service.is_content for server in service.servers]
    if servers and (changed := await correct(registers, servers, count_expired(slots, unexpired))):
        _log.debug("connections that ended unseen", extra={"servers": changed})


async def forget_unused(world: World, link: Link) -> None:
    """Remove the entries of removed servers to which no pin (a connection's entry in the table) refers any more. Raises
    SwitchError.

    While a pin refers to a removed server, the server's entries stay, so that its connections continue.
    """
    unused = {server.id for server in world.plan.retired if server.id not in world.pinned}
    if unused:
        used = tuple(server for server in world.plan.retired if server.id not in unused)
        world.plan = replace(world.plan, retired=used)
        await link.apply(world.state())
        _log.info("removed servers forgotten", extra={"servers": sorted(unused)})
