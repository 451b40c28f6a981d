"""Functions that build the frames a test sends, and the frames it expects, with checksums computed by scapy."""

from __future__ import annotations

from typing import Any, cast

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw

__all__ = ["ARP", "BROADCAST", "ICMP", "IP", "TCP", "TTL", "UDP", "Dot1Q", "Ether", "Packet", "Raw"]

TTL = 64
"""TTL of every frame that a test sends, except in tests of the TTL."""

BROADCAST = "ff:ff:ff:ff:ff:ff"


def layers(*parts: Packet | bytes) -> Packet:
    """Return a frame of these layers; bytes become payload."""
    stack: Any = parts[0]
    for layer in parts[1:]:
        stack = stack / (Raw(layer) if isinstance(layer, bytes) else layer)
    return cast(Packet, stack)


def octets(frame: Packet | bytes) -> bytes:
    """Return the frame's bytes on the wire; scapy fills in fields without a value."""
    return frame if isinstance(frame, bytes) else bytes(frame)


def changed(frame: Packet, **fields: object) -> Packet:
    """Return a copy with other values of fields, named `Layer_field` as in `IP_dst`; scapy computes checksums again."""
    copy: Any = frame.copy()
    for name, value in fields.items():
        layer, field = name.split("_", 1)
        setattr(copy[layer if layer != "Ether" else Ether], field, value)
    return cast(Packet, copy)


def tagged(frame: Packet, vlan: int, priority: int = 0, eligible: int = 0) -> Packet:
    """Return the frame with an 802.1Q tag; `eligible` is the tag's drop eligible indicator."""
    source: Any = frame.copy()
    kind = {ARP: 0x0806, IP: 0x0800}.get(type(source.payload), source.type)
    ether = Ether(dst=source.dst, src=source.src, type=0x8100)
    return layers(ether, Dot1Q(vlan=vlan, prio=priority, id=eligible, type=kind), source.payload)


def explained(data: bytes) -> str:
    """Return a frame as text for an error message."""
    return f"{Ether(data).summary()}\n    {data.hex(' ', 2)}"
