"""The task of caps on open connections: take full servers out of the ratios, refuse where all are full.

Between two looks nobody knows that a server fills up: it can get as many beyond its cap as arrive meanwhile (ADR 0141).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from sluice.log import logger
from sluice.names import Meter, Table
from sluice.switch.plan import Service
from sluice.switch.secondlook import read_loads

from .balancing import WEIGHTS
from .events import Kind
from .grid import next_turn
from .link import Link
from .world import SERVICE, ServiceView, World

_log = logger("spill")

LOOK_S = 0.1
"""Two registers' cells of the servers with a cap are read so often."""
TELL_S = 2.0
"""A server that was full has room again, for people, when it has had some for so long. At its cap one comes and goes
with each connection."""
_NAMED = 12


async def spill(world: World, link: Link) -> None:
    """Never returns. Raises SwitchError."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await asyncio.sleep(due - loop.time())
        await spill_once(world, link, loop.time())
        due = next_turn(due, LOOK_S, loop.time())


async def look(world: World, link: Link) -> Mapping[int, int]:
    """Read the open connections of the servers that have a cap, for all views; writes nothing. Raises SwitchError."""
    capped = sorted({server for service in world.plan.capped for server in service.caps})
    open_now = await read_loads(link.registers, capped) if capped else {}
    for service in world.plan.capped:
        world.views[service.id].look(service.caps, open_now)
    return open_now


async def spill_once(world: World, link: Link, now_s: float) -> None:
    """Look, write what has changed, say so. Raises SwitchError."""
    before = {service.id: world.views[service.id].full for service in world.plan.capped}
    open_now = await look(world, link)
    for service in world.plan.capped:
        view = world.views[service.id]
        if (view.full, view.refuses) != (before[service.id], view.refusing):
            view.refusing = view.refuses
            servers = {Table.SERVERS} if service.group_of is not None else set[Table]()
            await link.apply(world.part(service), WEIGHTS | servers, [Meter.ADMISSION])
        _tell(world, service, view, open_now, now_s)


def _tell(world: World, service: Service, view: ServiceView, open_now: Mapping[int, int], now_s: float) -> None:
    """Say who is full that was not, and who has had room for a while."""
    full = view.full | ({SERVICE} if view.refuses else frozenset[int]())
    filled = full - view.told_full.keys()
    view.told_full |= dict.fromkeys(full, now_s)
    freed = {one for one, since_s in view.told_full.items() if one not in full and now_s - since_s >= TELL_S}
    for one in freed:
        del view.told_full[one]
    for kind, servers in ((Kind.FULL, filled - {SERVICE}), (Kind.ROOM, freed - {SERVICE})):
        if servers:
            says = "full" if kind is Kind.FULL else "not full any more"
            text = f"{service.name}: {_counted(service, servers, open_now)}: {says}"
            _say(world, kind, text, service, [one.name for one in service.servers if one.id in servers])
    if SERVICE in filled:
        _say(world, Kind.FULL, f"{service.name}: every server is full, new connections are refused", service, [])
    if SERVICE in freed:
        _say(world, Kind.ROOM, f"{service.name} takes new connections again", service, [])


def _say(world: World, kind: Kind, text: str, service: Service, servers: list[str]) -> None:
    world.events.tell(kind, text, service=service.name, servers=servers)
    _log.info(text)


def _counted(service: Service, servers: Collection[int], open_now: Mapping[int, int]) -> str:
    """Names with open connections and caps, a dozen of them."""
    named = [
        f"{one.name} ({open_now[one.id]} of {service.caps[one.id]})" for one in service.servers if one.id in servers
    ]
    more = len(servers) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")
