"""Capture files in the classic pcap format, which switches can read and write in place of interfaces."""

from __future__ import annotations

import struct
from pathlib import Path

from sluice.replay.capturefile import CaptureFile


def header(largest: int = 1 << 18, *, nanoseconds: bool = False) -> bytes:
    """Return the header of a capture file of Ethernet frames, little-endian, with times in microseconds or nanoseconds.
    ``largest``: largest number of bytes per frame."""
    return struct.pack("<IHHiIII", 0xA1B23C4D if nanoseconds else 0xA1B2C3D4, 2, 4, 0, 0, largest, 1)


HEADER = header()


def record(frame: bytes, seconds: int, fraction: int, length: int | None = None) -> bytes:
    """Return the record of a frame in a capture file; ``length``: number of bytes of the frame before truncation."""
    return struct.pack("<IIII", seconds, fraction, len(frame), len(frame) if length is None else length) + frame


class Tail:
    """A reader of a capture file that another process is still writing."""

    def __init__(self, path: Path) -> None:
        self._path, self._capture = path, CaptureFile(path)

    def more(self) -> list[bytes]:
        """Return the frames written since the last call. Raises CaptureError if the file is no capture."""
        return [frame for _, _, frame, _, _ in self._capture] if self._path.stat().st_size else []


def read(path: Path) -> list[bytes]:
    """Return the complete frames of a capture file, even if another process is still writing the file. Raises
    CaptureError if the file is no capture."""
    return Tail(path).more()
