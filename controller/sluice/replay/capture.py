"""Captures in the classic pcap format, and the TCP segments in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

PROTOCOL_TCP = 6
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10

_MAGIC = {0xA1B2C3D4: ("<", 1e-6), 0xD4C3B2A1: (">", 1e-6), 0xA1B23C4D: ("<", 1e-9), 0x4D3CB2A1: (">", 1e-9)}
_PCAPNG = 0x0A0D0D0A
_FILE_HEADER, _RECORD = 24, 16
_LINK_OFFSETS = {1: 14, 113: 16, 276: 20, 101: 0, 228: 0}
"""Where IP begins: Ethernet, Linux cooked 1 and 2, raw IP, raw IPv4 (LINKTYPE_ numbers)."""
_LARGEST = 1 << 18
_EMPTY_FRAGMENT = 0x1FFF


class CaptureError(Exception):
    """A file that is no capture or is damaged; the text says where and what to do."""


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


def read_capture(path: str | Path) -> Iterator[Segment]:
    """The TCP segments of a capture, in its order; whatever else is in it is passed over.

    Raises CaptureError, naming the byte, and OSError. A last record that is incomplete (a capture that was
    interrupted) is left out.
    """
    with Path(path).open("rb", buffering=1 << 20) as file:
        order, unit_s, offset = _header(file, path)
        record = struct.Struct(order + "IIII")
        at = _FILE_HEADER
        while len(head := file.read(_RECORD)) == _RECORD:
            seconds, fraction, captured, _ = record.unpack(head)
            if captured > _LARGEST:
                raise CaptureError(f"{path}: byte {at}: a packet of {captured:,} bytes: the capture is damaged there")
            frame = file.read(captured)
            if len(frame) < captured:
                return
            at += _RECORD + captured
            if (segment := _segment(frame, offset, seconds + fraction * unit_s)) is not None:
                yield segment


def _header(file: BinaryIO, path: str | Path) -> tuple[str, float, int]:
    header = file.read(_FILE_HEADER)
    magic = int.from_bytes(header[:4], "little")
    if magic == _PCAPNG:
        raise CaptureError(f"{path}: this is pcapng; convert it first: tcpdump -r {path} -w other.pcap")
    if len(header) < _FILE_HEADER or magic not in _MAGIC:
        raise CaptureError(f"{path}: byte 0: no capture (pcap); record one with tcpdump -w, or the lab")
    order, unit_s = _MAGIC[magic]
    (link,) = struct.unpack(order + "I", header[20:24])
    if link & 0xFFFF not in _LINK_OFFSETS:
        raise CaptureError(f"{path}: byte 20: link type {link & 0xFFFF} is not known; capture on an Ethernet interface")
    return order, unit_s, _LINK_OFFSETS[link & 0xFFFF]


def _segment(frame: bytes, offset: int, time_s: float) -> Segment | None:
    """The segment in a frame; None for anything that is none, or that has not all of its headers."""
    if offset == 14 and frame[12:14] == b"\x81\x00":
        offset += 4
    if len(frame) < offset + 40 or frame[offset] >> 4 != 4 or frame[offset + 9] != PROTOCOL_TCP:
        return None
    total_length, _, fragment, hop_limit = struct.unpack_from("!HHHB", frame, offset + 2)
    tcp = offset + (frame[offset] & 0x0F) * 4
    if fragment & _EMPTY_FRAGMENT or len(frame) < tcp + 14:
        return None
    source, destination = struct.unpack_from("!II", frame, offset + 12)
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
