"""Addresses of the bench: clients behind port 1, servers behind port 2, and the service's virtual address."""

from __future__ import annotations

from ipaddress import IPv4Network

from sluice.addresses import from_text

VIP, PORT = "10.0.0.100", 80
CLIENT_MAC, SERVER_MAC = "02:00:00:00:01:01", "02:00:00:00:02:02"
"""MAC addresses that no interface has, so that the load host's kernel drops received frames at once."""
ROUTER_MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
INTERFACES = ("10.0.1.254/24", "10.2.255.254/16")
CLIENTS, CLIENTS_HOP = "10.128.0.0/9", "10.0.1.1"
"""The prefix of the client addresses that packet_load uses, and the next hop towards these clients."""

_FIRST_SERVER = from_text("10.2.1.1")
_FIRST_ROUTE = from_text("20.0.0.0")


def server_addresses(count: int) -> list[str]:
    """Return the addresses of the first `count` servers."""
    return [str(_FIRST_SERVER + number) for number in range(count)]


def extra_routes(count: int) -> list[str]:
    """Return prefixes that match no packet's destination; their lengths run from 22 to 28 in turn."""
    return [str(IPv4Network((_FIRST_ROUTE + number * 1024, 22 + number % 7))) for number in range(count)]
