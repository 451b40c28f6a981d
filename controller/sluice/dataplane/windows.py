"""TCP windows under a cap, as the switch's stage `caps` rewrites them (docs/reference/resources.md).

The cap never moves the right edge of an offered window to the left, within a scaled window's precision (RFC 7323,
section 2.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

NO_CAP = (1 << 31) - 1
"""A cap, in bytes, that is larger than any window."""
DEFAULT_MSS = 536
"""The MSS of a side whose SYN does not announce one (RFC 9293, section 3.7.1)."""
LARGEST_SCALE = 14
LEARN_AFTER = 16
"""The number of consecutive segments of a server with unexpected numbers, with no expected segment of its client in
between, after which the model adopts the server's numbers."""
BEYOND_OFFER = 1 << 16
"""The number of bytes that a receiver may accept beyond its offered window, such as a window probe's byte."""

_WRAP, _HALF, _QUARTER = 1 << 32, 1 << 31, 1 << 30


def later(a: int, b: int) -> bool:
    """Return whether sequence number ``a`` follows ``b`` (RFC 9293, section 3.4)."""
    return 0 < (a - b) % _WRAP < _HALF


class HandshakeSegment(NamedTuple):
    """The fields of a SYN or SYN-ACK."""

    number: int
    window: int
    mss: int = 0
    """The announced MSS in bytes; 0: no MSS was announced."""
    scale: int | None = None
    """The announced window scale; None: no scale was announced."""
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
    """The number acknowledges data that was never sent."""
    OLD = auto()
    """The number is below the latest acknowledgement."""
    REPEATED = auto()
    """The number equals the latest acknowledgement."""
    ADVANCES = auto()
    """The number acknowledges new data."""


@dataclass
class Side:
    """A client or a server: the state of the data that it sends and of the windows that it offers."""

    scale: int
    """The side's window scale: the shift that applies to its window fields."""
    least: int
    """The least cap on the side's windows, in bytes."""
    next: int
    """The right edge of the data that the side has sent (the next sequence number)."""
    acked: int
    """The side's latest acknowledgement number."""
    edge: int
    """The right edge of the window that the side has offered its peer."""
    cap: int = NO_CAP
    """The cap in effect on the side's windows, in bytes."""
    is_server: bool = False
    misfits: int = 0
    """The number of consecutive segments of a server whose numbers do not match the known ones."""
    is_lost: bool = False
    """Whether the side's offer to its peer is unknown; the side's next window determines it again."""

    def sends(self, peer: Side, segment: Segment, cap: int) -> int:
        """Handle a segment from this side. Returns the value of the window field that the switch forwards to the peer.

        ``cap``: the cap in bytes that takes effect with the next acknowledgement of new data; 0: no cap.
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
        """Return whether a segment's sequence and acknowledgement numbers match the known numbers."""
        most = (peer.edge + BEYOND_OFFER - self.next) % _WRAP
        is_sent = (end - self.next + _QUARTER) % _WRAP <= (most + _QUARTER) % _WRAP
        return is_sent and (peer.next - segment.acknowledgement) % _WRAP < _QUARTER

    def _adopt_numbers(self, peer: Side, segment: Segment, end: int) -> None:
        """Adopt the sequence and acknowledgement numbers of a server's segment for both sides.

        The offers of both sides are then unknown: the next window of each side passes unchanged.
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
    """Return the client's and the server's state after a handshake whose SYN-ACK acknowledges ``acknowledgement``."""
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
    """Return the least cap in bytes: four segments of the maximal size."""
    return 4 * (mss or DEFAULT_MSS)
