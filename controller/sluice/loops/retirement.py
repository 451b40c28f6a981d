"""The task that forgets servers that are no longer configured, once their last connection is gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from sluice.log import logger
from sluice.switch.connections import read_pins

from .grid import until_next
from .link import Link
from .world import World

_log = logger("retirement")

_AT_MOST_EVERY_S = 30.0


async def retire(world: World, link: Link) -> None:
    """Never returns. Raises SwitchError. Until then their entries stay, so that their connections live on."""
    time = asyncio.get_running_loop().time
    while True:
        period_s = max(_AT_MOST_EVERY_S, world.config.connections.idle_s)
        await asyncio.sleep(until_next(link.since_s, period_s, time()))
        await forget_unused(world, link)


async def forget_unused(world: World, link: Link) -> None:
    """Take the retired servers that hold no connection out of the switch. Raises SwitchError."""
    if not world.plan.retired:
        return
    pins = await read_pins(link.registers, world.config.connections.idle_s)
    gone = {r.id for r in world.plan.retired if r.id not in pins.held}
    if gone:
        kept = tuple(r for r in world.plan.retired if r.id not in gone)
        world.plan = replace(world.plan, retired=kept)
        await link.apply(world.state())
        _log.info("retired servers forgotten", extra={"servers": sorted(gone)})
