"""The network of the packet tests: one router with four ports in use and one port that is not configured.

     clients 10.0.1.0/24               servers 10.0.2.0/24    10.0.3.0/24
20.0.0.0/8 via 10.0.1.254                  s1  s2                 s3
          |                                  |                     |
       CLIENT           (switch)          POOL_A                POOL_B
                           |
                        UPLINK  10.0.4.0/24: a host that is no server, a gateway
"""

from __future__ import annotations

from dataclasses import dataclass

from sluice.names import PROTOCOL_TCP, PROTOCOL_UDP


@dataclass(frozen=True)
class Port:
    """A port of the router; `place` is the port's index in the target's sorted list of ports."""

    place: int
    mac: str
    address: str
    network: str
    inside: bool = False
    """Whether the port leads to servers or protected hosts."""


@dataclass(frozen=True)
class Host:
    """A neighbour of the router."""

    port: Port
    address: str
    mac: str


@dataclass(frozen=True)
class Server:
    """The endpoint to which the switch translates connections of a service."""

    id: int
    host: Host
    port: int


@dataclass(frozen=True)
class Service:
    """The endpoint to which clients connect."""

    id: int
    address: str
    port: int
    protocol: int
    servers: tuple[Server, ...]


CLIENT = Port(0, "02:00:00:00:01:01", "10.0.1.1", "10.0.1.0/24")
POOL_A = Port(1, "02:00:00:00:02:01", "10.0.2.1", "10.0.2.0/24", inside=True)
POOL_B = Port(2, "02:00:00:00:03:01", "10.0.3.1", "10.0.3.0/24", inside=True)
UPLINK = Port(3, "02:00:00:00:04:01", "10.0.4.1", "10.0.4.0/24")
PORTS = (CLIENT, POOL_A, POOL_B, UPLINK)
SPARE_PLACE = 4

CLIENT_HOST = Host(CLIENT, "10.0.1.10", "02:00:00:00:01:10")
CLIENT_GATEWAY = Host(CLIENT, "10.0.1.254", "02:00:00:00:01:fe")
S1_HOST = Host(POOL_A, "10.0.2.11", "02:00:00:00:02:11")
S2_HOST = Host(POOL_A, "10.0.2.12", "02:00:00:00:02:12")
S3_HOST = Host(POOL_B, "10.0.3.13", "02:00:00:00:03:13")
UPLINK_HOST = Host(UPLINK, "10.0.4.20", "02:00:00:00:04:20")
UPLINK_GATEWAY = Host(UPLINK, "10.0.4.254", "02:00:00:00:04:fe")
HOSTS = (CLIENT_HOST, CLIENT_GATEWAY, S1_HOST, S2_HOST, S3_HOST, UPLINK_HOST, UPLINK_GATEWAY)

ABSENT = "10.0.4.99"
"""An address in a connected network; no neighbour has this address."""
ABSENT_GATEWAY = "10.0.4.98"
"""The next hop of a route; no neighbour has this address."""
UNROUTED = "172.16.0.1"

FAR_CLIENTS = "20.0.0.0/8"
"""Network behind CLIENT_GATEWAY, large enough for clients whose connections have given slots (`slots.colliding`)."""

# Prefix and next hop of each route; None: the prefix is directly connected.
ROUTES: tuple[tuple[str, str | None], ...] = (
    *((port.network, None) for port in PORTS),
    (FAR_CLIENTS, CLIENT_GATEWAY.address),
    ("192.168.0.0/16", UPLINK_GATEWAY.address),
    ("192.168.7.0/24", UPLINK_HOST.address),
    ("192.168.8.0/24", ABSENT_GATEWAY),
)

S1 = Server(1, S1_HOST, 8080)
S2 = Server(2, S2_HOST, 8080)
S3 = Server(3, S3_HOST, 80)
WEB = Service(1, "10.0.0.100", 80, PROTOCOL_TCP, (S1, S2, S3))

D1 = Server(4, S1_HOST, 5353)
D3 = Server(5, S3_HOST, 53)
DNS = Service(2, "10.0.0.100", 53, PROTOCOL_UDP, (D1, D3))

# A service without servers.
EMPTY = Service(3, "10.0.0.101", 80, PROTOCOL_TCP, ())

SERVICES = (WEB, DNS, EMPTY)
SERVERS = (S1, S2, S3, D1, D3)
OWNED = (*(port.address for port in PORTS), WEB.address, EMPTY.address)

DESTINATIONS = (1, 2)
"""Numbers that tests assign to destinations."""

# The weights at the start of every test: those by R (the balancing metric) send all connections to s1, those by
# capacity to s3. The server that a packet reaches thus shows which weights were used.
RATIOS: dict[Service, dict[Server, int]] = {WEB: {S1: 1}, DNS: {D1: 1}}
CAPACITIES: dict[Service, dict[Server, int]] = {WEB: {S3: 1}, DNS: {D3: 1}}
