"""Each transfer's loss rate: loss events per segment, smoothed and compared with the server's other transfers.

The papers count the packets and losses of a connection without giving details. A rate from few events is mostly chance:
with ten events its error is a third. So counts of past intervals are remembered, and a rate that may be chance is
shrunk towards the rate of the server's other transfers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .throughput import Column


class Losses:
    """Loss counts of all slots. Past counts are multiplied by ``per_interval`` for each later interval, and by
    ``per_event`` for each later loss event."""

    def __init__(self, slots: int, per_interval: float, per_event: float = 1.0) -> None:
        self._per_interval, self._per_event = per_interval, per_event
        self._segments, self._events, self._timeouts = np.zeros(slots), np.zeros(slots), np.zeros(slots)

    def observe(self, segments: Column, events: Column, timeouts: Column, is_new: NDArray[np.bool_]) -> None:
        """Add the counts of an interval. Slots flagged in ``is_new`` start from zero."""
        weight = np.where(is_new, 0.0, self._per_interval * self._per_event**events)
        self._segments = weight * self._segments + segments
        self._events = weight * self._events + events
        self._timeouts = weight * self._timeouts + timeouts

    def own(self) -> Column:
        """Return each transfer's own loss events per segment."""
        return np.minimum(1.0, self._events / np.maximum(1.0, self._segments))

    def pooled(self, server: NDArray[np.int64]) -> Column:
        """Return the loss events per segment, shrunk towards the common rate of the server's transfers.

        Events are assumed Poisson-distributed and rates gamma-distributed. The spread of the rates is estimated by
        moments (empirical Bayes: Robbins 1956; Efron & Morris 1975). If the rates of the paths really differ, they are
        shrunk little.
        """

        def server_sum(values: Column) -> Column:
            return np.bincount(server, values)[server].astype(np.float64)

        segments, events = self._segments, self._events
        with np.errstate(divide="ignore", invalid="ignore"):
            common = server_sum(events) / server_sum(segments)
            expected = common * segments
            excess = np.where(expected > 0, (events - expected) ** 2 / expected - 1.0, 0.0)
            # The common rate is computed from the same events, which costs one degree of freedom.
            spread = np.maximum(0.0, server_sum(excess) + 1.0) / server_sum(expected)
            rate = (spread * events + 1.0) / (spread * segments + 1.0 / common)
        return np.where(common > 0, np.minimum(1.0, rate), 0.0)

    def late(self) -> Column:
        """Return the share of each transfer's loss events that only a timeout detected."""
        return np.minimum(1.0, self._timeouts / np.maximum(1.0, self._events))
