"""Windows under a cap, as the switch's stage `caps` rewrites them (docs/reference/resources.md).

Nothing that was promised to a sender is taken back, to within what a scaled window can say (RFC 7323, section 2.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

NO_CAP = (1 << 31) - 1
"""Bytes: more than any window."""
DEFAULT_MSS = 536
"""Where a handshake says none (RFC 9293, section 3.7.1)."""
LARGEST_SCALE = 14
BEYOND_OFFER = 1 << 16
"""Bytes that a receiver may take beyond what it offered, such as that of a window probe."""

_WRAP, _HALF, _QUARTER = 1 << 32, 1 << 31, 1 << 30


def later(a: int, b: int) -> bool:
    """Whether sequence number ``a`` is behind ``b`` (RFC 9293, section 3.4)."""
    return 0 < (a - b) % _WRAP < _HALF


class Hello(NamedTuple):
    """What a SYN or SYN-ACK says."""

    number: int
    window: int
    mss: int = 0
    """0: nothing."""
    scale: int | None = None
    """None: nothing."""
    payload: int = 0


class Segment(NamedTuple):
    """Any other segment with an acknowledgement, without RST."""

    number: int
    acknowledgement: int
    window: int
    """As in the header."""
    payload: int = 0
    """Bytes."""
    fin: bool = False


class Ack(Enum):
    """What an acknowledgement is to what was sent, and to those before it."""

    UNKNOWN = auto()
    """Of what was never sent."""
    OLD = auto()
    AGAIN = auto()
    ADVANCES = auto()


@dataclass
class Side:
    """A client or a server."""

    scale: int
    least: int
    """The least cap on its windows, in bytes."""
    next: int
    """Right edge of what it sent."""
    acked: int
    """Its latest acknowledgement."""
    edge: int
    """Right edge that it has offered its peer."""
    cap: int = NO_CAP
    """In effect on its windows, in bytes."""

    def sends(self, peer: Side, segment: Segment, cap: int) -> int:
        """The window that its peer gets to see.

        ``cap``: in bytes, what is to be in effect from an acknowledgement that advances on; 0: none.
        """
        end = (segment.number + segment.payload + segment.fin) % _WRAP
        if later(end, self.next) and not later(end, (peer.edge + BEYOND_OFFER) % _WRAP):
            self.next = end
        ack = self._ack(peer, segment.acknowledgement)
        if ack is Ack.ADVANCES:
            self.acked = segment.acknowledgement
            self.cap = min(NO_CAP, max(cap, self.least)) if cap else NO_CAP
        if ack is Ack.UNKNOWN:
            return segment.window
        if ack is not Ack.OLD:
            edge = (segment.acknowledgement + min(segment.window << self.scale, self.cap)) % _WRAP
            if later(edge, self.edge):
                self.edge = edge
        left = (self.edge - segment.acknowledgement) % _WRAP
        return min(segment.window, -(-left >> self.scale))

    def _ack(self, peer: Side, acknowledgement: int) -> Ack:
        if (peer.next - acknowledgement) % _WRAP >= _QUARTER:
            return Ack.UNKNOWN
        if acknowledgement == self.acked:
            return Ack.AGAIN
        return Ack.ADVANCES if later(acknowledgement, self.acked) else Ack.OLD


def agreed(syn: Hello, syn_ack: Hello, acknowledgement: int) -> tuple[Side, Side]:
    """Client and server behind a SYN and its SYN-ACK, which has this acknowledgement."""
    scales = 0, 0
    if syn.scale is not None and syn_ack.scale is not None:
        scales = min(syn.scale, LARGEST_SCALE), min(syn_ack.scale, LARGEST_SCALE)
    client = Side(
        scale=scales[0],
        least=_least(syn.mss),
        next=acknowledgement,
        acked=syn_ack.number,
        edge=(syn_ack.number + 1 + syn.window) % _WRAP,
    )
    server = Side(
        scale=scales[1],
        least=_least(syn_ack.mss),
        next=(syn_ack.number + 1 + syn_ack.payload) % _WRAP,
        acked=acknowledgement,
        edge=(acknowledgement + syn_ack.window) % _WRAP,
    )
    return client, server


def _least(mss: int) -> int:
    """Four segments."""
    return 4 * (mss or DEFAULT_MSS)
