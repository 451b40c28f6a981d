"""Captures by a packet socket with a kernel filter; each capture has a thread that reads the socket.

`Capture` delivers SYN, SYN-ACK, FIN and RST segments at a host. `Recorder` writes the TCP headers at all ports of the
switch into a pcap file, which `sluice replay` reads.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from sluice.addresses import Address, from_packed

from topo.measure.handshakes import Segment
from topo.testbed import captures
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import socket_in

ETH_P_ALL = 3  # include/uapi/linux/if_ether.h
SO_ATTACH_FILTER = 26  # include/uapi/asm-generic/socket.h
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35
SOL_PACKET = 263  # include/linux/socket.h
PACKET_STATISTICS = 6  # include/uapi/linux/if_packet.h

RECEIVE_BUFFER_BYTES = 32 << 20
"""Size of the socket's receive buffer: room for some 30,000 small frames, including the kernel's overhead. The buffer
stores the frames that arrive while the reading thread waits for a processor."""
WAKE_UP_S = 0.2
"""Seconds after which the reading thread checks whether the capture ends."""


class Tap(ABC):
    """A capture of the frames at one interface of a namespace, or at all its interfaces; it begins with the
    construction."""

    def __init__(
        self,
        namespace_pid: int,
        kernel_filter: Sequence[tuple[int, int, int, int]],
        *,
        snapped_bytes: int,
        interface: str | None,
    ) -> None:
        """Begin to capture. ``kernel_filter`` is a classic BPF program; an instruction is (code, jump if true, jump if
        false, operand)."""
        self._snapped_bytes = snapped_bytes
        self._ending = threading.Event()
        # A socket for one interface is bound after its filter is set, so it receives only filtered frames. A socket for
        # all interfaces receives unfiltered frames until the filter is set.
        protocol = socket.htons(ETH_P_ALL) if interface is None else 0
        self._socket = socket_in(namespace_pid, socket.AF_PACKET, socket.SOCK_RAW, protocol)
        instructions = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in kernel_filter))
        program = struct.pack("HP", len(kernel_filter), ctypes.addressof(instructions))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        # SO_RCVBUF would be limited by net.core.rmem_max.
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
        self._socket.settimeout(WAKE_UP_S)
        if interface is not None:
            self._socket.bind((interface, ETH_P_ALL))
        self._thread = threading.Thread(target=self._read, name=type(self).__name__)
        self._thread.start()

    def close(self) -> None:
        """End the capture; do nothing if it has ended."""
        self._ending.set()
        self._thread.join()
        self._socket.close()

    def stop(self) -> None:
        """End the capture; raise SetupError if the kernel dropped frames."""
        self._ending.set()
        self._thread.join()
        _, dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        self.close()
        if dropped:
            name = type(self).__name__.lower()
            raise SetupError(f"the {name} lost {dropped} frames: the machine is too busy, or the load too high")

    @abstractmethod
    def take(self, frame: bytes, seconds: int, nanoseconds: int, interface: str) -> None:
        """Process a truncated frame with its time of arrival (seconds since 1970, and nanoseconds); called by the
        reading thread."""

    def _read(self) -> None:
        while not self._ending.is_set():
            try:
                frame, ancillary, _, (interface, *_) = self._socket.recvmsg(self._snapped_bytes, socket.CMSG_SPACE(16))
            except TimeoutError:
                continue
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                    self.take(frame, *struct.unpack("qq", data), interface)


# -- handshakes

ETH_P_IP = 0x0800

FLAG_FIN = 0x01
FLAG_SYN = 0x02
FLAG_RST = 0x04
FLAG_ACK = 0x10

HANDSHAKE_BYTES = 128
HANDSHAKE_FILTER = (
    # The output of `tcpdump -dd 'ip and tcp[tcpflags] & (tcp-syn|tcp-fin|tcp-rst) != 0'`: code, jump if true, jump if
    # false, operand.
    (0x28, 0, 0, 12),
    (0x15, 0, 8, ETH_P_IP),
    (0x30, 0, 0, 23),
    (0x15, 0, 6, socket.IPPROTO_TCP),
    (0x28, 0, 0, 20),
    (0x45, 4, 0, 0x1FFF),
    (0xB1, 0, 0, 14),
    (0x50, 0, 0, 27),
    (0x45, 0, 1, FLAG_SYN | FLAG_FIN | FLAG_RST),
    (0x06, 0, 0, HANDSHAKE_BYTES),
    (0x06, 0, 0, 0),
)


def parse_segment(frame: bytes, time: float, service: Address, port: int) -> Segment | None:
    """Parse a captured frame (Ethernet, IPv4, TCP); return None if the frame is too short for a TCP header, or is not
    to or from the service."""
    if len(frame) < 34:
        return None
    header_bytes = (frame[14] & 0x0F) * 4
    tcp = 14 + header_bytes
    if len(frame) < tcp + 14:
        return None
    source, destination = from_packed(frame[26:30]), from_packed(frame[30:34])
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


class Capture(Tap):
    """A running capture of the SYN, FIN and RST segments to and from a service; the reading thread passes each segment
    to `deliver`."""

    def __init__(
        self, namespace_pid: int, interface: str, service: Address, port: int, deliver: Callable[[Segment], None]
    ) -> None:
        self._service, self._port, self._deliver = service, port, deliver
        super().__init__(namespace_pid, HANDSHAKE_FILTER, snapped_bytes=HANDSHAKE_BYTES, interface=interface)

    def take(self, frame: bytes, seconds: int, nanoseconds: int, interface: str) -> None:
        """Deliver the frame if it is a segment to or from the service."""
        segment = parse_segment(frame, seconds + nanoseconds / 1e9, self._service, self._port)
        if segment is not None:
            self._deliver(segment)


# -- recordings

RECORDED_BYTES = 96
"""Number of bytes recorded per frame: Ethernet, IPv4 and TCP headers with some options. The headers state the lengths
of the full frames."""
FILE_HEADER = captures.header(RECORDED_BYTES, nanoseconds=True)
LOOPBACK_INDEX = 1
"""Interface index of the loopback device, the first interface of every namespace."""
TCP_FILTER = (
    # Load the interface index (`ld ifidx`), and exclude the loopback device: its P4Runtime segments would fill the
    # buffer.
    (0x20, 0, 0, 0xFFFFF008),
    (0x15, 5, 0, LOOPBACK_INDEX),
    # The output of `tcpdump -s 96 -dd 'ip and tcp'`.
    (0x28, 0, 0, 12),
    (0x15, 0, 3, 0x0800),
    (0x30, 0, 0, 23),
    (0x15, 0, 1, socket.IPPROTO_TCP),
    (0x06, 0, 0, RECORDED_BYTES),
    (0x06, 0, 0, 0),
)


def record(frame: bytes, seconds: int, nanoseconds: int) -> bytes:
    """Return the record of a truncated frame for a capture file.

    The original length is computed from the IP header, so the padding of short frames does not count.
    """
    return captures.record(frame, seconds, nanoseconds, max(14 + int.from_bytes(frame[16:18], "big"), len(frame)))


class Recorder(Tap):
    """A running capture in the switch's namespace. It costs some 10 us of CPU per packet, so it is only suitable for
    low packet rates."""

    def __init__(self, namespace_pid: int, file: Path) -> None:
        """Begin to record. Raises SetupError if the namespace cannot be entered, OSError if the file cannot be
        written."""
        self._file = file.open("wb", buffering=1 << 20)
        self._file.write(FILE_HEADER)
        super().__init__(namespace_pid, TCP_FILTER, snapped_bytes=RECORDED_BYTES, interface=None)

    def close(self) -> None:
        """End the capture; does nothing if it has ended."""
        super().close()
        self._file.close()

    def take(self, frame: bytes, seconds: int, nanoseconds: int, interface: str) -> None:
        """Write the frame into the file."""
        if interface == "lo" or frame[12:14] != b"\x08\x00":
            return  # P4Runtime, and frames that arrived before the filter was set
        self._file.write(record(frame, seconds, nanoseconds))
