"""Estimates how much send buffer each transfer can use, from the switch's measurements.

A need is throughput times round trip (Matsuo et al., equation 1). The papers do not state how losses are smoothed or
what a transfer without loss needs. For a slow reader they only state that a hardly used send buffer is taken away
(Azuma et al., section 2.1.3). Here the weight of losses decays over intervals, and no need is above twice the observed
flight. If a transfer fills its cap, its flight only shows the cap's size. So in production mode each such transfer of a
server may need twice the largest flight of all these transfers (ADR 0153).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from .losses import Losses
from .throughput import COUNTED, DELAYED, Column, segments_per_s

FADING = 0.9
"""The factor by which each later interval multiplies the weight of a past flight and, with Needs.PAPER, of a past loss.
The weights of all past intervals sum to ten."""
LOSS_FADING = 0.99
"""With Needs.PRODUCTION, each later interval and each later loss event multiplies the weight of past losses by this
factor. The weights sum to a hundred intervals or events."""
LEAST_SEGMENTS = 4
"""Least need, in segments. With fewer segments in flight only a timeout detects a loss (RFC 5681, section 3.2)."""
GROWTH = 2.0
"""Largest need as a multiple of the observed flight. Nothing else limits the need of a transfer without losses."""
BELIEVED = 1.5
"""A mean flight above this multiple of the modelled flight shows a sender that ignores losses. Reno's mean flight is
0.8 to 1.1 times the modelled one."""


class Needs(StrEnum):
    """The methods by which needs are estimated."""

    PAPER = "paper"
    """Equation 1 as published. The part of a budget that no transfer needs stays free."""
    PRODUCTION = "production"
    """Equation 1 for today's senders, whose windows grow by bytes, not by ACKs, and which seldom wait for a timeout. A
    transfer with far more in flight than equation 1 yields ignores losses; its need is its flight."""
    PRESENT = "present"
    """Twice the flight at the end of the interval, as in ABT (Semke et al., section 3.1). The need swings with the
    flight."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurements of an interval; each column has one element per slot. Counts are those of the interval."""

    segments: Column
    """Number of segments sent with payload."""
    losses: Column
    """Number of loss events, at most one per window."""
    timeouts: Column
    """Number of the losses that only a timeout detected."""
    rtt_s: Column
    """Mean round trip in seconds; NaN without a sample."""
    rto_s: Column
    """Retransmission timeout in seconds."""
    mss: Column
    """Payload of the largest segment, in bytes."""
    flight: Column
    """The largest flight (number of bytes in flight) in the interval."""
    under_way: Column
    """Flight at the end of the interval, in bytes."""
    is_new: NDArray[np.bool_]
    """Whether the slot's transfer is another one than in the previous interval."""


class Estimator:
    """Follows the transfers of all slots: ``observe`` adds an interval's measurements, ``needs`` returns the needs."""

    def __init__(self, slots: int) -> None:
        self._recent, self._losses = Losses(slots, FADING), Losses(slots, LOSS_FADING, LOSS_FADING)
        self._rtt_s = np.full(slots, np.nan)
        self._intervals, self._flight = np.zeros(slots), np.zeros(slots)

    def observe(self, reading: Reading) -> None:
        """Add the measurements of an interval."""
        self._reading = reading
        for losses in (self._recent, self._losses):
            losses.observe(reading.segments, reading.losses, reading.timeouts, reading.is_new)
        self._rtt_s[reading.is_new] = np.nan
        self._rtt_s = np.where(np.isnan(reading.rtt_s), self._rtt_s, reading.rtt_s)
        weight = np.where(reading.is_new, 0.0, FADING)
        self._intervals = weight * self._intervals + 1.0
        self._flight = weight * self._flight + reading.under_way

    def needs(self, how: Needs, server: NDArray[np.int64], caps: Column | None = None) -> Column:
        """Return the needs in bytes by the method ``how``; 0 for slots without a transfer or a round-trip sample.

        ``server``: each transfer's server, because losses are compared among the transfers of a server; ``caps``: the
        caps that were in effect, in bytes, NaN if unknown.
        """
        reading = self._reading
        is_measured = ~np.isnan(self._rtt_s) & (reading.flight > 0) & (reading.mss > 0)
        mss = np.where(is_measured, reading.mss, 1.0)
        ceilings = GROWTH * reading.flight
        if how is Needs.PRESENT:
            estimates = GROWTH * reading.under_way
        elif how is Needs.PAPER:
            estimates = self._modelled(self._recent.own(), mss, is_measured, DELAYED, None)
        else:
            modelled = self._modelled(self._losses.pooled(server), mss, is_measured, COUNTED, self._losses.late())
            mean_flight = self._flight / np.maximum(1.0, self._intervals)
            fills = is_measured & (reading.flight + mss >= (np.inf if caps is None else caps))
            largest = np.zeros(1 + int(server.max(initial=0)))
            np.maximum.at(largest, server[fills], reading.flight[fills])
            ceilings = np.where(fills, GROWTH * largest[server], ceilings)
            estimates = np.where(mean_flight > BELIEVED * modelled, np.where(fills, ceilings, mean_flight), modelled)
        estimates = np.minimum(estimates, ceilings)
        return np.where(is_measured, np.maximum(estimates, LEAST_SEGMENTS * mss), 0.0)

    def _modelled(
        self, loss: Column, mss: Column, is_measured: NDArray[np.bool_], each: float, timeouts: Column | None
    ) -> Column:
        """Return the mean flight in bytes that the model gives each transfer without a limit of its window. The present
        limit must not count, because the caller computes a new limit from the result.

        ``each`` and ``timeouts`` are those of ``segments_per_s``.
        """
        rtt_s = np.where(is_measured, self._rtt_s, 1.0)
        rto_s = np.maximum(self._reading.rto_s, rtt_s)
        no_limit = np.full(len(mss), 1e9)
        return segments_per_s(loss, rtt_s, rto_s, no_limit, each=each, timeouts=timeouts) * rtt_s * mss
