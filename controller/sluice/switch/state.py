"""What a switch is to hold: the plan, and the state that the loops decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from .plan import Plan


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Where a next hop is."""

    port: int
    mac: str


@dataclass(frozen=True, slots=True)
class State:
    """The switch's whole desired state."""

    plan: Plan
    weights: Mapping[int, Mapping[int, int]]
    """Of every service, by its number: selector weights by server number."""
    ejected: frozenset[int] = frozenset()
    draining: frozenset[int] = frozenset()
    """Servers drained at run time; noted with their entry, so that a restarted controller finds it."""
    neighbours: Mapping[IPv4Address, Neighbour] = field(default_factory=dict[IPv4Address, Neighbour])
