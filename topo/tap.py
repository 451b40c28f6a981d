"""A packet socket with a kernel filter, read by a thread of its own."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from testbed.namespaces import socket_in
from topo.errors import LabError

ETH_P_ALL = 3  # include/uapi/linux/if_ether.h
SO_ATTACH_FILTER = 26  # include/uapi/asm-generic/socket.h
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SOL_PACKET = 263  # include/linux/socket.h
PACKET_STATISTICS = 6  # include/uapi/linux/if_packet.h

RECEIVE_BUFFER_BYTES = 32 << 20
"""Some 30,000 small frames, the kernel's part with them: what arrives while the reader waits for a processor."""
WAKE_UP_S = 0.2
"""The reader looks this often whether it is to end."""


class Tap(ABC):
    """What passes an interface of a namespace, or all of them, from the beginning on."""

    def __init__(
        self,
        namespace_pid: int,
        kernel_filter: Sequence[tuple[int, int, int, int]],
        *,
        snapped_bytes: int,
        interface: str | None,
    ) -> None:
        """Begin at once. ``kernel_filter`` is classic BPF: code, jumps if true and if false, operand."""
        self._snapped_bytes = snapped_bytes
        self._ending = threading.Event()
        # A socket bound later sees nothing before its filter is there; one for all interfaces sees everything at once.
        protocol = socket.htons(ETH_P_ALL) if interface is None else 0
        self._socket = socket_in(namespace_pid, socket.AF_PACKET, socket.SOCK_RAW, protocol)
        instructions = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in kernel_filter))
        self._socket.setsockopt(
            socket.SOL_SOCKET,
            SO_ATTACH_FILTER,
            struct.pack("HP", len(kernel_filter), ctypes.addressof(instructions)),
        )
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # SO_RCVBUF ends at net.core.rmem_max.
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        self._socket.settimeout(WAKE_UP_S)
        if interface is not None:
            self._socket.bind((interface, ETH_P_ALL))
        self._thread = threading.Thread(target=self._read, name=type(self).__name__)
        self._thread.start()

    def close(self) -> None:
        """End it; does nothing if it has ended."""
        self._ending.set()
        self._thread.join()
        self._socket.close()

    def stop(self) -> None:
        """End it; raise LabError if the kernel had to drop frames."""
        self._ending.set()
        self._thread.join()
        _, dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.close()
        if dropped:
            name = type(self).__name__.lower()
            raise LabError(f"the {name} lost {dropped} frames: the machine is too busy, or the load too high")

    @abstractmethod
    def take(self, frame: bytes, seconds: int, nanoseconds: int, interface: str) -> None:
        """A frame, cut, with its time since 1970. Called by the thread that reads."""

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                frame, ancillary, _, (interface, *_) = self._socket.recvmsg(self._snapped_bytes, socket.CMSG_SPACE(16))
            except TimeoutError:
                continue
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    self.take(frame, *struct.unpack("qq", data), interface)
