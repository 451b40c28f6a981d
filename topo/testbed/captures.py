"""Captures in the classic pcap format, as switches read and write them in place of interfaces."""

from __future__ import annotations

import struct
from pathlib import Path

from sluice.replay.capturefile import CaptureFile


def header(largest: int = 1 << 18, *, nanoseconds: bool = False) -> bytes:
    """The beginning of a capture of Ethernet frames, little-endian, its times in microseconds or nanoseconds."""
    return struct.pack("<IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, largest, 1)


HEADER = header()


def record(frame: bytes, seconds: int, fraction: int, length: int | None = None) -> bytes:
    """A frame as it stands in a capture; ``length`` is what it had before it was cut."""
    return struct.pack("<IIII", seconds, fraction, len(frame), len(frame) if length is None else length) + frame


class Tail:
    """A capture that is still being written."""

    def __init__(self, path: Path) -> None:
        self._path, self._capture = path, CaptureFile(path)

    def more(self) -> list[bytes]:
        """The frames since the last call. Raises CaptureError when the file is no capture."""
        return [frame for _, _, frame, _, _ in self._capture] if self._path.stat().st_size else []


def read(path: Path) -> list[bytes]:
    """The frames of a capture, whole or still being written. Raises CaptureError when it is none."""
    return Tail(path).more()
