"""A capture of TCP headers at all of the switch's ports, as a pcap file: what `sluice replay` reads."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from pathlib import Path

from topo.capture import (
    ETH_P_ALL,
    PACKET_STATISTICS,
    RECEIVE_BUFFER_BYTES,
    SO_ATTACH_FILTER,
    SO_TIMESTAMPNS,
    SOL_PACKET,
    WAKE_UP_S,
)
from topo.errors import LabError
from topo.netns import socket_in

SNAPPED_BYTES = 96
"""Ethernet, IPv4 and TCP headers with some options; lengths are in the headers."""
FILE_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, SNAPPED_BYTES, 1)
"""Nanoseconds, Ethernet."""
TCP_FILTER = (
    # What `tcpdump -s 96 -dd 'ip and tcp'` prints.
    (0x28, 0, 0, 12),
    (0x15, 0, 3, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, socket.IPPROTO_TCP),
    (0x06, 0, 0, SNAPPED_BYTES),
    (0x06, 0, 0, 0),
)


class Recorder:
    """A running capture in the switch's namespace. Costs some 10 us of CPU for a packet: for quiet loads."""

    def __init__(self, namespace_pid: int, file: Path) -> None:
        """Begin at once. Raises LabError, and OSError for a file that cannot be written."""
        self._file = file.open("wb", buffering=1 << 20)
        self._file.write(FILE_HEADER)
        self._ending = threading.Event()
        self._socket = socket_in(namespace_pid, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        program = b"".join(struct.pack("HBBI", *step) for step in TCP_FILTER)
        instructions = ctypes.create_string_buffer(program)
        self._socket.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(TCP_FILTER), ctypes.addressof(instructions))
        )
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._socket.settimeout(WAKE_UP_S)
        self._thread = threading.Thread(target=self._read, name="recorder")
        self._thread.start()

    def close(self) -> None:
        """End the capture; does nothing if it has ended."""
        self._ending.set()
        self._thread.join()
        self._socket.close()
        self._file.close()

    def stop(self) -> None:
        """End the capture; raise LabError if the kernel had to drop packets."""
        self._ending.set()
        self._thread.join()
        _, dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.close()
        if dropped:
            raise LabError(f"the recorder lost {dropped} packets: the machine is too busy, or the load too high")

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                frame, ancillary, _, (interface, *_) = self._socket.recvmsg(SNAPPED_BYTES, socket.CMSG_SPACE(16))
            except TimeoutError:
                continue
            if interface == "lo" or frame[12:14] != b"\x08\x00":
                continue  # P4Runtime, and what came before the filter was there
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack("qq", data)
                    length = 14 + int.from_bytes(frame[16:18], "big")
                    self._file.write(struct.pack("<IIII", seconds, nanoseconds, len(frame), length) + frame)
