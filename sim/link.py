"""A link: a rate, and a queue in front of it that drops what does not fit.

The queue is first in, first out, so when a packet leaves is known when it comes: it costs no event of its own. What is
handed to one link has to come in the order of time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(slots=True)
class LinkCounts:
    """Cumulative."""

    sent: int = 0
    """Packets that went out or will."""
    sent_bytes: int = 0
    dropped: int = 0
    """Packets for which the queue had no room."""


class Link:
    """One direction of a link."""

    def __init__(self, bit_per_s: float = math.inf, *, room_bytes: float = math.inf) -> None:
        """``room_bytes``: the queue, the packet that is being sent included."""
        self._bytes_per_s, self._room = bit_per_s / 8, room_bytes
        self._free_at = 0.0
        self.counts = LinkCounts()

    def send(self, now_s: float, size: int) -> float | None:
        """When a packet of ``size`` bytes that comes at ``now_s`` has gone out; None if there is no room for it."""
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
