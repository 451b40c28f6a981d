"""What a transfer can use of a send buffer, from what the switch sees of it.

A need is throughput times round trip (Matsuo et al., equation 1). The papers leave open: how losses are smoothed, what
a transfer without a loss needs, and what a slow reader needs (Azuma et al., section 2.1.3: a send buffer that is hardly
used is taken away). Here losses fade over intervals, and no need is above twice the observed flight. The flight of a
transfer that fills its cap says how large the cap is, and nothing of the need: in production such transfers of a server
may all need twice what the largest of them has (ADR 0153).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .losses import Losses
from .throughput import COUNTED, DELAYED, Column, segments_per_s

FADING = 0.9
"""What an interval's flight counts in the next one, and its losses by the papers' needs: ten intervals in all."""
KEPT = 0.99
"""What the past's losses count in production after another interval or loss event: a hundred of either in all."""
LEAST_SEGMENTS = 4
"""No need is below so many segments: with fewer a loss is found by a time-out only (RFC 5681, section 3.2)."""
GROWTH = 2.0
"""A need is at most so many times the observed flight: a transfer without losses is limited by nothing else."""
BELIEVED = 1.5
"""A mean flight of so many times the model's is that of a transfer that ignores losses. Reno's is 0.8 to 1.1 times."""


class Needs(StrEnum):
    """How needs are told."""

    PAPER = "paper"
    """Equation 1 as it stands, and what nobody needs is left free."""
    PRODUCTION = "production"
    """The same of today's senders: they grow by bytes, not by ACKs, and seldom wait for a time-out. A transfer that
    keeps far more in flight ignores losses, and needs what it has in flight."""
    PRESENT = "present"
    """Twice what is in flight as the interval ends: that of ABT (Semke et al., section 3.1), which swings with it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """An interval of all slots, a value each. Counts are those of the interval."""

    segments: Column
    losses: Column
    """Loss events, at most one a window."""
    timeouts: Column
    """Those of the losses that only a time-out found."""
    rtt_s: Column
    """The mean; NaN without a sample."""
    rto_s: Column
    mss: Column
    """Bytes."""
    flight: Column
    """The largest, in bytes."""
    under_way: Column
    """As the interval ends, in bytes."""
    is_new: NDArray[np.bool_]
    """The slot's transfer is another one than before."""


class Estimator:
    """Follows the transfers of so many slots: ``observe`` takes an interval, ``needs`` tells their needs."""

    def __init__(self, slots: int) -> None:
        self._recent, self._losses = Losses(slots, FADING), Losses(slots, KEPT, KEPT)
        self._rtt_s = np.full(slots, np.nan)
        self._intervals, self._flight = np.zeros(slots), np.zeros(slots)

    def observe(self, reading: Reading) -> None:
        """The end of an interval."""
        self._reading = reading
        for losses in (self._recent, self._losses):
            losses.observe(reading.segments, reading.losses, reading.timeouts, reading.is_new)
        self._rtt_s[reading.is_new] = np.nan
        self._rtt_s = np.where(np.isnan(reading.rtt_s), self._rtt_s, reading.rtt_s)
        kept = np.where(reading.is_new, 0.0, FADING)
        self._intervals = kept * self._intervals + 1.0
        self._flight = kept * self._flight + reading.under_way

    def needs(self, how: Needs, server: NDArray[np.int64], caps: Column | None = None) -> Column:
        """The needs in bytes, as in Needs; 0 for slots without a transfer, or without a round trip yet.

        ``server``: of each slot's transfer, whose losses are held against those of the same server; ``caps``: those
        that were in effect, in bytes, NaN where they are not known.
        """
        reading = self._reading
        is_known = ~np.isnan(self._rtt_s) & (reading.flight > 0) & (reading.mss > 0)
        mss = np.where(is_known, reading.mss, 1.0)
        most = GROWTH * reading.flight
        if how is Needs.PRESENT:
            wanted = GROWTH * reading.under_way
        elif how is Needs.PAPER:
            wanted = self._modelled(self._recent.own(), mss, is_known, DELAYED, None)
        else:
            modelled = self._modelled(self._losses.pooled(server), mss, is_known, COUNTED, self._losses.late())
            kept = self._flight / np.maximum(1.0, self._intervals)
            fills = is_known & (reading.flight + mss >= (np.inf if caps is None else caps))
            largest = np.zeros(1 + int(server.max(initial=0)))
            np.maximum.at(largest, server[fills], reading.flight[fills])
            most = np.where(fills, GROWTH * largest[server], most)
            wanted = np.where(kept > BELIEVED * modelled, np.where(fills, most, kept), modelled)
        wanted = np.minimum(wanted, most)
        return np.where(is_known, np.maximum(wanted, LEAST_SEGMENTS * mss), 0.0)

    def _modelled(
        self, loss: Column, mss: Column, is_known: NDArray[np.bool_], each: float, timeouts: Column | None
    ) -> Column:
        """The mean flight in bytes. The model is asked without a limit, for such a flight needs a limit above it."""
        rtt_s = np.where(is_known, self._rtt_s, 1.0)
        rto_s = np.maximum(self._reading.rto_s, rtt_s)
        without = np.full(len(mss), 1e9)
        return segments_per_s(loss, rtt_s, rto_s, without, each=each, timeouts=timeouts) * rtt_s * mss
