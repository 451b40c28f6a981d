"""A capture of SYN, SYN-ACK, FIN and RST segments at a host, by a packet socket with a kernel filter."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from sluice.addresses import Address, from_packed

from topo.handshakes import Segment
from topo.tap import Tap

ETH_P_IP = 0x0800

FLAG_FIN = 0x01
FLAG_SYN = 0x02
FLAG_RST = 0x04
FLAG_ACK = 0x10

SNAPPED_BYTES = 128
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
    (0x06, 0, 0, SNAPPED_BYTES),
    (0x06, 0, 0, 0),
)


def parse_segment(frame: bytes, time: float, service: Address, port: int) -> Segment | None:
    """Read a captured frame (Ethernet, IPv4, TCP); None if it is not to or from the service."""
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
    """A running capture; every segment goes to `deliver`, in the capture's own thread."""

    def __init__(
        self,
        *,
        namespace_pid: int,
        interface: str,
        service: Address,
        port: int,
        deliver: Callable[[Segment], None],
    ) -> None:
        self._service = service
        self._port = port
        self._deliver = deliver
        super().__init__(namespace_pid, FILTER, snapped_bytes=SNAPPED_BYTES, interface=interface)

    def take(self, frame: bytes, seconds: int, nanoseconds: int, interface: str) -> None:
        """Deliver it, if it is a segment of the service's."""
        segment = parse_segment(frame, seconds + nanoseconds / 1e9, self._service, self._port)
        if segment is not None:
            self._deliver(segment)
