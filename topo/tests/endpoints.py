"""Clients and a server that do not use the kernel's TCP: they create each segment and send it over raw sockets, for
thousands of connections.

A client fetches a page, acknowledges it, and then acts when the test calls. The server answers an out-of-sequence
segment by an ACK with its present numbers (RFC 9293, section 3.10.7.4); a client only counts such a segment. Both
accept a RST only with the expected sequence number (RFC 5961); a client answers any other RST by an ACK.
"""

from __future__ import annotations

import random
import select
import socket
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from sluice.addresses import Packed

from topo.labs.closing import SERVER, ClosingNetwork
from topo.plan.network import CLIENT, WEB_PORT
from topo.testbed.namespaces import socket_in

ETH_P_IP = 0x0800
SO_RCVBUFFORCE = 33
"""Socket option of include/uapi/asm-generic/socket.h."""
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
WRAP = 1 << 32
GET = b"GET / HTTP/1.1\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\n\r\na whole page"  # not 25 bytes, which the switch takes for a "100 Continue"
BUFFER = 16 << 20
QUIET_S = 0.2
"""Seconds without a segment after which the exchange is considered complete."""

Key = tuple[Packed, int]
"""A client's address and port."""


@dataclass(slots=True)
class Segment:
    """A TCP segment."""

    source: Packed
    source_port: int
    target: Packed
    target_port: int
    sequence: int
    acknowledgement: int
    flags: int
    payload: bytes

    @property
    def behind(self) -> int:
        """The sequence number that follows the segment."""
        return (self.sequence + len(self.payload) + bool(self.flags & FIN) + bool(self.flags & SYN)) % WRAP

    def frame(self, macs: bytes) -> bytes:
        """Return the segment with its Ethernet and IPv4 headers."""
        tcp = struct.pack(
            "!HHIIBBHHH",
            *(self.source_port, self.target_port, self.sequence, self.acknowledgement, 5 << 4, self.flags, 64_000),
            *(0, 0),
        )
        tcp += self.payload
        pseudo = self.source + self.target + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        ip = struct.pack(
            "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, socket.IPPROTO_TCP, 0, self.source, self.target
        )
        return macs + struct.pack("!H", ETH_P_IP) + ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:] + tcp


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071) of data whose checksum field is 0."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def parsed(frame: bytes) -> Segment | None:
    """Parse a frame with a TCP segment over IPv4, ignoring padding; return None for other frames."""
    if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
        return None
    datagram = frame[14 : 14 + int.from_bytes(frame[16:18], "big")]
    tcp = datagram[4 * (datagram[0] & 15) :]
    ports = struct.unpack_from("!HHIIBB", tcp)
    source_port, target_port, sequence, acknowledgement, offset, flags = ports
    payload = tcp[4 * (offset >> 4) :]
    ends = datagram[12:16], source_port, datagram[16:20], target_port
    return Segment(*ends, sequence, acknowledgement, flags, payload)


@dataclass(slots=True)
class End:
    """An end of a connection: its next sequence number, and the sequence number that it expects from its peer."""

    next: int
    expected: int = 0


@dataclass(slots=True)
class Fetching(End):
    """The client's end of a connection."""

    pages: int = 0
    asked: int = 0
    races: bool = False
    """Whether the client sends its next request before it receives the FIN, so that request and FIN cross."""
    saw_fin: bool = False
    was_reset: bool = False


@dataclass
class Endpoints:
    """The clients and the server of a network."""

    net: ClosingNetwork
    service: Packed
    server: Packed
    clients: dict[Key, Fetching] = field(default_factory=dict[Key, Fetching])
    served: dict[Key, End] = field(default_factory=dict[Key, End])
    tickles: dict[Key, Segment] = field(default_factory=dict[Key, Segment])
    """The server's delayed answers to tickles (the controller's probes of idle connections), which are sent only after
    the client's next request has passed."""
    overtaken: set[Key] = field(default_factory=set[Key])
    """Connections whose client sends its next request before the server's answer to the tickle."""
    seen: Counter[str] = field(default_factory=Counter[str])
    """Counts by description: tickles, RSTs that ended the server's connections, and unexpected segments."""

    def __post_init__(self) -> None:
        hosts = (CLIENT, SERVER)
        self._sockets = [self._raw(host.name) for host in hosts]
        macs = [bytes.fromhex(f"{host.gateway_mac}{host.mac}".replace(":", "")) for host in hosts]
        self._send: tuple[Callable[[Segment], object], ...] = tuple(
            partial(self._out, raw_socket, addresses) for raw_socket, addresses in zip(self._sockets, macs, strict=True)
        )

    def _raw(self, host: str) -> socket.socket:
        made = socket_in(self.net.pid(host), socket.AF_PACKET, socket.SOCK_RAW)
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        made.bind(("eth0", ETH_P_IP))
        made.setblocking(False)
        return made

    def close(self) -> None:
        """Close the sockets."""
        for raw_socket in self._sockets:
            raw_socket.close()

    def _out(self, through: socket.socket, macs: bytes, segment: Segment) -> None:
        while True:
            try:
                through.send(segment.frame(macs))
                return
            except (BlockingIOError, OSError):
                select.select([], [through], [], QUIET_S)

    # -- clients

    def opens(self, key: Key) -> None:
        """Open a client's connection; the client requests a page once it is connected."""
        first = random.randrange(WRAP)
        self.clients[key] = Fetching((first + 1) % WRAP)
        self._from_client(key, SYN, sequence=first, acknowledgement=0)

    def asks(self, key: Key) -> None:
        """Send a client's request for a page."""
        client = self.clients[key]
        client.asked += 1
        self._asks_again(key)
        client.next = (client.next + len(GET)) % WRAP

    def _asks_again(self, key: Key) -> None:
        self._from_client(key, PSH | ACK, GET)

    def repeats(self, key: Key) -> None:
        """Repeat a client's request, as its kernel would after a timeout."""
        client = self.clients[key]
        self._from_client(key, PSH | ACK, GET, sequence=(client.next - len(GET)) % WRAP)

    def ends(self, key: Key) -> None:
        """Send a client's FIN."""
        self._from_client(key, FIN | ACK)
        self.clients[key].next = (self.clients[key].next + 1) % WRAP

    def _from_client(self, key: Key, flags: int, payload: bytes = b"", **numbers: int) -> None:
        client = self.clients[key]
        fields = {"sequence": client.next, "acknowledgement": client.expected, **numbers}
        self._send[0](Segment(*key, self.service, WEB_PORT, flags=flags, payload=payload, **fields))

    def _to_client(self, segment: Segment) -> None:
        key = (segment.target, segment.target_port)
        client = self.clients.get(key)
        if client is None or client.was_reset:
            return
        if segment.flags & RST:
            self._reset_client(key, client, segment)
        elif segment.flags & SYN:
            client.expected = segment.behind
            self._from_client(key, ACK)
            self.asks(key)
        elif segment.sequence != client.expected:
            self.seen["out of order at a client"] += 1
        elif segment.payload or segment.flags & FIN:
            if client.races and segment.flags & FIN:
                self.asks(key)  # before `expected` changes, so that the request does not acknowledge the FIN
            client.expected = segment.behind
            client.pages += segment.payload == PAGE
            client.saw_fin |= bool(segment.flags & FIN)
            self._from_client(key, ACK)

    def _reset_client(self, key: Key, client: Fetching, segment: Segment) -> None:
        if segment.sequence == client.expected:
            client.was_reset = True
        else:
            self._from_client(key, ACK)
            self.seen["challenged by a client"] += 1

    # -- the server

    def answers(self) -> None:
        """Send the delayed answers to tickles, which requests have overtaken."""
        for segment in self.tickles.values():
            self._send[1](segment)
        self.tickles.clear()

    def _from_server(self, key: Key, flags: int, payload: bytes = b"", **numbers: int) -> Segment:
        end = self.served.get(key, End(0))
        fields = {"sequence": end.next, "acknowledgement": end.expected, **numbers}
        return Segment(self.server, WEB_PORT, *key, flags=flags, payload=payload, **fields)

    def _to_server(self, segment: Segment) -> None:
        key = (segment.source, segment.source_port)
        end = self.served.get(key)
        if segment.flags & SYN:
            first = random.randrange(WRAP)
            self.served[key] = End((first + 1) % WRAP, segment.behind)
            self._send[1](self._from_server(key, SYN | ACK, sequence=first))
        elif end is None:
            if not segment.flags & RST:
                self._send[1](self._from_server(key, RST, sequence=segment.acknowledgement))
        elif segment.flags & RST:
            if segment.sequence == end.expected:
                del self.served[key]
                self.seen["resets of the server's"] += 1
            else:
                self.seen["inexact at the server"] += 1
        elif segment.sequence != end.expected:
            self._answer(key, segment)
        elif segment.payload or segment.flags & FIN:
            self._take(key, end, segment)

    def _answer(self, key: Key, segment: Segment) -> None:
        is_tickle = segment.sequence == segment.acknowledgement == 0
        self.seen["tickles" if is_tickle else "out of order at the server"] += 1
        answer = self._from_server(key, ACK)
        if key in self.overtaken:
            self.tickles[key] = answer
            self.asks(key)
        else:
            self._send[1](answer)

    def _take(self, key: Key, end: End, segment: Segment) -> None:
        end.expected = segment.behind
        if segment.flags & FIN:
            self._send[1](self._from_server(key, FIN | ACK))
            del self.served[key]
            return
        if segment.payload != GET:
            self.seen["no request"] += 1
        self._send[1](self._from_server(key, PSH | ACK, PAGE))
        end.next = (end.next + len(PAGE)) % WRAP

    # -- clients and server

    def exchange(self, quiet_s: float = QUIET_S) -> None:
        """Pass arriving segments to clients and server, which answer them, until no segment has arrived for ``quiet_s``
        seconds."""
        takers = dict(zip(self._sockets, (self._to_client, self._to_server), strict=True))
        while ready := select.select(self._sockets, [], [], quiet_s)[0]:
            for raw_socket in ready:
                frame, address = raw_socket.recvfrom(2048)
                segment = None if address[2] == socket.PACKET_OUTGOING else parsed(frame)
                if segment is not None:
                    takers[raw_socket](segment)
