"""The state that a switch is to hold: the plan, and what the control loops decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.addresses import Address
from sluice.balance.looks import MOST_LOOKS
from sluice.dataplane.units import MICROSECONDS, Units
from sluice.resources.sharer import Defaults

from .bucket import Bucket
from .plan import Plan
from .rules import Rules


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The port and MAC address of a next hop."""

    port: int
    mac: str


@dataclass(frozen=True, slots=True)
class Crowd:
    """What flash-crowd control programs into the switch; empty without it."""

    numbers: Mapping[Address, int] = field(default_factory=dict[Address, int])
    """Numbers of the destinations that are counted and can be limited. Several may share a number, and its buckets."""
    limits: Mapping[int, float] = field(default_factory=dict[int, float])
    """Limits in connections per second that flash-crowd control has set, by destination number."""
    general: Mapping[int, Bucket] = field(default_factory=dict[int, Bucket])
    """The part of each limit that every client may use, by destination number."""
    returning: Mapping[int, Bucket] = field(default_factory=dict[int, Bucket])
    """The part of each limit for remembered clients that the general bucket refused, by destination number."""
    sample_share: float = 0.0
    """Share of the packets towards servers that the switch samples."""
    flow_share: float = 1.0
    """Share of the responses that the switch measures."""


@dataclass(frozen=True, slots=True)
class State:
    """A switch's desired state, all of it or that of some services."""

    plan: Plan
    weights: Mapping[int, Mapping[int, int]]
    """Selector weights by server number, for every service of the plan by its number."""
    second_look: frozenset[int] = frozenset()
    """Services whose new connections take a second look: they go to the least loaded of a few servers."""
    most_looks: int = MOST_LOOKS
    """How many servers the switch's program can compare; set when the program is known."""
    seeks_idle: bool = True
    """Whether the switch's program keeps queues of idle servers; set when the program is known."""
    ejected: frozenset[int] = frozenset()
    refusing: frozenset[int] = frozenset()
    """Services that take no new connections because all their servers are full."""
    full: frozenset[int] = frozenset()
    """Full servers of content services' groups: new connections of remembered clients do not go to them."""
    draining: frozenset[int] = frozenset()
    """Servers drained at run time. Their entries note it, so that a restarted controller can restore it."""
    absent: frozenset[int] = frozenset()
    """Agents that do not answer the controller: their packets go to other agents."""
    leaving: frozenset[int] = frozenset()
    """Agents that report that they take no new work."""
    unread: Mapping[int, Mapping[int, int]] = field(default_factory=dict[int, Mapping[int, int]])
    """Content services without any agent, by number: weights of the servers that get new connections unread. If there
    are none, new connections are refused."""
    rules: Rules = field(default_factory=Rules)
    """The content services' rules."""
    idle_s: float | None = None
    """Seconds that an idle connection keeps its slot; None: as configured."""
    neighbours: Mapping[Address, Neighbour] = field(default_factory=dict[Address, Neighbour])
    crowd: Crowd = field(default_factory=Crowd)
    caps: Mapping[int, Defaults] = field(default_factory=dict[int, Defaults])
    """Caps of connections without a cap of their own, by server number."""
    is_complete: bool = True
    """False: the plan has only some of the services, and the state only what a decision changes."""
    units: Units = MICROSECONDS
    """The switch's clocks; set when the target is known."""
