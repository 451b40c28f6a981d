"""How much each transfer loses: loss events per segment, remembered and held against those of its server's others.

The papers count packets and losses of a connection and say no more. A rate from few events is mostly chance: with ten
it is off by a third. So many are remembered, and what may be chance is drawn towards the others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .throughput import Column


class Losses:
    """Counts of so many slots, from interval to interval. The past counts ``per_interval`` after another interval, and
    ``per_event`` after another loss event."""

    def __init__(self, slots: int, per_interval: float, per_event: float = 1.0) -> None:
        self._per_interval, self._per_event = per_interval, per_event
        self._segments, self._events, self._timeouts = np.zeros(slots), np.zeros(slots), np.zeros(slots)

    def observe(self, segments: Column, events: Column, timeouts: Column, is_new: NDArray[np.bool_]) -> None:
        """Counts of an interval. New ones begin anew."""
        weight = np.where(is_new, 0.0, self._per_interval * self._per_event**events)
        self._segments = weight * self._segments + segments
        self._events = weight * self._events + events
        self._timeouts = weight * self._timeouts + timeouts

    def own(self) -> Column:
        """Loss events per segment, of each by itself."""
        return np.minimum(1.0, self._events / np.maximum(1.0, self._segments))

    def pooled(self, server: NDArray[np.int64]) -> Column:
        """The same, drawn towards the rate of the server's transfers together, as far as they differ by chance.

        Events are taken for Poisson's and the rates for a gamma distribution's, whose spread is found by moments
        (empirical Bayes: Robbins 1956; Efron & Morris 1975). Where paths differ, little is drawn.
        """

        def together(values: Column) -> Column:
            return np.bincount(server, values)[server].astype(np.float64)

        segments, events = self._segments, self._events
        with np.errstate(divide="ignore", invalid="ignore"):
            common = together(events) / together(segments)
            expected = common * segments
            excess = np.where(expected > 0, (events - expected) ** 2 / expected - 1.0, 0.0)
            # The mean of all is from the same events, which takes one of them.
            spread = np.maximum(0.0, together(excess) + 1.0) / together(expected)
            rate = (spread * events + 1.0) / (spread * segments + 1.0 / common)
        return np.where(common > 0, np.minimum(1.0, rate), 0.0)

    def late(self) -> Column:
        """The part of the events that only a time-out found."""
        return np.minimum(1.0, self._timeouts / np.maximum(1.0, self._events))
