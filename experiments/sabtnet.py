"""Addresses of the place in which measured transfers are held against TCP itself."""

from __future__ import annotations

from dataclasses import dataclass

from topo.testbed.nets import GRPC_PORT

VIP, PORT = "10.0.0.100", 80
SERVER, CLIENT = "10.0.2.2", "10.0.1.2"
GRPC = f"127.0.0.1:{GRPC_PORT}"
FAR = "10.96.0.0/11"
"""Where the clients are, by way of CLIENT: a /16 for each distance."""
MACS = {"sw1": "02:00:00:00:00:01", "sw2": "02:00:00:00:00:02", "cli": "02:00:00:00:01:02", "srv": "02:00:00:00:02:02"}


@dataclass(frozen=True, slots=True)
class Distance:
    """A client's address, how long its packets take, and how many connections it has."""

    address: str
    delay_s: float
    connections: int


@dataclass(frozen=True, slots=True)
class Way(Distance):
    """The same with a bottleneck of its own, which all of its connections share, and losses at the client."""

    mbit_s: float
    queue_kib: int
    loss: float = 0.0
