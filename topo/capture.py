"""A capture of SYN, SYN-ACK, FIN and RST segments at a host, by a packet socket with a kernel filter."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from collections.abc import Callable
from ipaddress import IPv4Address

from topo.errors import LabError
from topo.handshakes import Segment
from topo.netns import socket_in

ETH_P_ALL = 3  # include/uapi/linux/if_ether.h
ETH_P_IP = 0x0800
SO_ATTACH_FILTER = 26  # include/uapi/asm-generic/socket.h
SO_TIMESTAMPNS = 35
SOL_PACKET = 263  # include/linux/socket.h
PACKET_STATISTICS = 6  # include/uapi/linux/if_packet.h

FLAG_FIN = 0x01
FLAG_SYN = 0x02
FLAG_RST = 0x04
FLAG_ACK = 0x10

FILTER = (
    # What `tcpdump -dd 'ip and tcp[tcpflags] & (tcp-syn|tcp-fin|tcp-rst) != 0'` prints:
    # code, jump if true, jump if false, operand.
    (0x28, 0, 0, 12),
    (0x15, 0, 8, ETH_P_IP),
    (0x30, 0, 0, 23),
    (0x15, 0, 6, socket.IPPROTO_TCP),
    (0x28, 0, 0, 20),
    (0x45, 4, 0, 0x1FFF),
    (0xB1, 0, 0, 14),
    (0x50, 0, 0, 27),
    (0x45, 0, 1, FLAG_SYN | FLAG_FIN | FLAG_RST),
    (0x06, 0, 0, 128),
    (0x06, 0, 0, 0),
)
RECEIVE_BUFFER_BYTES = 4 << 20
WAKE_UP_S = 0.2
"""The reader looks this often whether it is to end."""


def parse_segment(frame: bytes, time: float, service: IPv4Address, port: int) -> Segment | None:
    """Read a captured frame (Ethernet, IPv4, TCP); None if it is not to or from the service."""
    if len(frame) < 34:
        return None
    header_bytes = (frame[14] & 0x0F) * 4
    tcp = 14 + header_bytes
    if len(frame) < tcp + 14:
        return None
    source, destination = IPv4Address(frame[26:30]), IPv4Address(frame[30:34])
    source_port, destination_port, sequence, acknowledgement = struct.unpack_from("!HHII", frame, tcp)
    flags = frame[tcp + 13]
    to_server = (destination, destination_port) == (service, port)
    if not to_server and (source, source_port) != (service, port):
        return None
    return Segment(
        time=time,
        client=str(source if to_server else destination),
        client_port=source_port if to_server else destination_port,
        to_server=to_server,
        syn=bool(flags & FLAG_SYN),
        ack=bool(flags & FLAG_ACK),
        rst=bool(flags & FLAG_RST),
        fin=bool(flags & FLAG_FIN),
        sequence=sequence,
        acknowledgement=acknowledgement,
    )


class Capture:
    """A running capture; every segment goes to `deliver`, in the capture's own thread."""

    def __init__(
        self,
        *,
        namespace_pid: int,
        interface: str,
        service: IPv4Address,
        port: int,
        deliver: Callable[[Segment], None],
    ) -> None:
        self._service = service
        self._port = port
        self._deliver = deliver
        self._ending = threading.Event()
        self._socket = socket_in(namespace_pid, socket.AF_PACKET, socket.SOCK_RAW, 0)
        program = b"".join(struct.pack("HBBI", *step) for step in FILTER)
        instructions = ctypes.create_string_buffer(program)
        self._socket.setsockopt(
            socket.SOL_SOCKET,
            SO_ATTACH_FILTER,
            struct.pack("HP", len(FILTER), ctypes.addressof(instructions)),
        )
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self._socket.settimeout(WAKE_UP_S)
        self._socket.bind((interface, ETH_P_ALL))
        self._thread = threading.Thread(target=self._read, name="capture")
        self._thread.start()

    def close(self) -> None:
        """End the capture; does nothing if it has ended."""
        self._ending.set()
        self._thread.join()
        self._socket.close()

    def stop(self) -> None:
        """End the capture; raise LabError if the kernel had to drop segments."""
        self._ending.set()
        self._thread.join()
        _, dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.close()
        if dropped:
            raise LabError(f"the capture at the client lost {dropped} segments: the machine is too busy to measure")

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                frame, ancillary, _, _ = self._socket.recvmsg(128, socket.CMSG_SPACE(16))
            except TimeoutError:
                continue
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack("qq", data)
                    segment = parse_segment(frame, seconds + nanoseconds / 1e9, self._service, self._port)
                    if segment is not None:
                        self._deliver(segment)
