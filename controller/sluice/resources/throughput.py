"""The throughput of a transfer as a function of its loss rate and round trip.

Matsuo et al. (section 2.2.1) and Azuma et al. (section 2.1.1) use analyses of their own, and cite Padhye, Firoiu,
Towsley & Kurose (*Modeling TCP Throughput*, SIGCOMM 1998) as the simpler one. This module implements the full model of
Padhye et al.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DELAYED = 2
"""``b`` of the model, as published: segments per ACK of a receiver that delays ACKs (RFC 1122, section 4.2.3.2)."""
COUNTED = 1
"""``b`` for senders whose windows grow by the bytes acknowledged, independently of the number of ACKs (RFC 5681,
section 3.1)."""

Column = NDArray[np.float64]
"""One value for each transfer."""


def _unlimited_window(loss: Column, b: float) -> Column:
    """Return the mean window, in segments, at which a loss ends the growth of a window without a limit."""
    term = (2 + b) / (3 * b)
    return term + np.sqrt(8 * (1 - loss) / (3 * b * loss) + term**2)


def _timeout_share(loss: Column, window: Column) -> Column:
    """Return the share of the losses that only a timeout detects (Padhye et al.'s Q)."""
    survival = 1 - loss
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (1 - survival**3) * (1 + survival**3 * (1 - survival ** (window - 3))) / (1 - survival**window)
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
    """Return each transfer's throughput in segments per second.

    ``loss``: loss events per segment, in [0, 1]; ``rtt_s``: mean round trip in seconds; ``rto_s``: retransmission
    timeout in seconds; ``limit``: the window's limit in segments, at least 1. Without loss the throughput is ``limit /
    rtt_s``; if everything is lost it is 0.

    ``each``: the model's ``b``, the number of acknowledged segments per ACK. ``timeouts``: the observed share of losses
    that ended in a timeout. It replaces the model's share Q if it is smaller, because Q is for Reno without SACK, which
    has more timeouts.
    """
    rtt_s, rto_s, limit = (np.asarray(value, np.float64) for value in (rtt_s, rto_s, limit))
    bounded_loss = np.clip(loss, 1e-12, 1 - 1e-9)
    b, odds = each, (1 - bounded_loss) / bounded_loss
    window = _unlimited_window(bounded_loss, b)
    is_free = window < limit
    window = np.where(is_free, window, limit)
    late = _timeout_share(bounded_loss, window)
    if timeouts is not None:
        late = np.minimum(late, timeouts)
    backoff = (
        1
        + bounded_loss
        + 2 * bounded_loss**2
        + 4 * bounded_loss**3
        + 8 * bounded_loss**4
        + 16 * bounded_loss**5
        + 32 * bounded_loss**6
    )
    sent = odds + window + late / (1 - bounded_loss)
    round_trips = np.where(is_free, b / 2 * window + 1, b / 8 * window + odds / window + 2)
    rate = sent / (rtt_s * round_trips + late * rto_s * backoff / (1 - bounded_loss))
    return np.where(loss <= 0, limit / rtt_s, np.where(loss >= 1, 0.0, rate))
