"""What a transfer can use of a send buffer, from what the switch sees of it.

A need is throughput times round trip (Matsuo et al., equation 1). The papers leave open: how losses are smoothed, what
a transfer without a loss needs, and what a slow reader needs (Azuma et al., section 2.1.3: a send buffer that is hardly
used is taken away). Here losses fade over intervals, and no need is above twice the observed flight.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .throughput import Column, segments_per_s

FADING = 0.9
"""What an interval's losses and segments count in the next one: ten intervals in all."""
LEAST_SEGMENTS = 4
"""No need is below so many segments: with fewer a loss is found by a time-out only (RFC 5681, section 3.2)."""
HEADROOM = 2.0
"""The throughput times the round trip is the mean flight of a sawtooth, which swings up to twice that."""
GROWTH = 2.0
"""A need is at most so many times the observed flight: a transfer without losses is limited by nothing else."""


class Needs(StrEnum):
    """How needs are told."""

    PAPER = "paper"
    """Equation 1 as it stands: the mean flight."""
    PRODUCTION = "production"
    """With headroom for the sawtooth; a transfer that keeps more in flight than the model says ignores losses, and
    needs what it has in flight."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An interval of all slots, a value each. Counts are those of the interval."""

    segments: Column
    losses: Column
    """Loss events, at most one a window; NaN where the switch cannot tell them (a hole in the numbers)."""
    rtt_s: Column
    """The mean; NaN without a sample."""
    rto_s: Column
    mss: Column
    """Bytes."""
    flight: Column
    """The largest, in bytes."""
    is_new: NDArray[np.bool_]
    """The slot's transfer is another one than before."""


class Estimator:
    """Follows the transfers of so many slots, interval by interval."""

    def __init__(self, slots: int, fading: float = FADING) -> None:
        self._fading = fading
        self._segments = np.zeros(slots)
        self._losses = np.zeros(slots)
        self._rtt_s = np.full(slots, np.nan)

    def needs(self, reading: Reading, is_paper: NDArray[np.bool_]) -> Column:
        """The needs in bytes, as in Needs; 0 for slots without a transfer, or without a round trip yet."""
        for kept, nothing in ((self._segments, 0.0), (self._losses, 0.0), (self._rtt_s, np.nan)):
            kept[reading.is_new] = nothing
        told = ~np.isnan(reading.losses)
        self._segments = np.where(told, self._fading * self._segments + reading.segments, self._segments)
        self._losses = np.where(told, self._fading * self._losses + reading.losses, self._losses)
        self._rtt_s = np.where(np.isnan(reading.rtt_s), self._rtt_s, reading.rtt_s)

        is_known = ~np.isnan(self._rtt_s) & (reading.flight > 0) & (reading.mss > 0)
        rtt_s, mss = np.where(is_known, self._rtt_s, 1.0), np.where(is_known, reading.mss, 1.0)
        loss = np.minimum(1.0, self._losses / np.maximum(1.0, self._segments))
        most = GROWTH * reading.flight
        # A mean flight of the limit's size needs a limit above it: the model is asked without one.
        mean = segments_per_s(loss, rtt_s, np.maximum(reading.rto_s, rtt_s), np.full(len(mss), 1e9)) * rtt_s * mss
        wanted = np.where(is_paper, mean, np.maximum(HEADROOM * mean, reading.flight))
        return np.where(is_known, np.maximum(np.minimum(wanted, most), LEAST_SEGMENTS * mss), 0.0)
