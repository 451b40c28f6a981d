"""A link: a rate, a propagation delay, and a queue in front of it that drops what does not fit.

The queue is first in, first out, so when a packet leaves is known when it comes: it costs no event of its own. What is
handed to one link has to come in the order of time.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass


@dataclass(slots=True)
class LinkCounts:
    """Cumulative."""

    sent: int = 0
    """Packets that went out or will; those lost on the way included."""
    sent_bytes: int = 0
    dropped: int = 0
    """Packets for which the queue had no room."""
    lost: int = 0
    """Packets lost on the way."""


class Link:
    """One direction of a link."""

    def __init__(
        self,
        bit_per_s: float = math.inf,
        delay_s: float = 0.0,
        *,
        room_bytes: float = math.inf,
        loss: float = 0.0,
        source: random.Random | None = None,
    ) -> None:
        """``room_bytes``: the queue, the packet that is being sent included; ``loss``: part lost at random on the way.

        Raises ValueError for a loss without a source of chance.
        """
        if loss and source is None:
            raise ValueError("a link that loses packets at random needs a source of chance")
        self._bytes_per_s = bit_per_s / 8
        self._delay_s, self._room, self._loss, self._source = delay_s, room_bytes, loss, source
        self._free_at = 0.0
        self.counts = LinkCounts()

    def send(self, now_s: float, size: int) -> float | None:
        """When a packet of ``size`` bytes that comes at ``now_s`` arrives at the other end; None if it does not."""
        counts = self.counts
        begin = self._free_at if self._free_at > now_s else now_s
        waiting = (begin - now_s) * self._bytes_per_s if begin > now_s else 0.0
        if waiting + size > self._room:
            counts.dropped += 1
            return None
        counts.sent += 1
        counts.sent_bytes += size
        self._free_at = begin + size / self._bytes_per_s
        if self._source is not None and self._loss and self._source.random() < self._loss:
            counts.lost += 1
            return None
        return self._free_at + self._delay_s
