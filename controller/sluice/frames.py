"""Builds the frames that the controller itself sends: ARP requests, ICMP time exceeded, tickles (ACKs that make a
server answer), and packets that it forwards to a neighbour for the switch. Pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Literal

from .addresses import BROADCAST, Address, from_packed
from .names import (
    ARP_REQUEST,
    ETHERTYPE_ARP,
    ETHERTYPE_IPV4,
    ETHERTYPE_VLAN,
    ICMP_ECHO,
    ICMP_ECHO_REPLY,
    ICMP_TIME_EXCEEDED,
    PROTOCOL_ICMP,
    PROTOCOL_TCP,
)

_BROADCAST = b"\xff" * 6
_TICKLED, _TICKLER = (bytes.fromhex(f"02000000000{octet}") for octet in (1, 2))
"""Destination and source MAC addresses of tickles, which the controller injects into the pipeline."""
_MINIMUM = 60
"""Least length of an Ethernet frame in bytes, without its frame check sequence."""
_ICMP_QUESTIONS = frozenset({ICMP_ECHO_REPLY, ICMP_ECHO, 13, 14})
"""ICMP types about which an error may be sent: echo and timestamp messages. RFC 1122 forbids errors about errors."""


def mac_bytes(mac: str) -> bytes:
    """Convert a MAC address such as ``02:00:00:00:00:01`` to six bytes."""
    return bytes.fromhex(mac.replace(":", ""))


def mac_text(mac: bytes) -> str:
    """Convert a MAC address of six bytes to text such as ``02:00:00:00:00:01``."""
    return mac.hex(":")


def is_station(mac: str) -> bool:
    """Return whether a station can have this MAC address: it is neither zero nor a group address (RFC 1812, section
    3.3.2; IEEE 802)."""
    octets = mac_bytes(mac)
    return any(octets) and not octets[0] & 1


@dataclass(frozen=True, slots=True)
class Ethernet:
    """A parsed frame: MAC addresses, the VLAN tag (all 16 bits; None: untagged), the EtherType, and the payload."""

    dst: bytes
    src: bytes
    tag: int | None
    ethertype: int
    payload: bytes

    @classmethod
    def parse(cls, frame: bytes) -> Ethernet | None:
        """Parse a frame. Returns None if it is too short."""
        if len(frame) < 14:
            return None
        ethertype = int.from_bytes(frame[12:14], "big")
        if ethertype != ETHERTYPE_VLAN:
            return cls(frame[:6], frame[6:12], None, ethertype, frame[14:])
        if len(frame) < 18:
            return None
        tag, inner = struct.unpack("!HH", frame[14:18])
        return cls(frame[:6], frame[6:12], tag, inner, frame[18:])

    def build(self) -> bytes:
        """Return the frame, padded to Ethernet's least length."""
        return self.unpadded().ljust(_MINIMUM, b"\0")

    def unpadded(self) -> bytes:
        """Return the frame without added padding. Padding that the parsed frame already had stays, as part of the
        payload."""
        tag = b"" if self.tag is None else struct.pack("!HH", ETHERTYPE_VLAN, self.tag)
        return self.dst + self.src + tag + struct.pack("!H", self.ethertype) + self.payload


def addressed(frame: bytes, src: str, dst: str, vlan: int | Literal["keep", "strip"]) -> bytes | None:
    """Return a frame as a port sends it to a neighbour: with these MAC addresses and the port's VLAN tag.

    ``vlan``: the number of the tag's VLAN, or whether the frame keeps or loses the tag that it has. A new tag retains
    the priority of the frame's previous tag, as in the P4 stage `tag`. Returns None if the frame is too short.
    """
    ethernet = Ethernet.parse(frame)
    if ethernet is None:
        return None
    match vlan:
        case "keep":
            tag = ethernet.tag
        case "strip":
            tag = None
        case number:
            tag = (ethernet.tag or 0) & 0xF000 | number
    return replace(ethernet, src=mac_bytes(src), dst=mac_bytes(dst), tag=tag).unpadded()


def destination(frame: bytes) -> Address | None:
    """Return the destination address of the IPv4 packet in a frame; None if the frame is too short, or contains no IPv4
    packet."""
    ethernet = _with_ipv4(frame)
    return from_packed(ethernet.payload[16:20]) if ethernet else None


def _with_ipv4(frame: bytes) -> Ethernet | None:
    """Parse a frame. Returns None if the frame has no IPv4 packet of at least 20 bytes, the shortest header."""
    ethernet = Ethernet.parse(frame)
    if ethernet is None or ethernet.ethertype != ETHERTYPE_IPV4 or len(ethernet.payload) < 20:
        return None
    return ethernet


def arp_request(mac: str, sender: Address, target: Address, vlan: int | None = None) -> bytes:
    """Return a broadcast ARP request for ``target`` (RFC 826)."""
    ours, unknown = mac_bytes(mac), bytes(6)
    kind = struct.pack("!HHBBH", 1, ETHERTYPE_IPV4, 6, 4, ARP_REQUEST)
    question = kind + ours + sender.packed + unknown + target.packed
    return Ethernet(_BROADCAST, ours, vlan, ETHERTYPE_ARP, question).build()


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    padded = data + b"\0" if len(data) % 2 else data
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def time_exceeded(frame: bytes, mac: str, sender: Address) -> bytes | None:
    """Return the frame with the ICMP error for a packet whose TTL has expired. The error quotes the packet's IP header
    and the eight bytes after the header.

    ``mac`` and ``sender`` are the addresses of the interface that received ``frame``. Returns None for a frame without
    an IPv4 header and eight bytes after it, and if RFC 1122 or 1812 forbids an error: for ICMP messages other than echo
    and timestamp, for fragments other than the first, for frames to a group MAC address, for multicast destinations,
    and for sources that are no single host or a loopback address.
    """
    ethernet = _with_ipv4(frame)
    if ethernet is None:
        return None
    packet = ethernet.payload
    header = (packet[0] & 0x0F) * 4
    fragment = int.from_bytes(packet[6:8], "big") & 0x1FFF
    source, destination = from_packed(packet[12:16]), from_packed(packet[16:20])
    if packet[0] >> 4 != 4 or header < 20 or len(packet) < header + 8 or fragment or ethernet.dst[0] & 1:
        return None
    if packet[9] == PROTOCOL_ICMP and packet[header] not in _ICMP_QUESTIONS:
        return None
    is_no_host = source.is_multicast or source.is_unspecified or source.is_loopback
    if is_no_host or destination.is_multicast or source == BROADCAST:
        return None
    quoted = packet[: header + 8]
    body = struct.pack("!BBHI", ICMP_TIME_EXCEEDED, 0, 0, 0) + quoted
    body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    ip = struct.pack(
        "!BBHHHBBH4s4s",
        0x45,
        0xC0,  # type of service: internetwork control, which RFC 1812 recommends for ICMP errors
        20 + len(body),
        0,
        0,
        64,
        PROTOCOL_ICMP,
        0,
        sender.packed,
        source.packed,
    )
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return Ethernet(ethernet.src, mac_bytes(mac), ethernet.tag, ETHERTYPE_IPV4, ip + body).build()


def tickle(client: Address, client_port: int, service: Address, service_port: int) -> bytes:
    """Return an ACK with sequence and acknowledgement number 0 from a client to its service. The server answers it by
    an ACK with its own numbers (RFC 9293, section 3.10.7.4)."""
    ports = struct.pack("!HH", client_port, service_port)
    segment = ports + struct.pack("!IIBBHHH", 0, 0, 5 << 4, 0x10, 0xFFFF, 0, 0)
    pseudo = client.packed + service.packed + struct.pack("!BBH", 0, PROTOCOL_TCP, len(segment))
    segment = segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]
    length = 20 + len(segment)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0x4000, 64, PROTOCOL_TCP, 0, client.packed, service.packed)
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return Ethernet(_TICKLED, _TICKLER, None, ETHERTYPE_IPV4, ip + segment).build()
