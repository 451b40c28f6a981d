"""The desired state of a switch: the plan, and the decisions of the control loops."""

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
    """What flash-crowd control programs into the switch; without flash-crowd control, the defaults."""

    numbers: Mapping[Address, int] = field(default_factory=dict[Address, int])
    """Numbers of the destinations that are counted and can be limited. Several destinations may share a number, and
    then share its token buckets."""
    limits: Mapping[int, float] = field(default_factory=dict[int, float])
    """Limits in connections per second that flash-crowd control has set, by destination number."""
    general: Mapping[int, Bucket] = field(default_factory=dict[int, Bucket])
    """The part of each limit that every client may use, by destination number."""
    returning: Mapping[int, Bucket] = field(default_factory=dict[int, Bucket])
    """The part of each limit for remembered clients that the general bucket refused, by destination number."""
    sample_share: float = 0.0
    """Share, from 0 to 1, of the packets towards servers that the switch samples."""
    flow_share: float = 1.0
    """Share, from 0 to 1, of the responses whose rates the switch measures."""


@dataclass(frozen=True, slots=True)
class State:
    """A switch's desired state, either of all services or of some."""

    plan: Plan
    weights: Mapping[int, Mapping[int, int]]
    """For every service of the plan, by service number: the selector weights by server number."""
    second_look: frozenset[int] = frozenset()
    """Services whose new connections take a second look: they go to the least loaded of two to four servers."""
    most_looks: int = MOST_LOOKS
    """The number of servers that the switch's program can compare; set once the program is known."""
    seeks_idle: bool = True
    """Whether the switch's program has queues of idle servers; set once the program is known."""
    ejected: frozenset[int] = frozenset()
    refusing: frozenset[int] = frozenset()
    """Services that refuse new connections because all their servers are full."""
    full: frozenset[int] = frozenset()
    """Full servers of content services' groups: the switch sends no new connections of remembered clients to them."""
    draining: frozenset[int] = frozenset()
    """Servers that were drained at run time. Their table entries note the drain, so that a restarted controller can
    restore it."""
    absent: frozenset[int] = frozenset()
    """Agents that do not answer the controller: their packets go to other agents."""
    leaving: frozenset[int] = frozenset()
    """Agents that report that they accept no new work."""
    unread: Mapping[int, Mapping[int, int]] = field(default_factory=dict[int, Mapping[int, int]])
    """For each content service without any agent, by service number: the weights of the servers that receive new
    connections directly, without an agent that reads the request. Without weights, the switch refuses new
    connections."""
    rules: Rules = field(default_factory=Rules)
    """The content services' rules."""
    idle_s: float | None = None
    """Seconds for which an idle connection keeps its slot; None: the configured time."""
    neighbours: Mapping[Address, Neighbour] = field(default_factory=dict[Address, Neighbour])
    """Port and MAC address of each resolved next hop, by its IP address."""
    neighbour_ids: Mapping[Address, int] = field(default_factory=dict[Address, int])
    """The ids of next hops: of all that the configuration needs, and of the others that are resolved."""
    crowd: Crowd = field(default_factory=Crowd)
    caps: Mapping[int, Defaults] = field(default_factory=dict[int, Defaults])
    """Default caps, for connections without a cap of their own, by server number."""
    is_complete: bool = True
    """False: the plan contains only some services, and the state only what a balancing decision changes."""
    units: Units = MICROSECONDS
    """The units of the switch's clocks; set once the target is known."""
