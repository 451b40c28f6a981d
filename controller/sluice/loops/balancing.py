"""The task of one service: observe the ledger, decide the ratios, write what changed. Every T seconds."""

from __future__ import annotations

import asyncio
import logging

from sluice.log import logger
from sluice.names import Table
from sluice.switch.ledger import read_ledger
from sluice.switch.plan import Service
from sluice.switch.secondlook import read_loads

from .link import Link
from .trace import Trace, record
from .world import World

_log = logger("balance")

WEIGHTS = frozenset({Table.CHOOSE, Table.CHOOSE_OTHER})
TABLES = WEIGHTS | {Table.SERVERS}
"""What a decision may change: the weights, and which servers are ejected."""


def touched(before: frozenset[int], after: frozenset[int]) -> frozenset[Table]:
    """What a decision can have changed, by who was and who is ejected. The weights alone as a rule: to make and compare
    the entries of 1,000 servers takes longer than all the rest of a decision."""
    return TABLES if before != after else WEIGHTS


async def balance(world: World, link: Link, service: Service, trace: Trace) -> None:
    """Never returns. Raises SwitchError when the switch does not answer."""
    loop = asyncio.get_running_loop()
    servers = [server.id for server in service.servers]
    view = world.views[service.id]
    due = loop.time()
    while True:
        readings = await read_ledger(link.registers, servers)
        looking = service.second_look(view.balancer.options.mode)
        open_now = await read_loads(link.registers, servers) if looking else None
        before, ejected = view.balancer.weights(), view.balancer.ejected
        hold = world.news is not None and world.news.freezes(service.id)
        decision = view.balancer.observe(loop.time(), readings, hold=hold, open_now=open_now)
        if decision is not None:
            state = world.part(service) if link.apart else world.state()
            wrote = await link.apply(state, touched(ejected, view.balancer.ejected)) > 0
            if decision.weights != before:
                view.weight_changes += 1
            view.decision = decision
            trace.write(record(service, view, decision, wrote=wrote))
            _log.log(
                logging.INFO if wrote else logging.DEBUG,
                "decision",
                extra={
                    "service": service.name,
                    "condition": str(decision.diagnosis.condition),
                    "reason": decision.reason,
                    "ratios": {world.names(service)[i]: round(r, 4) for i, r in decision.ratios.items()},
                    "wrote": wrote,
                },
            )
        # A reading that came late does not shift the next one; one that came a whole period late does.
        due = max(due + view.balancer.options.period_s, loop.time())
        await asyncio.sleep(due - loop.time())
