"""Functions that build thousands of segments per second, and that read addresses and checksums of frames.

The segments differ only in the client's address and port.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator
from typing import Any, cast

from sluice.addresses import IPV4_BITS, from_number, from_text, text

from .flow import Flow
from .frames import IP, Ether, Packet, octets
from .plan import Server, Service
from .slots import Tuple5

ETHERNET = 14
IP_CHECKSUM, IP_SOURCE, IP_DESTINATION = ETHERNET + 10, ETHERNET + 12, ETHERNET + 16
TCP_SOURCE, TCP_CHECKSUM = ETHERNET + 20, ETHERNET + 20 + 16


def keys(service: Service, number: int, seed: int) -> list[Tuple5]:
    """Return `number` different connections of random clients in 20.0.0.0/8; a seed always yields the same ones."""
    source = random.Random(seed)
    connections: dict[tuple[int, int], Tuple5] = {}
    while len(connections) < number:
        client, port = 20 << 24 | source.getrandbits(24), source.randrange(1024, 65536)
        address = str(from_number(client, IPV4_BITS))
        connections[client, port] = Tuple5(address, port, service.address, service.port, service.protocol)
    return list(connections.values())


def segments(service: Service, server: Server, flags: str, connections: Iterable[Tuple5]) -> Iterator[bytes]:
    """Yield one TCP segment of each connection, without options or payload, with valid checksums."""
    template = Flow(service, server, "0.0.0.0", 0).request(flags=flags)
    data = bytearray(octets(template))
    ip_sum, tcp_sum = (~struct.unpack_from("!H", data, at)[0] & 0xFFFF for at in (IP_CHECKSUM, TCP_CHECKSUM))
    for key in connections:
        source = from_text(key.client).packed
        high, low = struct.unpack("!HH", source)
        data[IP_SOURCE : IP_SOURCE + 4] = source
        struct.pack_into("!H", data, TCP_SOURCE, key.client_port)
        struct.pack_into("!H", data, IP_CHECKSUM, _complement(ip_sum + high + low))
        struct.pack_into("!H", data, TCP_CHECKSUM, _complement(tcp_sum + high + low + key.client_port))
        yield bytes(data)


def _complement(total: int) -> int:
    total = (total & 0xFFFF) + (total >> 16)
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def destination(frame: bytes) -> str:
    """Return the destination address of an untagged IPv4 frame."""
    return text(frame[IP_DESTINATION : IP_DESTINATION + 4])


def source_of(frame: bytes) -> tuple[str, int]:
    """Return the source address and port of an untagged TCP frame without IPv4 options."""
    return (
        text(frame[IP_SOURCE : IP_SOURCE + 4]),
        struct.unpack_from("!H", frame, TCP_SOURCE)[0],
    )


def has_scapys_checksums(frame: bytes) -> bool:
    """Return whether the frame has the checksums that scapy computes."""
    parsed: Any = Ether(frame)
    del parsed[IP].chksum
    del parsed[IP].payload.chksum
    return bytes(cast(Packet, parsed)) == frame


def has_sound_ipv4_header(frame: bytes) -> bool:
    """Return whether the words of the IPv4 header sum to zero (RFC 1071); True for frames without IPv4."""
    at = ETHERNET
    if frame[12:14] == b"\x81\x00":
        at += 4
    if frame[at - 2 : at] != b"\x08\x00":
        return True
    size = (frame[at] & 15) * 4
    total = sum(struct.unpack_from(f"!{size // 2}H", frame, at))
    return _complement(total) == 0
