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
LEARN_AFTER = 16
"""Where so many of a server's segments in a row do not fit, and none of its client's does, its numbers are taken."""
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
    is_server: bool = False
    misfits: int = 0
    """Of a server: its segments in a row that do not fit."""
    is_lost: bool = False
    """What it has offered its peer is not known: its next window says it."""

    def sends(self, peer: Side, segment: Segment, cap: int) -> int:
        """The window that its peer gets to see.

        ``cap``: in bytes, what is to be in effect from an acknowledgement that advances on; 0: none.
        """
        end = (segment.number + segment.payload + segment.fin) % _WRAP
        server = self if self.is_server else peer
        if self._fits(peer, segment, end):
            server.misfits = 0
        elif self.is_server:
            self.misfits = (self.misfits + 1) % LEARN_AFTER
            if not self.misfits:
                self._learn_again(peer, segment, end)
        if later(end, self.next) and not later(end, (peer.edge + BEYOND_OFFER) % _WRAP):
            self.next = end
        ack = self._ack(peer, segment.acknowledgement)
        if ack is Ack.ADVANCES:
            self.acked = segment.acknowledgement
        if self.is_lost and ack is not Ack.UNKNOWN:
            self.is_lost, self.cap = False, NO_CAP
            self.edge = (segment.acknowledgement + (segment.window << self.scale)) % _WRAP
        elif ack is Ack.ADVANCES:
            self.cap = min(NO_CAP, max(cap, self.least)) if cap else NO_CAP
        if ack is Ack.UNKNOWN:
            return segment.window
        if ack is not Ack.OLD:
            edge = (segment.acknowledgement + min(segment.window << self.scale, self.cap)) % _WRAP
            if later(edge, self.edge):
                self.edge = edge
        left = (self.edge - segment.acknowledgement) % _WRAP
        return min(segment.window, -(-left >> self.scale))

    def _fits(self, peer: Side, segment: Segment, end: int) -> bool:
        """Whether a segment's numbers fit those that are known."""
        most = (peer.edge + BEYOND_OFFER - self.next) % _WRAP
        is_sent = (end - self.next + _QUARTER) % _WRAP <= (most + _QUARTER) % _WRAP
        return is_sent and (peer.next - segment.acknowledgement) % _WRAP < _QUARTER

    def _learn_again(self, peer: Side, segment: Segment, end: int) -> None:
        """A server's word on both sides' numbers is taken. What was promised is not known: the next windows of both
        sides pass as they are."""
        self.next, self.acked = end, segment.acknowledgement
        peer.next, peer.acked, peer.edge = segment.acknowledgement, segment.number, end
        self.is_lost = peer.is_lost = True

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
    least = min(_least(syn.mss), _least(syn_ack.mss))
    client = Side(
        scale=scales[0],
        least=least,
        next=acknowledgement,
        acked=syn_ack.number,
        edge=(syn_ack.number + 1 + syn.window) % _WRAP,
    )
    server = Side(
        scale=scales[1],
        least=least,
        next=(syn_ack.number + 1 + syn_ack.payload) % _WRAP,
        acked=acknowledgement,
        edge=(acknowledgement + syn_ack.window) % _WRAP,
        is_server=True,
    )
    return client, server


def _least(mss: int) -> int:
    """Four segments."""
    return 4 * (mss or DEFAULT_MSS)
