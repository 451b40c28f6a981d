"""Captures in the classic pcap format: as `--use-files` reads and writes them."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
"""Little-endian, microseconds, Ethernet."""

_ORDERS = {0xA1B2C3D4: "<", 0xD4C3B2A1: ">", 0xA1B23C4D: "<", 0x4D3CB2A1: ">"}
_FILE_HEADER_BYTES = 24
_RECORD = "IIII"


class PcapError(Exception):
    """A capture that cannot be read; the text says where."""


def record(frame: bytes, time_us: int) -> bytes:
    """One frame as it stands in a capture, with its time in microseconds."""
    seconds, micros = divmod(time_us, 1_000_000)
    return struct.pack("<" + _RECORD, seconds, micros, len(frame), len(frame)) + frame


def write(path: Path, frames: Iterable[tuple[int, bytes]]) -> None:
    """Write frames with their times in microseconds."""
    with path.open("wb") as file:
        file.write(HEADER)
        for time_us, frame in frames:
            file.write(record(frame, time_us))


def read(path: Path) -> list[bytes]:
    """The frames of a capture, whole or still being written. Raises PcapError when it is none."""
    return Tail(path).more()


class Tail:
    """A capture that is still being written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._order: str | None = None
        self._offset = 0

    def more(self) -> list[bytes]:
        """The frames since the last call. Raises PcapError when the file is no capture."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        offset = 0
        if self._order is None:
            if not data:
                return []
            self._order = _ORDERS.get(struct.unpack_from("<I", data)[0]) if len(data) >= _FILE_HEADER_BYTES else None
            if self._order is None:
                raise PcapError(f"{self._path}: not a capture")
            offset = _FILE_HEADER_BYTES
        frames: list[bytes] = []
        record_header = self._order + _RECORD
        head = struct.calcsize(record_header)
        while offset + head <= len(data):
            end = offset + head + struct.unpack_from(record_header, data, offset)[2]
            if end > len(data):
                break
            frames.append(data[offset + head : end])
            offset = end
        self._offset += offset
        return frames
