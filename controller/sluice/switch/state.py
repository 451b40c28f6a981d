"""What a switch is to hold: the plan, and the state that the loops decide."""

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
    """Where a next hop is."""

    port: int
    mac: str


@dataclass(frozen=True, slots=True)
class Crowd:
    """What flash-crowd control wants of the switch; nothing without it."""

    numbers: Mapping[Address, int] = field(default_factory=dict[Address, int])
    """Destinations that are counted and can be limited. Several may share a number, and its buckets."""
    limits: Mapping[int, float] = field(default_factory=dict[int, float])
    """Connections per second by destination number, where flash-crowd control has set a limit."""
    anybody: Mapping[int, Bucket] = field(default_factory=dict[int, Bucket])
    returning: Mapping[int, Bucket] = field(default_factory=dict[int, Bucket])
    """The buckets that a limit is split over, by destination number."""
    sample_share: float = 0.0
    """Part of the packets towards servers to be sampled."""
    flow_share: float = 1.0
    """Part of the responses to be measured."""


@dataclass(frozen=True, slots=True)
class State:
    """The switch's desired state."""

    plan: Plan
    weights: Mapping[int, Mapping[int, int]]
    """Of every service of the plan, by its number: selector weights by server number."""
    second_look: frozenset[int] = frozenset()
    """Services whose new connections go to the one of a few servers that has least to do."""
    most_looks: int = MOST_LOOKS
    """At so many servers the switch's program can look; known once it is."""
    seeks_idle: bool = True
    """It knows which servers are idle; known once it is."""
    ejected: frozenset[int] = frozenset()
    refusing: frozenset[int] = frozenset()
    """Services whose servers are all full: they take no new connections."""
    full: frozenset[int] = frozenset()
    """Full servers of groups: what their content service remembers leads no new connections to them."""
    draining: frozenset[int] = frozenset()
    """Servers drained at run time; noted with their entry, so that a restarted controller finds it."""
    absent: frozenset[int] = frozenset()
    """Agents that do not answer their controller: their packets go to others."""
    leaving: frozenset[int] = frozenset()
    """Agents that take no new work, by their own account."""
    unread: Mapping[int, Mapping[int, int]] = field(default_factory=dict[int, Mapping[int, int]])
    """Content services without any agent, by number: the weights of the servers that get new connections unread; none:
    new connections are refused."""
    rules: Rules = field(default_factory=Rules)
    """Of content services."""
    idle_s: float | None = None
    """How long an idle connection keeps its slot, in seconds; None: as configured."""
    neighbours: Mapping[Address, Neighbour] = field(default_factory=dict[Address, Neighbour])
    crowd: Crowd = field(default_factory=Crowd)
    caps: Mapping[int, Defaults] = field(default_factory=dict[int, Defaults])
    """Of connections without a cap of their own, by server number."""
    whole: bool = True
    """Else the plan has some of the services only, and of them this is what a decision changes."""
    units: Units = MICROSECONDS
    """The switch's clocks; known once it is."""
