"""TCP windows under a cap, as the switch's stage `caps` rewrites them (docs/reference/resources.md).

The right edge that a sender was offered is never taken back, to within a scaled window's precision (RFC 7323, section
2.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

NO_CAP = (1 << 31) - 1
"""A cap, in bytes, above any window."""
DEFAULT_MSS = 536
"""The MSS of a side whose SYN does not announce one (RFC 9293, section 3.7.1)."""
LARGEST_SCALE = 14
LEARN_AFTER = 16
"""After this many consecutive segments of a server that do not fit, and none of its client that does, the server's
numbers are adopted."""
BEYOND_OFFER = 1 << 16
"""Bytes that a receiver may accept beyond its offer, such as a window probe's byte."""

_WRAP, _HALF, _QUARTER = 1 << 32, 1 << 31, 1 << 30


def later(a: int, b: int) -> bool:
    """Return whether sequence number ``a`` follows ``b`` (RFC 9293, section 3.4)."""
    return 0 < (a - b) % _WRAP < _HALF


class HandshakeSegment(NamedTuple):
    """The fields of a SYN or SYN-ACK."""

    number: int
    window: int
    mss: int = 0
    """The announced MSS in bytes; 0: none."""
    scale: int | None = None
    """The announced window scale; None: none."""
    payload: int = 0


class Segment(NamedTuple):
    """Any other segment with an acknowledgement and without RST."""

    number: int
    acknowledgement: int
    window: int
    """The window field of the header, unscaled."""
    payload: int = 0
    """Length of the payload in bytes."""
    fin: bool = False


class Ack(Enum):
    """How an acknowledgement number relates to the data sent and to earlier acknowledgements."""

    UNKNOWN = auto()
    """It acknowledges data that was never sent."""
    OLD = auto()
    """It is below the latest acknowledgement."""
    REPEATED = auto()
    """It equals the latest acknowledgement."""
    ADVANCES = auto()
    """It acknowledges new data."""


@dataclass
class Side:
    """A client or a server: the state of the data it sends and the windows it offers."""

    scale: int
    """Window scale, the shift that applies to its windows."""
    least: int
    """The least cap on its windows, in bytes."""
    next: int
    """Right edge of the data it has sent."""
    acked: int
    """Its latest acknowledgement."""
    edge: int
    """Right edge of the window that it has offered its peer."""
    cap: int = NO_CAP
    """The cap in effect on its windows, in bytes."""
    is_server: bool = False
    misfits: int = 0
    """Consecutive segments of a server that do not fit the known numbers."""
    is_lost: bool = False
    """Whether its offer to its peer is unknown; its next window restores it."""

    def sends(self, peer: Side, segment: Segment, cap: int) -> int:
        """Handle a segment of this side. Returns the window field that is forwarded to its peer.

        ``cap``: the cap in bytes that takes effect with the next acknowledgement that advances; 0: no cap.
        """
        end = (segment.number + segment.payload + segment.fin) % _WRAP
        server = self if self.is_server else peer
        if self._fits(peer, segment, end):
            server.misfits = 0
        elif self.is_server:
            self.misfits = (self.misfits + 1) % LEARN_AFTER
            if not self.misfits:
                self._adopt_numbers(peer, segment, end)
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
        remaining = (self.edge - segment.acknowledgement) % _WRAP
        return min(segment.window, -(-remaining >> self.scale))

    def _fits(self, peer: Side, segment: Segment, end: int) -> bool:
        """Return whether a segment's numbers fit the known ones."""
        most = (peer.edge + BEYOND_OFFER - self.next) % _WRAP
        is_sent = (end - self.next + _QUARTER) % _WRAP <= (most + _QUARTER) % _WRAP
        return is_sent and (peer.next - segment.acknowledgement) % _WRAP < _QUARTER

    def _adopt_numbers(self, peer: Side, segment: Segment, end: int) -> None:
        """Adopt the numbers in a server's segment for both sides.

        Their offers are then unknown: the next window of each side passes unchanged.
        """
        self.next, self.acked = end, segment.acknowledgement
        peer.next, peer.acked, peer.edge = segment.acknowledgement, segment.number, end
        self.is_lost = peer.is_lost = True

    def _ack(self, peer: Side, acknowledgement: int) -> Ack:
        if (peer.next - acknowledgement) % _WRAP >= _QUARTER:
            return Ack.UNKNOWN
        if acknowledgement == self.acked:
            return Ack.REPEATED
        return Ack.ADVANCES if later(acknowledgement, self.acked) else Ack.OLD


def agreed(syn: HandshakeSegment, syn_ack: HandshakeSegment, acknowledgement: int) -> tuple[Side, Side]:
    """Return client and server after a SYN and its SYN-ACK, which acknowledges ``acknowledgement``."""
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
    """Return the least cap in bytes: four segments."""
    return 4 * (mss or DEFAULT_MSS)
