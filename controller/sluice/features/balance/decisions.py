"""The task that balances one service: every T seconds it reads the ledger, decides the ratios, and writes changes.

The ledger is the servers' counts in the switch. If new connections compare several servers (the second look), the task
also samples the numbers of open connections between decisions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from itertools import pairwise

from sluice.balance import Balancer, Decision
from sluice.balance.slowness import SAMPLE_TIMES
from sluice.log import logger
from sluice.loops.events import Events, Kind
from sluice.loops.grid import nearest, next_turn
from sluice.loops.link import Link
from sluice.loops.watchedtime import Readings
from sluice.loops.world import World
from sluice.names import Table
from sluice.switch.ledger import read_counts
from sluice.switch.plan import Service
from sluice.switch.secondlook import read_loads

from .service import ServiceView
from .trace import Trace, record

_Weights = Mapping[int, int]
_log = logger("balance")

WEIGHTS = frozenset({Table.CHOOSE, Table.CHOOSE_OTHER, Table.IDLE_MEMBERS})
TABLES = WEIGHTS | {Table.SERVERS, Table.CHOOSE_STABLE}
"""The tables that a decision can change, since it decides the weights and which servers are ejected."""

BEHIND_S = 0.1
"""Seconds from a verdict that can freeze the weights, such as that of flash-crowd control, to the next decision, so
that the verdict is current. Without this delay, weights moved in the second before a crowd's alarm."""


def touched(before: frozenset[int], after: frozenset[int]) -> frozenset[Table]:
    """Return the tables that a decision can have changed, given the servers that were ejected before and after it: all
    TABLES if these sets differ, else WEIGHTS. Computing and comparing all entries of 1,000 servers would take longer
    than the rest of a decision."""
    return TABLES if before != after else WEIGHTS


async def balance(world: World, view: ServiceView, link: Link, service: Service, trace: Trace) -> None:
    """Balance a service. Never returns. Raises SwitchError when the switch does not answer.

    When the task restarts after a reload, its next decision is due at the time planned before the reload, or earlier if
    the new period is shorter. The due time is then moved to the nearest time that is BEHIND_S after a verdict that can
    freeze the weights.
    """
    loop = asyncio.get_running_loop()
    servers = [server.id for server in service.servers]
    begin, period_s = loop.time(), view.balancer.options.period_s
    due = begin if view.due_s is None else min(view.due_s, begin + period_s)
    for feature in world.features:
        if (turn := feature.verdict_turn(begin)) is not None:
            verdict, interval_s = turn
            due = nearest(due, verdict + BEHIND_S, min(interval_s, period_s), begin + BEHIND_S)
    readings_of_ledger = Readings()
    while True:
        await _sample_open(link, service, view.balancer, due)
        await asyncio.sleep(due - loop.time())
        readings_of_ledger.begin()
        readings = await read_counts(link.registers, [service])
        if service.second_look(view.balancer.options.mode):
            view.balancer.sample_open(await read_loads(link.registers, servers))
        late = readings_of_ledger.is_late()
        before, ejected = view.weights, view.balancer.ejected
        decision = view.balancer.observe(
            loop.time(), readings, hold=world.holds(service.id), full=view.full_since_decision, late=late
        )
        view.full_since_decision, weights = view.full, view.weights
        try:
            if decision is not None:
                wrote = await link.apply(world.state(service), touched(ejected, view.balancer.ejected)) > 0
                view.weight_changes += weights != before
                last, view.decision = view.decision, decision
                trace.write(record(service, view, decision, wrote=wrote))
                _log_decision(world.names(service), service, decision, wrote=wrote)
                if weights != before or last is None or last.diagnosis.condition != decision.diagnosis.condition:
                    acted_on = view.balancer.policy.ejects
                    _report_decision(world.events, service, decision, (before, weights), acted_on=acted_on)
                _report_ejections(world.events, service, ejected, view.balancer.ejected)
        finally:
            view.due_s = due = next_turn(due, period_s, loop.time())


def _log_decision(names: Mapping[int, str], service: Service, decision: Decision, *, wrote: bool) -> None:
    _log.log(
        logging.INFO if wrote else logging.DEBUG,
        "decision",
        extra={
            "service": service.name,
            "condition": str(decision.diagnosis.condition),
            "reason": decision.reason,
            "ratios": {names[i]: round(r, 4) for i, r in decision.ratios.items()},
            "wrote": wrote,
        },
    )


def _report_decision(
    events: Events, service: Service, decision: Decision, before_after: tuple[_Weights, _Weights], *, acted_on: bool
) -> None:
    """Report a decision as an event: each changed weight with its former value, and the diagnosis as a sentence."""
    names = {server.id: server.name for server in service.servers}
    earlier, after = (
        {names[number]: weight for number, weight in weights.items() if number in names} for weights in before_after
    )
    changed = [
        f"{name} {earlier.get(name, 0)} -> {after.get(name, 0)}"
        for name in names.values()
        if earlier.get(name, 0) != after.get(name, 0)
    ]
    sentence = decision.diagnosis.sentence(names, acted_on=acted_on)
    events.report(
        Kind.DECISION,
        f"{service.name}: {', '.join(changed) or 'weights stay'}. {sentence}",
        service=service.name,
        condition=str(decision.diagnosis.condition),
        reason=decision.reason,
        weights=after,
        before=earlier,
    )


def _report_ejections(events: Events, service: Service, before: frozenset[int], after: frozenset[int]) -> None:
    for server in service.servers:
        if (server.id in before) != (server.id in after):
            is_ejected = server.id in after
            text = f"{service.name}/{server.name} {'is ejected' if is_ejected else 'takes connections again'}"
            kind = Kind.EJECTED if is_ejected else Kind.RETURNED
            events.report(kind, text, service=service.name, server=server.name)


async def _sample_open(link: Link, service: Service, balancer: Balancer, end_s: float) -> None:
    """Sample the open connections of a service with second look during the period that ends at ``end_s``; the caller
    takes the sample at the end. A sample is omitted if the next one is already due."""
    loop = asyncio.get_running_loop()
    if not service.second_look(balancer.options.mode):
        return
    for at, following in pairwise(sample_times(end_s, balancer.options.period_s)):
        await asyncio.sleep(at - loop.time())
        if loop.time() < following:
            balancer.sample_open(await read_loads(link.registers, [server.id for server in service.servers]))


def sample_times(end_s: float, period_s: float) -> list[float]:
    """Return the times at which open connections are sampled in the period that ends at ``end_s``. The last sample is
    at the period's end."""
    return [end_s - (1.0 - share) * period_s for share in (*SAMPLE_TIMES, 1.0)]
