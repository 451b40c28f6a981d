"""What the switch tells of the transfers that it measures, an element a slot, and what of it is one interval's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .need import Reading
from .throughput import Column

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NONE = -1
"""The flow of a slot without a transfer."""
_WRAP = 1 << 32
LEAST_RTO_S = 0.2
"""Linux waits the round trip and so long on top of it, at least, before it repeats (``TCP_RTO_MIN``)."""


@dataclass(frozen=True, slots=True)
class Uploads:
    """What clients send, an element a slot; as in Columns."""

    received: Column
    """Bytes so far."""
    flight: Column
    """The largest of the interval."""
    losses: Numbers


@dataclass(frozen=True, slots=True)
class Columns:
    """Counts are cumulative since the transfer began, and wrap at 2^32; sizes are in bytes."""

    flow: Numbers
    """The connection's number; NONE without one."""
    server: Numbers
    fingerprint: Numbers
    """Of the connection table: tells this connection from others that had its number."""
    segments: Numbers
    """Sent towards the client."""
    losses: Numbers
    """Loss events, at most one a window."""
    rtt_s: Column
    """The mean of the interval; NaN without a sample."""
    flight: Column
    """The largest of the interval."""
    mss: Column
    sent: Column
    """So far; wraps too."""
    hole: Flags
    """Numbers were missing in the interval: what looks like a loss may be none."""
    uploads: Uploads | None = None
    """None where nobody measures what clients send."""


class Intervals:
    """Cumulative counts, interval by interval."""

    def __init__(self) -> None:
        self._before: Columns | None = None

    def take(self, now: Columns) -> tuple[Reading, Flags]:
        """The interval that ends now, and which clients' segments were lost in it.

        A transfer that was not there before brings all that it has counted, so that nothing is lost when a controller
        begins. Cells that begin anew (a slot does so every 2^30 bytes) seem to go back, and count from zero.
        """
        before = self._before
        self._before = now
        if before is None:
            is_new = np.ones(len(now.flow), np.bool_)
            before = now
        else:
            is_new = (now.flow != before.flow) | (now.fingerprint != before.fingerprint)
        rto_s = np.where(np.isnan(now.rtt_s), 1.0, now.rtt_s) + LEAST_RTO_S
        losses = _since(before.losses, now.losses, is_new).astype(np.float64)
        reading = Reading(
            segments=_since(before.segments, now.segments, is_new).astype(np.float64),
            losses=np.where(now.hole, np.nan, losses),
            rtt_s=now.rtt_s,
            rto_s=rto_s,
            mss=now.mss,
            flight=now.flight,
            is_new=is_new,
        )
        return reading, _lost(before.uploads, now.uploads, is_new)


def _lost(before: Uploads | None, now: Uploads | None, is_new: Flags) -> Flags:
    if before is None or now is None:
        return np.zeros(len(is_new), np.bool_)
    return _since(before.losses, now.losses, is_new) > 0


def _since(before: Numbers, now: Numbers, is_new: Flags) -> Numbers:
    difference = (now - before) % _WRAP
    return np.where(is_new | (difference >= _WRAP // 2), now, difference)
