"""Frames between hosts that no service is concerned with, each with what must come of it. Pure."""

from __future__ import annotations

from typing import Any, cast

from .frames import IP, TTL, UDP, Ether, Packet, layers
from .plan import Host, Port

PROBE_PORT = 9

PAYLOAD = b"not for any service"
"""Makes frames that are no shorter than Ethernet's least, with or without a tag."""


def ether(host: Host) -> Packet:
    """From a host to its router."""
    return Ether(dst=host.port.mac, src=host.mac)


def plain(source: Host, dst: str, payload: bytes = PAYLOAD, ttl: int = TTL, **ip: object) -> Packet:
    """A UDP datagram from a host to an address, as it enters the switch."""
    network: dict[str, object] = {"src": source.address, "dst": dst, "ttl": ttl, **ip}
    return layers(
        ether(source),
        cast(Any, IP)(**network),
        UDP(sport=PROBE_PORT, dport=PROBE_PORT),
        payload,
    )


def routed(frame: Packet, to: Host) -> Packet:
    """The frame as the router sends it on."""
    copy: Any = frame.copy()
    copy[Ether].src, copy[Ether].dst = to.port.mac, to.mac
    copy[IP].ttl -= 1
    return cast(Packet, copy)


def between(source: Host, to: Host) -> tuple[Packet, Port, Packet]:
    """A datagram from a host to a host: as sent, the port it leaves by, and as it leaves."""
    frame = plain(source, to.address)
    return frame, to.port, routed(frame, to)
