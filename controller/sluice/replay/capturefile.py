"""Reads the packets of capture files, pcap and pcapng, one at a time."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from io import BufferedReader, FileIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

_PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
"""Byte order, and time units per second, by a pcap file's first bytes."""
_SECTION = b"\x0a\x0d\x0d\x0a"
_SECTION_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
_INTERFACE, _SIMPLE_PACKET = 1, 3
_PACKETS = {6: "IIIII", 2: "HxxIIII"}
"""Packet blocks of pcapng by type: the layout of interface, time in two halves, captured and original length."""
_RESOLUTION, _ZERO = 9, 14
"""Codes of an interface's options: the resolution of its times, and the second from which its times count."""
_LARGEST = 1 << 18
"""The largest size of a packet in bytes, also for a capture that states a limit of 0."""
_LARGEST_BLOCK = 1 << 24
"""The largest size of a block in bytes, as in libpcap."""


class CaptureError(Exception):
    """The file is not a capture, is damaged, or lacks what the replay needs, for example TCP segments.

    The message names the reason, and the offset if the fault is at one place in the file.
    """


class Interface(NamedTuple):
    """An interface at which packets were captured."""

    at: int
    """The offset, in the file, of the field with the link type."""
    link: int
    """The link type, a LINKTYPE_ number."""
    largest: int
    """The largest number of bytes that the capture contains of a packet."""
    units: int
    """Units of a packet's time stamp per second."""
    zero_s: int = 0
    """The second from which times count, in Unix time."""


Packet = tuple[int, float, bytes, int, Interface]
"""A packet: its offset in the file, its Unix time, the captured bytes, its original length, and the interface. The type
is a tuple because a class would slow replays down."""


class CaptureFile:
    """An iterable over the packets of a file. A second iteration continues with packets that were appended after the
    first.

    Iterating raises OSError, or CaptureError, which names the offset.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.at = 0
        """Offset of the next record."""
        self.incomplete = 0
        """The number of bytes of an incomplete last record."""
        self._order = "<"
        self._interfaces: list[Interface] = []
        self._packets = self._blocks

    def __iter__(self) -> Iterator[Packet]:
        with BufferedReader(FileIO(self.path), 1 << 20) as file:
            if self.at:
                file.seek(self.at)
            elif file.peek(4)[:4] != _SECTION:
                self._begin(file.read(24))
            self.incomplete = yield from self._packets(file)

    def _error(self, problem: str, at: int) -> CaptureError:
        return CaptureError(f"{self.path}: byte {at}: {problem}")

    def _damaged(self, problem: str) -> CaptureError:
        return self._error(f"{problem}: the capture is damaged there", self.at)

    def _begin(self, header: bytes) -> None:
        if len(header) < 24 or header[:4] not in _PCAP:
            raise self._error("not a capture (pcap or pcapng); record one with tcpdump -w, or the lab", 0)
        self._order, units = _PCAP[header[:4]]
        largest, link = struct.unpack(self._order + "II", header[16:])
        self._interfaces = [Interface(20, link & 0xFFFF, min(largest or _LARGEST, _LARGEST), units)]
        self._packets, self.at = self._records, 24

    def _records(self, file: BinaryIO) -> Generator[Packet, None, int]:
        """Yield the packets of a pcap file; return the number of bytes of an incomplete last record."""
        record, (interface,) = struct.Struct(self._order + "IIII"), self._interfaces
        largest, unit_s, at, read = interface.largest, 1 / interface.units, self.at, file.read
        while len(head := read(16)) == 16:
            seconds, fraction, captured, length = record.unpack(head)
            if captured > largest or captured > length:
                self.at = at
                raise self._oversized(captured, length, interface)
            data = read(captured)
            if len(data) < captured:
                head += data
                break
            yield at, seconds + fraction * unit_s, data, length, interface
            at += 16 + captured
        self.at = at
        return len(head)

    def _oversized(self, captured: int, length: int, interface: Interface) -> CaptureError:
        most = f"{interface.largest:,} are the most there can be"
        return self._damaged(f"{captured:,} bytes of a packet of {length:,}, and {most}")

    def _blocks(self, file: BinaryIO) -> Generator[Packet, None, int]:
        """Yield the packets of a pcapng file; return the number of bytes of an incomplete last block."""
        while len(head := file.read(12)) == 12:
            if head[:4] == _SECTION:
                if head[8:] not in _SECTION_ORDERS:
                    raise self._damaged("a section of neither byte order")
                self._order, self._interfaces = _SECTION_ORDERS[head[8:]], []
            kind, size = struct.unpack_from(self._order + "II", head)
            if not 12 <= size <= _LARGEST_BLOCK or size % 4:
                raise self._damaged(f"a block of {size:,} bytes")
            block = head + file.read(size - 12)
            if len(block) < size:
                return len(block)
            if block[4:8] != block[-4:]:
                raise self._damaged("a block that ends with another size than it begins with")
            if kind in _PACKETS:
                yield self._packet(_PACKETS[kind], block)
            elif kind == _INTERFACE:
                self._interfaces.append(self._interface(block))
            elif kind == _SIMPLE_PACKET:
                raise self._error("a packet without a time; record with tcpdump or Wireshark", self.at)
            self.at += size
        return len(head)

    def _packet(self, fields: str, block: bytes) -> Packet:
        if len(block) < 32:
            raise self._damaged("a packet without its header")
        number, high, low, captured, length = struct.unpack_from(self._order + fields, block, 8)
        if number >= len(self._interfaces):
            raise self._damaged(f"a packet of interface {number}, which no block describes")
        interface = self._interfaces[number]
        if captured > min(interface.largest, length, len(block) - 32):
            raise self._oversized(captured, length, interface)
        seconds, fraction = divmod(high << 32 | low, interface.units)
        time_s = interface.zero_s + seconds + fraction * (1 / interface.units)
        return self.at, time_s, block[28 : 28 + captured], length, interface

    def _interface(self, block: bytes) -> Interface:
        if len(block) < 20:
            raise self._damaged("an interface without its description")
        link, largest = struct.unpack_from(self._order + "HxxI", block, 8)
        options, at = {_RESOLUTION: b"\6", _ZERO: b""}, 16
        while at + 8 <= len(block):
            code, size = struct.unpack_from(self._order + "HH", block, at)
            options[code] = block[at + 4 : at + 4 + size]
            at += 4 + size + -size % 4
        order = "little" if self._order == "<" else "big"
        resolution, zero_s = options[_RESOLUTION][:1], options[_ZERO][:8]
        exponent = int.from_bytes(resolution, "big")
        return Interface(
            self.at + 8,
            link,
            min(largest or _LARGEST, _LARGEST),
            (2 if exponent & 0x80 else 10) ** (exponent & 0x7F),
            int.from_bytes(zero_s, order, signed=True),
        )
