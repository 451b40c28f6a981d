"""Traffic ratios: shares of a service's connections that sum to 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Ratios = dict[int, float]


@dataclass(frozen=True, slots=True)
class Member:
    """A server of a service, as the balancing algorithms see it."""

    server_id: int
    capacity: float = 1.0
    """The relative capacity. In a healthy pool the server's share is its capacity over the sum of all capacities."""
    draining: bool = False
    """Whether the server gets no new connections and retains those it has."""


def normalised(ratios: Mapping[int, float]) -> Ratios:
    """Return ratios of the same proportions that sum to 1. Raises ValueError when no ratio is positive."""
    total = sum(ratios.values())
    if total <= 0:
        raise ValueError("no server has a positive ratio")
    return {server: ratio / total for server, ratio in ratios.items()}


def fair_shares(members: Mapping[int, Member]) -> Ratios:
    """Return ratios in proportion to the capacities of the members that do not drain; 0 for draining members."""
    return normalised({i: 0.0 if m.draining else m.capacity for i, m in members.items()})


def bounded(ratios: Mapping[int, float], lowest: Mapping[int, float], highest: Mapping[int, float]) -> Ratios:
    """Return ratios within [lowest, highest] that sum to 1, in proportions as near as possible to those of ``ratios``.

    A member whose ratio is beyond a bound gets the bound as its ratio, and the others share the rest in proportion.
    Lower bounds with a sum above 1, and upper bounds with a sum below 1, are first scaled to the sum 1.
    """
    floor_sum, cap_sum = sum(lowest.values()), sum(highest.values())
    low = {i: v / floor_sum for i, v in lowest.items()} if floor_sum > 1 else dict(lowest)
    high = {i: max(low[i], v) for i, v in highest.items()}
    if cap_sum < 1:
        high = {i: v / cap_sum if cap_sum > 0 else 1.0 for i, v in highest.items()}
    fixed: Ratios = {}
    while True:
        free = {i: r for i, r in ratios.items() if i not in fixed}
        rest = 1.0 - sum(fixed.values())
        weight = sum(free.values())
        if not free:
            break
        scaled = {i: rest * r / weight if weight > 0 else rest / len(free) for i, r in free.items()}
        short = {i: low[i] for i, v in scaled.items() if v < low[i]}
        excess = {i: high[i] for i, v in scaled.items() if v > high[i]}
        # First, fix either the ratios below their lower bounds or those above their upper bounds, whichever are farther
        # from their bounds in total. If both were fixed at once, the remaining ratios could violate their bounds.
        missing = sum(low[i] - scaled[i] for i in short)
        surplus = sum(scaled[i] - high[i] for i in excess)
        if not short and not excess:
            fixed |= scaled
            break
        fixed |= short if missing >= surplus else excess
    return normalised({i: fixed[i] for i in ratios})
