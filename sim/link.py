"""A link: a rate, and a queue in front of it that drops packets that do not fit.

The queue is first in, first out, so a packet's departure is known at its arrival and needs no separate event. Callers
must send packets in the order of time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class LinkCounts:
    """Cumulative counters of a link."""

    sent: int = 0
    """Packets that have left the link or will leave it."""
    sent_bytes: int = 0
    dropped: int = 0
    """Packets dropped because the queue had no room."""


class Link:
    """One direction of a link."""

    def __init__(self, bit_per_s: float = math.inf, *, room_bytes: float = math.inf) -> None:
        """``room_bytes``: size of the queue, including the packet that is being sent."""
        self._bytes_per_s, self._room = bit_per_s / 8, room_bytes
        self._free_at = 0.0
        self.counts = LinkCounts()

    def send(self, now_s: float, size: int) -> float | None:
        """Put a packet of ``size`` bytes, which arrives at ``now_s``, into the queue; return the time at which the
        packet has left the link, or None if the queue has no room and drops it."""
        counts = self.counts
        begin = self._free_at if self._free_at > now_s else now_s
        waiting = (begin - now_s) * self._bytes_per_s if begin > now_s else 0.0
        if waiting + size > self._room:
            counts.dropped += 1
            return None
        counts.sent += 1
        counts.sent_bytes += size
        self._free_at = begin + size / self._bytes_per_s
        return self._free_at
