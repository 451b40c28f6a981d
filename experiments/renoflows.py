"""A model of TCP Reno with one step per round trip: flows with capped windows, and the switch's measurements of these
flows.

In congestion avoidance, a window grows by one segment per round trip (RFC 5681, section 3.1).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sluice.resources.need import Reading
from sluice.resources.throughput import Column

MSS = 1448
"""Payload bytes of a segment."""
DUPLICATES = 3
"""A loss in a window of at most this many segments is detected by a timeout only (RFC 5681, section 3.2)."""


class Seen(NamedTuple):
    """Counts of one flow in an interval; sent data and flights are in segments."""

    sent: int
    losses: int
    """Number of loss events in the interval: all losses in one window are one event."""
    timeouts: int
    flight: int
    """The largest number of segments in flight during the interval."""
    under_way: int
    """Number of segments in flight at the interval's end."""


class Flow:
    """One connection whose sender always has data to send. Windows are in segments."""

    def __init__(self, loss: float, rto_rounds: int, seed: int) -> None:
        self._loss, self._rto_rounds = loss, rto_rounds
        self._random = random.Random(seed)
        self._threshold = float("inf")
        self._silent = 0
        self.window = 2.0
        self.sent = self.lost = self.timeouts = self.flight = self.under_way = 0

    def step(self, limit: float) -> int:
        """Simulate a round trip with a window of at most `limit` segments; return how many segments arrive."""
        if self._silent:
            self._silent -= 1
            return 0
        now = max(1, int(min(self.window, limit)))
        lost = sum(self._random.random() < self._loss for _ in range(now))
        self.sent += now
        self.flight, self.under_way = max(self.flight, now), now
        if lost:
            self.lost += 1
            self.timeouts += now <= DUPLICATES
            self._threshold = max(2.0, now / 2)
            late = now <= DUPLICATES
            self.window = 1.0 if late else self._threshold
            self._silent = self._rto_rounds if late else 0
        elif self.window <= now + 1:  # a window that is not fully used does not grow
            self.window += now if self.window < self._threshold else 1
        return now - lost

    def interval(self) -> Seen:
        """Return the counts of the interval since the last call."""
        seen = Seen(self.sent, self.lost, self.timeouts, self.flight, self.under_way)
        self.sent = self.lost = self.timeouts = self.flight = 0
        return seen


def reading(seen: Sequence[Seen], rtt_s: float, rto_s: float, *, is_first: bool) -> Reading:
    """Return the measurements that the switch would have of these flows in an interval; each column has one entry per
    flow."""
    count = len(seen)
    segments, losses, timeouts, flight, under_way = (np.array(column, float) for column in zip(*seen, strict=True))

    def every(value: float) -> Column:
        return np.full(count, value)

    return Reading(
        segments=segments,
        losses=losses,
        timeouts=timeouts,
        rtt_s=every(rtt_s),
        rto_s=every(rto_s),
        mss=every(MSS),
        flight=flight * MSS,
        under_way=under_way * MSS,
        is_new=np.full(count, is_first),
    )
