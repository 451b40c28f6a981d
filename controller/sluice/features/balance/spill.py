"""The task of caps on open connections: it excludes full servers, and refuses new connections to a service whose
servers are all full.

Between two readings a server can exceed its cap by as many connections as arrive in this time (ADR 0141).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from sluice.log import logger
from sluice.loops.events import Kind
from sluice.loops.grid import next_turn
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import Meter, Table
from sluice.switch.plan import Plan, Service
from sluice.switch.secondlook import read_loads

from .decisions import WEIGHTS
from .service import SERVICE, ServiceView

Views = Mapping[int, ServiceView]
"""The view of each service, by service number."""
_log = logger("spill")

READ_S = 0.1
"""Seconds between two readings of the open connections of servers that have a cap."""
ROOM_S = 2.0
"""Seconds for which a server must stay below its cap before an event reports that it has room. At the cap, every
connection that opens or closes changes whether the server has room."""
_NAMED = 12
"""The most servers that the text of an event names."""


async def spill(world: World, views: Views, link: Link) -> None:
    """Enforce the caps of all services. Never returns. Raises SwitchError."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await asyncio.sleep(due - loop.time())
        await spill_once(world, views, link, loop.time())
        due = next_turn(due, READ_S, loop.time())


async def read_full(plan: Plan, views: Views, link: Link) -> Mapping[int, int]:
    """Read the open connections of the servers that have a cap, and update all views. Writes nothing. Raises
    SwitchError."""
    capped = sorted({server for service in plan.capped for server in service.caps})
    open_now = await read_loads(link.registers, capped) if capped else {}
    for service in plan.capped:
        views[service.id].update_full(service.caps, open_now)
    return open_now


async def spill_once(world: World, views: Views, link: Link, now_s: float) -> None:
    """Read the open connections, write changes to the switch, and report them. Raises SwitchError."""
    before = {service.id: views[service.id].full for service in world.plan.capped}
    open_now = await read_full(world.plan, views, link)
    for service in world.plan.capped:
        view = views[service.id]
        if (view.full, view.refuses) != (before[service.id], view.refusing):
            view.refusing = view.refuses
            servers = {Table.SERVERS} if service.group_of is not None else set[Table]()
            await link.apply(world.state(service), WEIGHTS | servers, [Meter.ADMISSION])
        _report_changes(world, service, view, open_now, now_s)


def _report_changes(
    world: World, service: Service, view: ServiceView, open_now: Mapping[int, int], now_s: float
) -> None:
    """Report as events that servers, or all servers of the service, have become full or have had room for ROOM_S."""
    full = view.full | ({SERVICE} if view.refuses else frozenset[int]())
    filled = full - view.reported_full.keys()
    view.reported_full |= dict.fromkeys(full, now_s)
    freed = {server for server, at_s in view.reported_full.items() if server not in full and now_s - at_s >= ROOM_S}
    for server in freed:
        del view.reported_full[server]
    for kind, servers in ((Kind.FULL, filled - {SERVICE}), (Kind.ROOM, freed - {SERVICE})):
        if servers:
            change = "full" if kind is Kind.FULL else "not full any more"
            text = f"{service.name}: {_counted(service, servers, open_now)}: {change}"
            _report(world, kind, text, service, [server.name for server in service.servers if server.id in servers])
    if SERVICE in filled:
        _report(world, Kind.FULL, f"{service.name}: every server is full, new connections are refused", service, [])
    if SERVICE in freed:
        _report(world, Kind.ROOM, f"{service.name} takes new connections again", service, [])


def _report(world: World, kind: Kind, text: str, service: Service, servers: list[str]) -> None:
    world.events.report(kind, text, service=service.name, servers=servers)
    _log.info(text)


def _counted(service: Service, servers: Collection[int], open_now: Mapping[int, int]) -> str:
    """Return the names of servers with their open connections and caps, at most _NAMED servers."""
    named = [
        f"{server.name} ({open_now[server.id]} of {service.caps[server.id]})"
        for server in service.servers
        if server.id in servers
    ]
    more = len(servers) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more} more" if more > 0 else "")
