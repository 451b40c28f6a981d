"""Stage verdict: the rate limits of packets to the controller (punts), and the counters of drops and punts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finsy import P4CounterEntry

from sluice import columns
from sluice.names import Counter, DropReason, PuntReason

from .bucket import Bucket
from .session import Session
from .state import State


def wanted(state: State) -> dict[int, Bucket]:
    """Return the rate limit of punts (packets to the controller) for each PuntReason."""
    limits = state.plan.config.punts
    bucket = Bucket(limits.rate_per_s, limits.burst)
    return {int(reason): bucket for reason in PuntReason if reason is not PuntReason.NONE}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Cumulative packet counters of the switch."""

    forwarded: int
    drops: Mapping[str, int]
    punts: Mapping[str, int]
    punts_limited: Mapping[str, int]
    services: Mapping[int, Mapping[str, int | None]]
    """For each service, by service number: counts by the names of `columns.SERVICE`. A count that the switch's program
    lacks is None."""


async def read_traffic(session: Session, services: Sequence[int]) -> Traffic:
    """Return every counter that users see. Raises SwitchError."""
    available = {counter: info.id for counter in Counter if (info := session.pipeline.schema.counters.get(counter))}
    per_service = columns.counters(columns.SERVICE)
    cells_to_read = [
        *((Counter.VERDICTS, int(reason)) for reason in DropReason),
        *((counter, int(reason)) for counter in (Counter.PUNTS, Counter.PUNTS_LIMITED) for reason in PuntReason),
        *((counter, service) for counter in per_service.values() if counter in available for service in services),
    ]
    entities = await session.read(P4CounterEntry(counter, index=index) for counter, index in cells_to_read)
    names = {number: counter for counter, number in available.items()}
    cells = {
        (names[e.counter_entry.counter_id], e.counter_entry.index.index): e.counter_entry.data.packet_count
        for e in entities
    }

    def count(counter: Counter, index: int) -> int:
        return cells.get((counter, index), 0)

    def by_reason(counter: Counter) -> dict[str, int]:
        return {reason.name.lower(): count(counter, reason) for reason in PuntReason if reason is not PuntReason.NONE}

    return Traffic(
        forwarded=count(Counter.VERDICTS, DropReason.NONE),
        drops={
            reason.name.lower(): count(Counter.VERDICTS, reason)
            for reason in DropReason
            if reason is not DropReason.NONE
        },
        punts=by_reason(Counter.PUNTS),
        punts_limited=by_reason(Counter.PUNTS_LIMITED),
        services={
            service: {
                name: count(counter, service) if counter in available else None for name, counter in per_service.items()
            }
            for service in services
        },
    )
