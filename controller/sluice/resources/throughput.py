"""A transfer's throughput by its losses and its round trip.

Matsuo et al. (section 2.2.1) and Azuma et al. (section 2.1.1) take their own analyses, and cite Padhye, Firoiu, Towsley
& Kurose (*Modeling TCP Throughput*, SIGCOMM 1998) as the simpler one. This is that one, in full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DELAYED = 2
"""Segments that a receiver acknowledges at once (RFC 1122, section 4.2.3.2): ``b``, as published."""
COUNTED = 1
"""``b`` of senders whose windows grow by the bytes acknowledged, however few the ACKs (RFC 5681, section 3.1)."""

Column = NDArray[np.float64]
"""A value for each transfer."""


def _unlimited_window(loss: Column, b: float) -> Column:
    """The mean window when a loss ends its growth, in segments."""
    part = (2 + b) / (3 * b)
    return part + np.sqrt(8 * (1 - loss) / (3 * b * loss) + part**2)


def _timeout_share(loss: Column, window: Column) -> Column:
    """The part of the losses that only a time-out finds (Q)."""
    kept = 1 - loss
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (1 - kept**3) * (1 + kept**3 * (1 - kept ** (window - 3))) / (1 - kept**window)
    return np.where(window <= 3, 1.0, np.minimum(1.0, share))


def segments_per_s(
    loss: Column,
    rtt_s: Column,
    rto_s: Column,
    limit: Column,
    *,
    each: float = DELAYED,
    timeouts: Column | None = None,
) -> Column:
    """The throughput of each transfer in segments per second.

    ``loss``: loss events per segment, in [0, 1]; ``rtt_s``: the mean round trip in seconds; ``rto_s``: the
    retransmission time-out in seconds; ``limit``: the window's limit in segments, at least 1. Without a loss the limit
    alone bounds it, at ``limit / rtt_s``; where all is lost it is 0.

    ``each``: the acknowledged segments for which a window grows by a part of its size, ``b``; ``timeouts``: the part of
    the losses that were seen to end in a time-out, where it is below Q. Q is Reno's without SACK, which has more.
    """
    rtt_s, rto_s, limit = (np.asarray(value, np.float64) for value in (rtt_s, rto_s, limit))
    some = np.clip(loss, 1e-12, 1 - 1e-9)
    b, odds = each, (1 - some) / some
    window = _unlimited_window(some, b)
    is_free = window < limit
    window = np.where(is_free, window, limit)
    late = _timeout_share(some, window)
    if timeouts is not None:
        late = np.minimum(late, timeouts)
    backoff = 1 + some + 2 * some**2 + 4 * some**3 + 8 * some**4 + 16 * some**5 + 32 * some**6
    sent = odds + window + late / (1 - some)
    round_trips = np.where(is_free, b / 2 * window + 1, b / 8 * window + odds / window + 2)
    rate = sent / (rtt_s * round_trips + late * rto_s * backoff / (1 - some))
    return np.where(loss <= 0, limit / rtt_s, np.where(loss >= 1, 0.0, rate))
