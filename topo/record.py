"""A capture of TCP headers at all of the switch's ports, as a pcap file: what `sluice replay` reads."""

from __future__ import annotations

import socket
from pathlib import Path

from testbed import captures
from topo.tap import Tap

SNAPPED_BYTES = 96
"""Ethernet, IPv4 and TCP headers with some options; lengths are in the headers."""
FILE_HEADER = captures.header(SNAPPED_BYTES, nanoseconds=True)
LOOPBACK_INDEX = 1
"""Of every namespace's first interface."""
TCP_FILTER = (
    # Not P4Runtime, whose segments fill the socket's buffer: `ld ifidx`.
    (0x20, 0, 0, 0xFFFFF008),
    (0x15, 5, 0, LOOPBACK_INDEX),
    # What `tcpdump -s 96 -dd 'ip and tcp'` prints.
    (0x28, 0, 0, 12),
    (0x15, 0, 3, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, socket.IPPROTO_TCP),
    (0x06, 0, 0, SNAPPED_BYTES),
    (0x06, 0, 0, 0),
)


def record(frame: bytes, seconds: int, nanoseconds: int) -> bytes:
    """A frame, cut, as the file has it. Its headers say how long it was, without what trails the packet: padding, or
    what a reset has of the refused SYN."""
    return captures.record(frame, seconds, nanoseconds, max(14 + int.from_bytes(frame[16:18], "big"), len(frame)))


class Recorder(Tap):
    """A running capture in the switch's namespace. Costs some 10 us of CPU for a packet: for quiet loads."""

    def __init__(self, namespace_pid: int, file: Path) -> None:
        """Begin at once. Raises LabError, and OSError for a file that cannot be written."""
        self._file = file.open("wb", buffering=1 << 20)
        self._file.write(FILE_HEADER)
        super().__init__(namespace_pid, TCP_FILTER, snapped_bytes=SNAPPED_BYTES, interface=None)

    def close(self) -> None:
        """End the capture; does nothing if it has ended."""
        super().close()
        self._file.close()

    def take(self, frame: bytes, seconds: int, nanoseconds: int, interface: str) -> None:
        """Write it down."""
        if interface == "lo" or frame[12:14] != b"\x08\x00":
            return  # P4Runtime, and what came before the filter was there
        self._file.write(record(frame, seconds, nanoseconds))
