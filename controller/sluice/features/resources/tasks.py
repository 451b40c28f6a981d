"""The tasks of servers' TCP resources. They share buffers every second, and close idle connections four times a
second."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

from sluice.log import logger
from sluice.loops.grid import next_turn
from sluice.loops.link import Link
from sluice.loops.watchedtime import Readings
from sluice.loops.world import World
from sluice.names import Table
from sluice.switch.ledger import read_ledger
from sluice.switch.secondlook import read_loads
from sluice.switch.state import State

from .view import ResourcesView, Stages

_log = logger("resources")

TABLES = frozenset({Table.RESOURCES})
SHARE_S = 1.0
"""Seconds between two decisions on buffers."""
CLOSE_S = 0.25
"""Seconds between two rounds of closing. If the time were longer, 30 new connections a second would use up the spare
connections of a small server between two rounds."""
LEARN_S = 1.0
"""Seconds between two readings of pauses, refusals and closings."""
_ATTEMPTS = 8
"""The maximum number of choices in a round. After a choice, the round chooses again if some of the chosen connections
have become active."""


async def share(world: World, link: Link, view: ResourcesView, stages: Stages) -> None:
    """Share the buffers every SHARE_S. Never returns. Raises SwitchError.

    The next decision writes caps that were not written because of an error or a reload.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await asyncio.sleep(due - loop.time())
        await share_once(world, link, view, stages)
        due = next_turn(due, SHARE_S, loop.time())


async def share_once(world: World, link: Link, view: ResourcesView, stages: Stages) -> None:
    """Read the transfers of the interval that ends now, decide, and write changes to the switch. Raises SwitchError."""
    before = view.written
    columns = await stages.transfers()
    decision = view.observe(columns, await read_loads(link.registers, view.sharing))
    await stages.cap(decision.caps)
    if changed := {server for server, caps in view.caps.items() if caps != before.get(server)}:
        # Only changed entries are computed and compared: for all of 1,000 servers this would take longer than the
        # decision.
        await link.apply(_with_caps(world, view, changed), TABLES)
    view.wrote(decision)
    for server, shared in decision.send.items():
        if shared.capped:
            row = {"server": server, "transfers": shared.transfers, "need": int(shared.need), "capped": shared.capped}
            _log.debug("short of send buffers", extra=row)


def _with_caps(world: World, view: ResourcesView, servers: Collection[int]) -> State:
    """Return the desired table entries with the default caps of ``servers`` only."""
    of_services = (
        (service, tuple(server for server in service.servers if server.id in servers))
        for service in world.plan.services
    )
    services = tuple(replace(service, servers=changed) for service, changed in of_services if changed)
    plan = replace(world.plan, services=services, retired=())
    return State(plan=plan, weights={}, caps=view.caps, is_complete=False)


async def close(link: Link, view: ResourcesView, stages: Stages) -> None:
    """Close idle connections every CLOSE_S. Never returns. Raises SwitchError."""
    loop = asyncio.get_running_loop()
    await stages.prepare()
    due = learned = loop.time()
    readings = Readings()
    while True:
        await asyncio.sleep(due - loop.time())
        if loop.time() >= learned:
            view.record_pauses(loop.time(), await stages.pauses(list(view.idling)))
            if view.learning:
                readings.begin()
                ledger = await read_ledger(link.registers, view.learning)
                if readings.is_late():
                    view.rebase_limits()
                view.learn(loop.time(), ledger)
            for server, closings in (await stages.closings(list(view.idling))).items():
                view.idling[server].closings = closings
            learned = next_turn(learned, LEARN_S, loop.time())
        await _close_once(link, view, stages, loop.time())
        due = next_turn(due, CLOSE_S, loop.time())


async def _close_once(link: Link, view: ResourcesView, stages: Stages, now_s: float) -> None:
    """Choose connections, read their present state, and probe those that are still idle.

    A connection that has become active since the switch reported it as idle is not probed. Another connection is chosen
    in its place.
    """
    loads = await read_loads(link.registers, list(view.idling))
    waiting = view.probed
    # facts() discards connections that are no longer idle from the list that idle() returns, so it is called first.
    probed = list(await stages.facts(waiting, now_s)) if waiting else []
    noted = await stages.idle(now_s)
    probes = 0
    for _ in range(_ATTEMPTS):
        chosen = view.choose(now_s, loads, noted, probed)
        idle = {candidate.flow: candidate for candidate in await stages.facts(list(chosen), now_s)} if chosen else {}
        for flow, server in chosen.items():
            candidate = idle.get(flow)
            if candidate is None or not view.still(candidate, server):
                view.denied(now_s, flow, server)
                continue
            await stages.probe(candidate, view.least_age_s(server, flow))
            view.asked(now_s, candidate)
            probed.append(candidate)
            probes += 1
        if len(idle) == len(chosen):
            break
    if probes:
        _log.info("idle connections are closed", extra={"asked": probes, "open": loads})
