"""Stage verdict: how much may go to the controller, and the counters of drops and punts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from finsy import P4CounterEntry

from sluice.names import Counter, DropReason, PuntReason

from .bucket import Bucket
from .session import Session
from .state import State


def wanted(state: State) -> dict[int, Bucket]:
    """The punt limits by reason."""
    limits = state.plan.config.punts
    bucket = Bucket(limits.rate_per_s, limits.burst)
    return {int(reason): bucket for reason in PuntReason if reason is not PuntReason.NONE}


@dataclass(frozen=True, slots=True)
class ServiceCounts:
    """Cumulative packets of one service."""

    offered: int
    """SYNs."""
    refused: int
    """SYNs, by admission."""
    claimed: int
    """Connections pinned."""
    unpinned_new: int
    """SYNs that found no free slot."""
    unpinned_mid: int
    """Other packets without a pin."""
    moved: int | None
    """Connections whose SYN, said again, went to another server than before; None where the switch does not count."""
    disowned: int | None
    """Resets of servers for connections that are not pinned to them; None where the switch does not count."""

    @property
    def unpinned_share(self) -> float | None:
        """New connections without a pin among all new connections; None before the first."""
        new = self.claimed + self.unpinned_new
        return self.unpinned_new / new if new else None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Cumulative counters of the switch."""

    forwarded: int
    drops: Mapping[str, int]
    punts: Mapping[str, int]
    punts_limited: Mapping[str, int]
    services: Mapping[int, ServiceCounts]


_PER_SERVICE = (
    Counter.OFFERED,
    Counter.REFUSED,
    Counter.CLAIMED,
    Counter.UNPINNED_NEW,
    Counter.UNPINNED_MID,
)
_MOVES = (Counter.MOVED, Counter.DISOWNED)
"""A service's, too. The program for Tofino has none."""


async def read_traffic(session: Session, services: Sequence[int]) -> Traffic:
    """Read every counter that is shown. Raises SwitchError."""
    known = {counter: one.id for counter in Counter if (one := session.pipeline.schema.counters.get(counter))}
    wanted_cells = [
        *((Counter.VERDICTS, int(reason)) for reason in DropReason),
        *((counter, int(reason)) for counter in (Counter.PUNTS, Counter.PUNTS_LIMITED) for reason in PuntReason),
        *((counter, service) for counter in (*_PER_SERVICE, *_MOVES) if counter in known for service in services),
    ]
    found = await session.read(P4CounterEntry(counter, index=index) for counter, index in wanted_cells)
    names = {number: counter for counter, number in known.items()}
    cells = {
        (names[e.counter_entry.counter_id], e.counter_entry.index.index): e.counter_entry.data.packet_count
        for e in found
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
            service: ServiceCounts(
                *(count(counter, service) for counter in _PER_SERVICE),
                *(count(counter, service) if counter in known else None for counter in _MOVES),
            )
            for service in services
        },
    )
