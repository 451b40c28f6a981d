"""The tasks of servers' TCP resources: share their buffers every second, close idle connections four times a second."""

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
CLOSE_S = 0.25
"""At 30 new connections a second a longer one would use up what a small server has to spare."""
LEARN_S = 1.0
_LOOKS = 8
"""At most so many times a turn, when what was noted is not so any more."""


async def share(world: World, link: Link, view: ResourcesView, stages: Stages) -> None:
    """Never returns. Raises SwitchError.

    What was not written is not taken for written: after an error, or when a reload comes between, it is written by the
    next decision.
    """
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        await asyncio.sleep(due - loop.time())
        await share_once(world, link, view, stages)
        due = next_turn(due, SHARE_S, loop.time())


async def share_once(world: World, link: Link, view: ResourcesView, stages: Stages) -> None:
    """One interval's end: read, decide, write what has changed. Raises SwitchError."""
    before = view.written
    columns = await stages.transfers()
    decision = view.observe(columns, await read_loads(link.registers, view.sharing))
    await stages.cap(decision.caps)
    if changed := {server for server, caps in view.caps.items() if caps != before.get(server)}:
        # To make and compare the entries of 1,000 servers takes longer than all the rest.
        await link.apply(_with_caps(world, view, changed), TABLES)
    view.wrote(decision)
    for server, told in decision.send.items():
        if told.capped:
            row = {"server": server, "transfers": told.transfers, "need": int(told.need), "capped": told.capped}
            _log.debug("short of send buffers", extra=row)


def _with_caps(world: World, view: ResourcesView, servers: Collection[int]) -> State:
    """Return the desired state of the defaults of some servers alone."""
    of_services = (
        (service, tuple(server for server in service.servers if server.id in servers))
        for service in world.plan.services
    )
    services = tuple(replace(service, servers=changed) for service, changed in of_services if changed)
    plan = replace(world.plan, services=services, retired=())
    return State(plan=plan, weights={}, caps=view.caps, whole=False)


async def close(link: Link, view: ResourcesView, stages: Stages) -> None:
    """Never returns. Raises SwitchError."""
    loop = asyncio.get_running_loop()
    await stages.prepare()
    due = learned = loop.time()
    readings = Readings()
    while True:
        await asyncio.sleep(due - loop.time())
        if loop.time() >= learned:
            view.heed(loop.time(), await stages.pauses(list(view.idling)))
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
    """Choose, look again at those chosen, and probe them.

    The switch's notes are old where a connection has become active: those are looked at once, and others chosen.
    """
    loads = await read_loads(link.registers, list(view.idling))
    waiting = view.probed
    probed = list(await stages.facts(waiting, now_s)) if waiting else []  # first, for it ends notes
    noted = await stages.idle(now_s)
    many = 0
    for _ in range(_LOOKS):
        chosen = view.choose(now_s, loads, noted, probed)
        seen = {one.flow: one for one in await stages.facts(list(chosen), now_s)} if chosen else {}
        for flow, server in chosen.items():
            one = seen.get(flow)
            if one is None or not view.still(one, server):
                view.denied(now_s, flow, server)
                continue
            await stages.probe(one, view.least_age_s(server, flow))
            view.asked(now_s, one)
            probed.append(one)
            many += 1
        if len(seen) == len(chosen):
            break
    if many:
        _log.info("idle connections are closed", extra={"asked": many, "open": loads})
