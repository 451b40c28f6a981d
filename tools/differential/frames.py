"""Random frames for sluice's program: services' traffic, a router's other traffic, and mutilated frames of both."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from .world import (
    CLIENTS,
    OTHERS,
    PORTS,
    ROUTERS,
    SERVER_HOSTS,
    SERVERS,
    SERVICES,
    TCP,
    UDP,
    VIPS,
    host_mac,
    router_mac,
)

ICMP = 1
IPV4, ARP, VLAN = 0x0800, 0x0806, 0x8100
SYN, SYN_ACK, ACK, PUSH, FIN, RESET = 0x02, 0x12, 0x10, 0x18, 0x11, 0x04
FLAGS = (SYN, SYN, SYN, SYN_ACK, ACK, PUSH, PUSH, FIN, RESET)
ANSWERS = (SYN_ACK, SYN_ACK, ACK, PUSH, PUSH, FIN, RESET)
CLIENT_PORTS = range(20_000, 20_060)
"""The clients' ports, of which there are few, so that connections repeat."""


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(port: int, source: int, kind: int, payload: bytes, vlan: int | None = None) -> bytes:
    """Return an Ethernet frame to the router's MAC address on the given port."""
    tag = b"" if vlan is None else struct.pack("!HH", VLAN, vlan)
    return router_mac(port).to_bytes(6, "big") + source.to_bytes(6, "big") + tag + struct.pack("!H", kind) + payload


def packet(
    source: int,
    destination: int,
    protocol: int,
    payload: bytes,
    *,
    ttl: int = 64,
    fragment: int = 0x4000,
    options: bytes = b"",
    service: int = 0,
) -> bytes:
    """Return an IPv4 packet with a correct header checksum."""
    first = 0x45 + len(options) // 4
    head = struct.pack("!BBHHHBBH", first, service, 20 + len(options) + len(payload), 7, fragment, ttl, protocol, 0)
    head += struct.pack("!II", source, destination) + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def _pseudo(source: int, destination: int, protocol: int, segment: bytes) -> int:
    return checksum(struct.pack("!IIBBH", source, destination, 0, protocol, len(segment)) + segment)


def tcp(
    source: tuple[int, int], destination: tuple[int, int], flags: int, payload: bytes, options: bytes = b""
) -> bytes:
    """Return a TCP segment with a correct checksum. Ends are (address, port) pairs. All segments have the same sequence
    and acknowledgement numbers, so that each ACK acknowledges each SYN."""
    offset = (5 + len(options) // 4) << 4
    head = struct.pack("!HHIIBBHHH", source[1], destination[1], 1000, 1001, offset, flags, 8192, 0, 0) + options
    total = _pseudo(source[0], destination[0], TCP, head + payload)
    return head[:16] + struct.pack("!H", total) + head[18:] + payload


def udp(source: tuple[int, int], destination: tuple[int, int], payload: bytes, summed: bool = True) -> bytes:
    """Return a UDP datagram with a correct checksum or, if not `summed`, without a checksum (zero)."""
    head = struct.pack("!HHHH", source[1], destination[1], 8 + len(payload), 0)
    total = _pseudo(source[0], destination[0], UDP, head + payload) or 0xFFFF
    return head[:6] + struct.pack("!H", total if summed else 0) + payload


def icmp(kind: int, code: int, rest: bytes) -> bytes:
    """Return an ICMP message; `rest` begins with the second 32-bit word of the header."""
    head = struct.pack("!BBH", kind, code, 0) + rest
    return head[:2] + struct.pack("!H", checksum(head)) + rest


def arp(operation: int, sender: int, target: int) -> bytes:
    """Return an ARP message for Ethernet and IPv4."""
    head = struct.pack("!HHBBH", 1, IPV4, 6, 4, operation)
    return head + host_mac(sender).to_bytes(6, "big") + struct.pack("!I", sender) + bytes(6) + struct.pack("!I", target)


def port_of(address: int) -> int:
    """Return the switch port on which a host's packets arrive."""
    return (address >> 8 & 0xFF) if address >> 16 == 0x0A00 and (address >> 8 & 0xFF) in PORTS else 1


@dataclass
class Frames:
    """An endless source of random frames with their input ports."""

    rng: random.Random
    client_ports: Sequence[int] = CLIENT_PORTS

    def take(self, count: int) -> list[tuple[int, bytes]]:
        """Return `count` frames with their ports."""
        return [self.next_frame() for _ in range(count)]

    def next_frame(self) -> tuple[int, bytes]:
        """Return a random frame with its port; a quarter of the frames are mutilated, and 2 % have a random port."""
        port, frame = self.rng.choice(self._KINDS)(self)
        if self.rng.random() < 0.25:
            frame = self.mutilated(frame)
        if self.rng.random() < 0.02:
            port = self.rng.choice(PORTS)
        return port, frame

    def mutilated(self, frame: bytes) -> bytes:
        """Return the frame cut, extended, or with changed bits or bytes, or else random bytes; never an empty frame."""
        rng = self.rng
        kind = rng.randrange(6)
        if kind == 0:
            return frame[: rng.randint(1, len(frame))]
        if kind == 1:
            return frame + rng.randbytes(rng.randint(1, 40))
        data = bytearray(frame)
        if kind == 2:
            # Bytes of headers are changed more often than bytes of payloads.
            data[rng.randrange(min(len(data), 60))] = rng.choice((0, 1, 5, 6, 17, 0x45, 0x4F, 0x60, 0x7F, 0x80, 0xFF))
        elif kind == 3:
            at = rng.randrange(min(len(data), 60))
            data[at : at + 4] = rng.randbytes(min(4, len(data) - at))
        elif kind == 4:
            return rng.randbytes(rng.randint(1, 120))
        else:
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(data)

    # -- kinds of traffic

    def _payload(self) -> bytes:
        return self.rng.randbytes(self.rng.choice((0, 1, 4, 5, 64, 200, 1400)))

    def _tcp_options(self) -> bytes:
        return self.rng.choice((b"", b"", bytes.fromhex("020405b4"), bytes.fromhex("020405b40402080a0000000100000000")))

    def _ip_options(self) -> bytes:
        return self.rng.choice((b"",) * 9 + (bytes.fromhex("94040000"), bytes.fromhex("07270400") + bytes(36)))

    def _sent(self, source: int, destination: int, protocol: int, segment: bytes) -> tuple[int, bytes]:
        rng = self.rng
        port = port_of(source)
        ttl = rng.choice((64, 64, 64, 64, 128, 2, 1, 0))
        fragment = rng.choice((0x4000,) * 12 + (0, 0x2000, 0x2001, 0x0001, 0x1FFF))
        made = packet(
            source,
            destination,
            protocol,
            segment,
            ttl=ttl,
            fragment=fragment,
            options=self._ip_options(),
            service=rng.choice((0, 0, 0x10, 0xFF)),
        )
        vlan = rng.choice((None,) * 8 + (1, 0x2064, 0x0FFF))
        return port, ethernet(port, host_mac(source), IPV4, made, vlan)

    def _request(self) -> tuple[int, bytes]:
        """Return a frame from a client to a service."""
        rng = self.rng
        vip, protocol, service_port = rng.choice(list(SERVICES.values()))
        client = rng.choice(CLIENTS), rng.choice(self.client_ports)
        return self._between(client, (vip, service_port), protocol, FLAGS)

    def _answer(self) -> tuple[int, bytes]:
        """Return a frame from a server to a client."""
        rng = self.rng
        host, protocol, server_port, _ = rng.choice(list(SERVERS.values()))
        return self._between(
            (host, server_port), (rng.choice(CLIENTS), rng.choice(self.client_ports)), protocol, ANSWERS
        )

    def _routed(self) -> tuple[int, bytes]:
        """Return a frame between any two hosts; the destinations include servers' own endpoints."""
        rng = self.rng
        hosts = (*CLIENTS, *SERVER_HOSTS, *OTHERS, 0x7F000001, 0xE0000001, 0xFFFFFFFF, 0xC0A80707, 0xAC100001)
        ends = [(rng.choice(hosts), rng.choice((8001, 8002, 8003, 80, 53, 9))) for _ in range(2)]
        return self._between(ends[0], ends[1], rng.choice((TCP, UDP)), FLAGS)

    def _between(
        self, source: tuple[int, int], destination: tuple[int, int], protocol: int, flags: tuple[int, ...]
    ) -> tuple[int, bytes]:
        return self._sent(source[0], destination[0], protocol, self._segment(source, destination, protocol, flags))

    def _segment(
        self, source: tuple[int, int], destination: tuple[int, int], protocol: int, flags: tuple[int, ...]
    ) -> bytes:
        if protocol == UDP:
            return udp(source, destination, self._payload(), self.rng.random() < 0.8)
        return tcp(source, destination, self.rng.choice(flags), self._payload(), self._tcp_options())

    def _arp(self) -> tuple[int, bytes]:
        rng = self.rng
        sender = rng.choice((*CLIENTS, *SERVER_HOSTS, *OTHERS))
        target = rng.choice((*ROUTERS.values(), *VIPS, *OTHERS, sender))
        port = port_of(sender)
        vlan = rng.choice((None, None, None, 5))
        return port, ethernet(
            port, host_mac(sender), ARP, arp(rng.choice((1, 1, 2, 3)), sender, target) + bytes(18), vlan
        )

    def _echo(self) -> tuple[int, bytes]:
        rng = self.rng
        destination = rng.choice((*ROUTERS.values(), *VIPS, *OTHERS))
        rest = rng.randbytes(4) + self._payload()
        return self._sent(rng.choice(CLIENTS), destination, ICMP, icmp(rng.choice((8, 8, 0, 13)), 0, rest))

    def _icmp_error(self) -> tuple[int, bytes]:
        """Return an ICMP error about a connection's packet, addressed to the packet's sender or to another host."""
        rng = self.rng
        number = rng.choice(list(SERVERS))
        host, protocol, server_port, service = SERVERS[number]
        client = rng.choice(CLIENTS), rng.choice(self.client_ports)
        vip, _, service_port = SERVICES[service]
        if rng.random() < 0.5:
            # The server sends an ICMP error about a client's packet.
            inner, source, destination = ((client, (host, server_port)), host, client[0])
        else:
            inner, source, destination = (((vip, service_port), client), client[0], vip)
        segment = self._segment(inner[0], inner[1], protocol, FLAGS)
        about = packet(inner[0][0], inner[1][0], protocol, segment, options=self._ip_options())
        about = about[: rng.choice((len(about), len(about), 28, 24, 20))]
        kind, code = rng.choice(((3, 3), (3, 4), (11, 0), (12, 0), (3, 1), (4, 0)))
        anybody = rng.choice((*CLIENTS, *SERVER_HOSTS, *OTHERS, *ROUTERS.values(), *VIPS))
        destination = rng.choice((destination, destination, anybody))
        source = rng.choice((source, source, rng.choice(OTHERS)))
        return self._sent(source, destination, ICMP, icmp(kind, code, b"\0\0\x05\x78" + about))

    def _other(self) -> tuple[int, bytes]:
        rng = self.rng
        port = rng.choice(PORTS)
        kind = rng.choice((0x86DD, 0x88CC, VLAN, 0x0000, 0x9100))
        return port, ethernet(port, rng.getrandbits(48), kind, rng.randbytes(rng.randint(0, 80)))

    _KINDS = (_request,) * 8 + (_answer,) * 6 + (_routed,) * 2 + (_icmp_error,) * 2 + (_arp, _echo, _other)
