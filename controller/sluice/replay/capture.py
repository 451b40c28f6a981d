"""Reads the TCP segments of a capture."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from sluice.addresses import Packed
from sluice.names import PROTOCOL_TCP

from .capturefile import CaptureError, CaptureFile, Interface

LONGEST_GAP_S = 3600.0
"""The longest time between consecutive packets, in seconds. A wrong time stamp would otherwise cause decisions for
years of silence."""

_IP_OFFSETS = {1: 14, 113: 16, 276: 20, 101: 0, 228: 0}
"""Offset of the IP header by LINKTYPE_ number: Ethernet, Linux cooked 1 and 2, raw IP, raw IPv4."""
_TYPED = (14, 16)
"""The offsets of link types with a type field before the IP header. Between the type field and the IP header there may
be a VLAN tag, which libpcap restores."""
_TAGS = (b"\x81\x00", b"\x88\xa8")
_IPV4, _TCP_BYTES = struct.Struct("!BxHxxHBBxx4s4s"), 20
_EMPTY_FRAGMENT = 0x1FFF


class Skipped(Enum):
    """Why a packet was skipped; each value is a plural for messages."""

    IPV6 = "IPv6 (only IPv4 is balanced)"
    TAGGED = "with two VLAN tags (capture where they have one at most)"
    CUT = "cut short (record with tcpdump -s 96 or more)"
    OTHER = "of other protocols"


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment over IPv4."""

    time_s: float
    """The capture's time stamp, as Unix time in seconds."""
    source: Packed
    source_port: int
    destination: Packed
    destination_port: int
    flags: int
    sequence: int
    payload: int
    """The number of payload bytes by the headers; the capture may have truncated the payload."""
    total_length: int
    """Length of the IPv4 packet in bytes."""
    hop_limit: int
    acknowledgement: int = 0
    window: int = 0xFFFF
    """The window field of the header, unscaled."""
    data_offset: int = 5
    """Length of the TCP header in words of 32 bits."""


def read_capture(path: str | Path, warn: Callable[[str], None] = lambda _: None) -> Iterator[Segment]:
    """Yield the TCP segments of a capture, in the order of the file; other packets are skipped.

    Raises OSError, or CaptureError, which names the offset or, without any segment, the skipped packets. An incomplete
    last record (of an interrupted capture) is left out, and ``warn`` reports it.
    """
    has_segments, skipped = False, Counter[Skipped]()
    capture, before_s, before, offset = CaptureFile(path), math.nan, None, 0
    for at, time_s, frame, original, interface in capture:
        gap_s = time_s - before_s
        if abs(gap_s) > LONGEST_GAP_S:
            side = "after" if gap_s > 0 else "before"
            raise CaptureError(
                f"{path}: byte {at}: a packet {abs(gap_s):,.0f} s {side} the previous one, where"
                f" {LONGEST_GAP_S:,.0f} are the most: its time is wrong, or these are two captures; replay them"
                " separately"
            )
        before_s = time_s
        if interface is not before:
            offset, before = _ip_offset(interface, path), interface
        item = _segment(frame, original, offset, time_s)
        if isinstance(item, Segment):
            has_segments = True
            yield item
        else:
            skipped[item] += 1
    if capture.incomplete:
        warn(f"{path}: byte {capture.at}: the last record is incomplete; {capture.incomplete:,} bytes left out")
    if not has_segments:
        reasons = ", ".join(f"{count:,} {kind.value}" for kind, count in skipped.most_common())
        packets = f"its packets: {reasons}" if reasons else "nor any other packet; record while clients connect"
        raise CaptureError(f"{path}: it has no TCP segment over IPv4; {packets}")


def _ip_offset(interface: Interface, path: str | Path) -> int:
    if interface.link not in _IP_OFFSETS:
        link = f"link type {interface.link} is not supported; capture on an Ethernet interface"
        raise CaptureError(f"{path}: byte {interface.at}: {link}")
    return _IP_OFFSETS[interface.link]


def _segment(frame: bytes, original: int, offset: int, time_s: float) -> Segment | Skipped:
    """Return the segment in a frame with an original length of ``original`` bytes, or why the frame is skipped."""
    if offset in _TYPED and frame[offset - 2 : offset] in _TAGS:
        offset += 4
        if frame[offset - 2 : offset] in _TAGS:
            return Skipped.TAGGED
    incomplete = Skipped.CUT if len(frame) < original else Skipped.OTHER
    if len(frame) < offset + _IPV4.size:
        return incomplete
    head, total_length, fragment, hop_limit, protocol, source, destination = _IPV4.unpack_from(frame, offset)
    if head >> 4 == 6:
        return Skipped.IPV6
    if not 0x45 <= head <= 0x4F or protocol != PROTOCOL_TCP or fragment & _EMPTY_FRAGMENT:
        return Skipped.OTHER
    tcp = offset + (head & 0x0F) * 4
    if len(frame) < tcp + _TCP_BYTES:
        return incomplete
    source_port, destination_port, sequence = struct.unpack_from("!HHI", frame, tcp)
    data_offset = frame[tcp + 12] >> 4
    payload = total_length - (tcp - offset) - data_offset * 4
    return Segment(
        time_s,
        source,
        source_port,
        destination,
        destination_port,
        frame[tcp + 13],
        sequence,
        max(0, payload),
        total_length,
        hop_limit,
        int.from_bytes(frame[tcp + 8 : tcp + 12], "big"),
        int.from_bytes(frame[tcp + 14 : tcp + 16], "big"),
        data_offset,
    )
