"""Loss events in a packet capture at the sender's side, from packets' times. Pure functions.

A segment that is sent again was lost. Losses belong to one event if the lost segments had been sent before the event's
first retransmission (similar to RFC 5348, section 5.2, by Floyd et al., which uses one round trip). The switch delimits
events by recovery points, which are sequence numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

_WRAP = 1 << 32


@dataclass
class Losses:
    """Counts of a connection's sender: segments, segments sent again, and loss events."""

    segments: int = 0
    again: int = 0
    events: int = 0
    _first_s: dict[int, float] = field(default_factory=dict[int, float])
    _since_s: float = float("-inf")
    _edge: int | None = None

    def sent(self, time_s: float, sequence: int, payload: int) -> None:
        """Count a segment with `payload` bytes that the sender sent at `time_s`.

        A segment that ends at or before the highest byte sent so far counts as sent again. It begins a new event if it
        was first sent after the retransmission that began the last event.
        """
        self.segments += 1
        end = (sequence + payload) % _WRAP
        if self._edge is None or ((end - self._edge) % _WRAP < _WRAP // 2 and end != self._edge):
            self._edge = end
            self._first_s[sequence] = time_s
            return
        self.again += 1
        if self._first_s.get(sequence, time_s) > self._since_s:
            self.events += 1
            self._since_s = time_s


def losses(segments: Iterable[tuple[float, int, int, int]]) -> dict[int, Losses]:
    """Return the losses by connection. Each segment is a tuple of time in seconds, connection, sequence number and
    payload in bytes; segments are in the order of time. Segments without payload are ignored."""
    by_connection: dict[int, Losses] = {}
    for time_s, connection, sequence, payload in segments:
        if payload:
            by_connection.setdefault(connection, Losses()).sent(time_s, sequence, payload)
    return by_connection
