"""The task of flash-crowd control: observe the switch, decide, write what changed."""

from __future__ import annotations

import asyncio
import logging

from sluice.config import NewsConfig
from sluice.log import logger
from sluice.names import Meter, Table
from sluice.news import Decision
from sluice.switch.ledger import read_ledger

from .link import Link
from .newstrace import NewsTrace
from .newsview import NewsView
from .world import World

_log = logger("news")

TABLES = frozenset({Table.DESTINATIONS, Table.SAMPLING})
METERS = frozenset({Meter.DESTINATION_LIMIT, Meter.RETURNING_LIMIT})
"""What a decision may change. The refilling of a bucket by a write is why only what differs is written."""


def polls(config: NewsConfig) -> int:
    """Readings in an interval."""
    return max(1, round(config.interval_s / config.poll_s))


async def control(world: World, link: Link, view: NewsView, trace: NewsTrace) -> None:
    """Never returns. Raises SwitchError when the switch does not answer.

    Flows are read several times an interval, as a flow's cell is another's soon after it ended; requests and the
    ledger at its end.
    """
    loop = asyncio.get_running_loop()
    servers = [server.id for server in world.plan.servers]
    due, reading = loop.time(), 0
    view.rebase()
    while True:
        samples = await view.poll(link.registers)
        if reading % polls(view.config) == 0:
            await view.count(link.registers)
            decision = view.observe(loop.time(), await read_ledger(link.registers, servers), samples)
        elif view.sampling:
            await view.count(link.registers)
            decision = view.sampled(loop.time(), samples)
        else:
            decision = None
        if decision is not None:
            before = view.said
            wrote = await link.apply(world.state(), TABLES, METERS) > 0
            trace.write(view, decision, wrote=wrote)
            view.said = _event(decision)
            _log.log(
                logging.INFO if view.said != before else logging.DEBUG,
                decision.sentence,
                extra={key: value for key, value in decision.row().items() if key != "time_s"} | {"wrote": wrote},
            )
        reading += 1
        # A reading that came late does not shift the next one; one that came a whole period late does.
        due = max(due + view.config.interval_s / polls(view.config), loop.time())
        await asyncio.sleep(due - loop.time())


def _event(decision: Decision) -> tuple[object, ...]:
    """What is worth a line in the log when it changes."""
    return (decision.verdict, decision.detection.alarm, decision.hot_spot, frozenset(decision.limits))
