"""Captures in the classic pcap format, and the TCP segments in them."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO, NamedTuple

from sluice.names import PROTOCOL_TCP

LONGEST_GAP_S = 3600.0
"""Between two packets in a row: a wrong time would lead to years of decisions."""

_MAGIC = {0xA1B2C3D4: ("<", 1e-6), 0xD4C3B2A1: (">", 1e-6), 0xA1B23C4D: ("<", 1e-9), 0x4D3CB2A1: (">", 1e-9)}
_PCAPNG = 0x0A0D0D0A
_FILE_HEADER, _RECORD = 24, 16
_LINK_OFFSETS = {1: 14, 113: 16, 276: 20, 101: 0, 228: 0}
"""Where IP begins: Ethernet, Linux cooked 1 and 2, raw IP, raw IPv4 (LINKTYPE_ numbers)."""
_TYPED = (14, 16)
"""Those of them with the type right in front, and a VLAN tag, which libpcap puts back, between the two."""
_LARGEST = 1 << 18
"""Bytes of a packet; a capture that says 0 has them all."""
_TAGS = (b"\x81\x00", b"\x88\xa8")
_IPV4, _TCP_BYTES = struct.Struct("!BxHxxHBBxxII"), 20
_EMPTY_FRAGMENT = 0x1FFF


class CaptureError(Exception):
    """A file that is no capture or is damaged; the text says where and what to do."""


class PassedOver(Enum):
    """What a packet is that is no segment, as it is said of several."""

    IPV6 = "IPv6 (only IPv4 is balanced)"
    TAGGED = "with two VLAN tags (capture where they have one at most)"
    CUT = "cut short (record with tcpdump -s 96 or more)"
    OTHER = "of other protocols"


@dataclass(frozen=True, slots=True)
class Segment:
    """A TCP segment over IPv4. Addresses are numbers."""

    time_s: float
    """Since the epoch."""
    source: int
    source_port: int
    destination: int
    destination_port: int
    flags: int
    sequence: int
    payload: int
    """Bytes of data, by the headers: the capture may have cut them off."""
    total_length: int
    """Of the IPv4 packet."""
    hop_limit: int


def read_capture(path: str | Path, warn: Callable[[str], None] = lambda _: None) -> Iterator[Segment]:
    """The TCP segments of a capture, in its order; whatever else is in it is passed over.

    Raises CaptureError, naming the byte, or what was passed over when there was nothing else, and OSError. A last
    record that is incomplete (a capture that was interrupted) is left out, and ``warn`` told.
    """
    found, passed_over = False, Counter[PassedOver]()
    with Path(path).open("rb", buffering=1 << 20) as file:
        layout = _layout(file, path)
        for time_s, frame, original in _records(file, layout, path, warn):
            one = _segment(frame, original, layout.offset, time_s)
            if isinstance(one, Segment):
                found = True
                yield one
            else:
                passed_over[one] += 1
    if not found:
        others = ", ".join(f"{count:,} {kind.value}" for kind, count in passed_over.most_common())
        packets = f"its packets: {others}" if others else "nor any other packet; record while clients connect"
        raise CaptureError(f"{path}: there is not one TCP segment over IPv4 in it; {packets}")


class _Layout(NamedTuple):
    order: str
    unit_s: float
    largest: int
    """Bytes of a packet that are in the capture, at most."""
    offset: int
    """Where IP begins in them."""


def _layout(file: BinaryIO, path: str | Path) -> _Layout:
    header = file.read(_FILE_HEADER)
    magic = int.from_bytes(header[:4], "little")
    if magic == _PCAPNG:
        raise CaptureError(f"{path}: this is pcapng; convert it first: tcpdump -r {path} -w other.pcap")
    if len(header) < _FILE_HEADER or magic not in _MAGIC:
        raise CaptureError(f"{path}: byte 0: no capture (pcap); record one with tcpdump -w, or the lab")
    order, unit_s = _MAGIC[magic]
    largest, link = struct.unpack(order + "II", header[16:24])
    if link & 0xFFFF not in _LINK_OFFSETS:
        raise CaptureError(f"{path}: byte 20: link type {link & 0xFFFF} is not known; capture on an Ethernet interface")
    return _Layout(order, unit_s, min(largest or _LARGEST, _LARGEST), _LINK_OFFSETS[link & 0xFFFF])


def _records(
    file: BinaryIO, layout: _Layout, path: str | Path, warn: Callable[[str], None]
) -> Iterator[tuple[float, bytes, int]]:
    """Each packet: its time, what was captured of it, and how long it was."""
    record = struct.Struct(layout.order + "IIII")
    at, before_s = _FILE_HEADER, math.nan
    while len(rest := file.read(_RECORD)) == _RECORD:
        seconds, fraction, captured, original = record.unpack(rest)
        if captured > min(layout.largest, original):
            raise CaptureError(
                f"{path}: byte {at}: {captured:,} bytes of a packet of {original:,}, and {layout.largest:,} are the"
                " most there can be: the capture is damaged there"
            )
        frame = file.read(captured)
        if len(frame) < captured:
            rest += frame
            break
        time_s = seconds + fraction * layout.unit_s
        gap_s = time_s - before_s
        if abs(gap_s) > LONGEST_GAP_S:
            side = "after" if gap_s > 0 else "before"
            raise CaptureError(
                f"{path}: byte {at}: a packet {abs(gap_s):,.0f} s {side} the one in front of it, where"
                f" {LONGEST_GAP_S:,.0f} are the most: its time is wrong, or these are two captures; replay them apart"
            )
        yield time_s, frame, original
        at, before_s = at + _RECORD + captured, time_s
    if rest:
        warn(f"{path}: byte {at}: the last record is incomplete; {len(rest):,} bytes left out")


def _segment(frame: bytes, original: int, offset: int, time_s: float) -> Segment | PassedOver:
    """The segment in a frame that was ``original`` bytes long, or what there is in place of one with all headers."""
    if offset in _TYPED and frame[offset - 2 : offset] in _TAGS:
        offset += 4
        if frame[offset - 2 : offset] in _TAGS:
            return PassedOver.TAGGED
    incomplete = PassedOver.CUT if len(frame) < original else PassedOver.OTHER
    if len(frame) < offset + _IPV4.size:
        return incomplete
    head, total_length, fragment, hop_limit, protocol, source, destination = _IPV4.unpack_from(frame, offset)
    if head >> 4 == 6:
        return PassedOver.IPV6
    if not 0x45 <= head <= 0x4F or protocol != PROTOCOL_TCP or fragment & _EMPTY_FRAGMENT:
        return PassedOver.OTHER
    tcp = offset + (head & 0x0F) * 4
    if len(frame) < tcp + _TCP_BYTES:
        return incomplete
    source_port, destination_port, sequence = struct.unpack_from("!HHI", frame, tcp)
    payload = total_length - (tcp - offset) - (frame[tcp + 12] >> 4) * 4
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
    )
