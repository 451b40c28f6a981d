"""UDP datagrams and ARP packets of hosts that belong to no service, and the frames that the router sends for them."""

from __future__ import annotations

from typing import Any, cast

from .frames import ARP, BROADCAST, IP, TTL, UDP, Ether, Packet, layers
from .plan import CLIENT, CLIENT_HOST, Host, Port

PROBE_PORT = 9

PAYLOAD = b"not for any service"
"""A payload that makes frames at least as long as Ethernet's shortest frame, with or without a tag."""


def ether(host: Host) -> Packet:
    """Return the Ethernet header of a frame from a host to the router."""
    return Ether(dst=host.port.mac, src=host.mac)


def plain(source: Host, dst: str, payload: bytes = PAYLOAD, ttl: int = TTL, **ip: object) -> Packet:
    """Return a UDP datagram from a host to an address, as it enters the switch."""
    network: dict[str, object] = {"src": source.address, "dst": dst, "ttl": ttl, **ip}
    return layers(
        ether(source),
        cast(Any, IP)(**network),
        UDP(sport=PROBE_PORT, dport=PROBE_PORT),
        payload,
    )


def routed(frame: Packet, to: Host) -> Packet:
    """Return the frame as the router forwards it to a host."""
    copy: Any = frame.copy()
    copy[Ether].src, copy[Ether].dst = to.port.mac, to.mac
    copy[IP].ttl -= 1
    return cast(Packet, copy)


def between(source: Host, to: Host) -> tuple[Packet, Port, Packet]:
    """Return a datagram from one host to another, the port by which it leaves the switch, and the leaving datagram."""
    frame = plain(source, to.address)
    return frame, to.port, routed(frame, to)


def arp_request(host: Host, address: str, to: str = BROADCAST) -> Packet:
    """Return an ARP request of a host for an address."""
    return layers(
        Ether(dst=to, src=host.mac), ARP(op=1, hwsrc=host.mac, psrc=host.address, hwdst="00:" * 5 + "00", pdst=address)
    )


def arp_answer(host: Host, address: str) -> Packet:
    """Return the router's ARP reply to a host that requested the router's `address`."""
    mac = host.port.mac
    return layers(Ether(dst=host.mac, src=mac), ARP(op=2, hwsrc=mac, psrc=address, hwdst=host.mac, pdst=host.address))


def arp_reply(to: str = CLIENT.mac) -> Packet:
    """Return the client's ARP reply to the router."""
    arp = ARP(op=2, hwsrc=CLIENT_HOST.mac, psrc=CLIENT_HOST.address, hwdst=CLIENT.mac, pdst=CLIENT.address)
    return layers(Ether(dst=to, src=CLIENT_HOST.mac), arp)
