"""The task of flash-crowd control: it reads the switch, decides, and writes changes to the switch."""

from __future__ import annotations

import asyncio
import logging

from sluice.features.balance.feature import Balance
from sluice.log import logger
from sluice.loops.events import Kind
from sluice.loops.grid import next_turn
from sluice.loops.link import Link
from sluice.loops.watchedtime import Readings
from sluice.loops.world import World
from sluice.names import Meter, Table
from sluice.news import Decision
from sluice.switch.ledger import read_counts

from .baseline import BaselineFile
from .trace import NewsTrace
from .view import NewsView

_log = logger("news")

TABLES = frozenset({Table.DESTINATIONS, Table.SAMPLING})
METERS = frozenset({Meter.DESTINATION_LIMIT, Meter.RETURNING_LIMIT})
"""The tables and meters that a decision can change. A write refills a token bucket, so unchanged meters are not
written."""

MEASURED = frozenset({Table.RATE_SETTINGS})
"""The table that can change after a reading. Its entries select the responses that are measured."""


async def control(
    world: World, link: Link, view: NewsView, trace: NewsTrace, baseline: BaselineFile | None = None
) -> None:
    """Control flash crowds. Never returns. Raises SwitchError when the switch does not answer.

    The usual traffic is saved in the file ``baseline``, if any.

    Flows are read several times per interval, because another flow can take over a flow's register cell soon after the
    flow has ended. Requests are read at the end of the interval and, while the switch samples packets, together with
    the flows. The servers' counts are read only at the end of the interval. Nothing is learned from an interval with a
    late reading. When the task restarts after a reload, it keeps the times at which its intervals were to end, as
    balancing does.
    """
    loop, balance = asyncio.get_running_loop(), world[Balance]
    interval_s, poll_s = view.config.interval_s, min(view.config.poll_s, view.config.interval_s)
    reading, observation = loop.time(), view.begin(loop.time())
    readings = Readings()
    while True:
        readings.begin()
        share = view.flow_share
        samples = await view.poll(link.registers)
        if view.flow_share != share:
            await link.apply(world.state(), MEASURED)
        ends = loop.time() >= observation
        if ends or view.sampling:
            await view.count(link.registers)
        ledger = await read_counts(link.registers, world.plan.services) if ends else {}
        late = readings.is_late()
        if late:
            view.rebase()
        if ends:
            decision = view.observe(loop.time(), ledger, samples, balance.ejected, balance.ratios)
            view.due_s = observation = next_turn(observation, interval_s, loop.time())
        elif view.sampling:
            decision = view.sampled(loop.time(), samples)
        else:
            decision = None
        trace.note(late=late, base=ends and decision is None)
        if decision is not None:
            await _act(world, link, view, trace, decision)
            if baseline is not None:
                baseline.keep(view)
        reading = next_turn(reading, poll_s, loop.time())
        await asyncio.sleep(min(reading, observation) - loop.time())


async def _act(world: World, link: Link, view: NewsView, trace: NewsTrace, decision: Decision) -> None:
    """Write a decision's changes to the switch, and report them."""
    before = view.reported
    wrote = await link.apply(world.state(), TABLES, METERS) > 0
    trace.write(view, decision, wrote=wrote)
    view.reported = _event(decision)
    if view.reported != before:
        cause, limits = str(decision.verdict.cause), len(decision.limits)
        world.events.report(
            Kind.CROWD, decision.sentence, cause=cause, alarm=decision.detection.alarm, limits=limits, wrote=wrote
        )
    _log.log(
        logging.INFO if view.reported != before else logging.DEBUG,
        decision.sentence,
        extra={key: value for key, value in decision.row().items() if key != "time_s"} | {"wrote": wrote},
    )


def _event(decision: Decision) -> tuple[object, ...]:
    """Return the parts of a decision whose changes are reported as events."""
    detection = decision.detection
    return (
        decision.verdict,
        decision.frozen,
        detection.alarm,
        detection.unprotected,
        decision.hot_spot,
        frozenset(decision.limits),
    )
