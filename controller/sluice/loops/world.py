"""The controller's state apart from any connection to a switch: the configuration, what is shared, and the features.

A feature is one capability of the controller: balancing, flash-crowd control, content switching, TCP resources.
`adoption` takes over what a switch holds, `commands` a changed configuration.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sluice.addresses import Address
from sluice.config.model import Config
from sluice.frames import is_station
from sluice.names import NEIGHBOURS
from sluice.switch.plan import Endpoint, InstalledServer, Plan, Server, Service, make_plan
from sluice.switch.reconcile import Readback
from sluice.switch.registers import Registers
from sluice.switch.state import Neighbour, State

from .events import Events
from .link import Link
from .neighbourtable import NeighbourTable
from .pinages import PinAges

Task = Coroutine[Any, Any, None]
"""Runs while the controller leads a switch, and never returns. Raises SwitchError."""


class Feature:
    """One capability of the controller: its state, its part of the desired state, its tasks and its views.

    World makes one of each kind and keeps it for the controller's life, whether or not it is configured. A feature that
    is not configured adds nothing to the desired state and has no tasks. Every method below does nothing unless a
    feature overrides it.
    """

    def __init__(self, world: World) -> None:
        """``world`` has its configuration and plan already, and the features that are listed before this one."""
        self._world = world

    # -- the configuration

    def configure(self, now_s: float) -> None:
        """Take over the world's configuration and plan, which a reload has replaced."""

    def restart_keys(self, fresh: Config) -> Iterable[str]:
        """Return the keys that have changed in a new configuration and take a restart of the controller."""
        return ()

    async def prepare(self, plan: Plan) -> None:
        """Make ready for a plan before a reload applies it. Raises Refused, and changes nothing then."""

    # -- the switch

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        """Continue from what a switch holds, by the world's plan, which has the switch's numbers.

        ``snapshot`` has no services when the switch has just been programmed: its counters begin anew then.
        """

    async def begin(self, link: Link) -> None:
        """Read what the first write to a switch depends on. Raises SwitchError."""

    def tasks(self, link: Link) -> Mapping[str, Task]:
        """Return the tasks to run while the switch is led, by name. They are begun anew after each reload."""
        return {}

    def stand_by(self) -> None:
        """Another controller leads the switch: forget what only the leading controller decides."""

    def want(self, state: State) -> State:
        """Return the desired state with this feature's part, for the services of ``state.plan``."""
        return state

    # -- other features

    def holds(self, service: int) -> bool:
        """Whether the weights of a service, by its number, are to stay as they are."""
        return False

    def verdict_turn(self, now_s: float) -> tuple[float, float] | None:
        """Return when the next verdict on ``holds`` is due, and the seconds between two; None without verdicts."""
        return None

    # -- views

    async def read(self, registers: Registers) -> None:
        """Read the counts that a status is to have. Raises SwitchError."""

    def status(self) -> Mapping[str, Any]:
        """Return the feature's keys of a status, as JSON has them."""
        return {}

    def service_status(self, service: Service) -> Mapping[str, Any]:
        """Return its keys of a service."""
        return {}

    def server_status(self, service: Service, server: Server) -> Mapping[str, Any]:
        """Return its keys of a service's server; a key that the status has already takes this value."""
        return {}

    def unwilling(self) -> Mapping[int, str]:
        """Return the servers that get no new connections, by number, and why, as `sluice explain` has it."""
        return {}


_F = TypeVar("_F", bound=Feature)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The connection table at the last sweep, in slots."""

    slots: int
    kept: int
    """Slots of connections whose time is not over."""

    @property
    def share(self) -> float:
        """The part of the slots that a connection keeps."""
        return self.kept / self.slots


@dataclass(slots=True)
class World:
    """The configuration, the state that features and tasks share, and the features."""

    config: Config
    plan: Plan
    neighbours: NeighbourTable
    idle_s: float
    """Seconds for which an idle connection keeps its slot at present."""
    features: tuple[Feature, ...] = ()
    drained: set[int] = field(default_factory=set[int])
    """Server numbers drained at run time."""
    pinned: frozenset[int] = frozenset()
    """Server numbers that pins name, as of the last look at the connection table."""
    table: Occupancy | None = None
    """None before the first sweep."""
    ages: PinAges = field(default_factory=PinAges)
    """Ages of pins, as of the sweeps."""
    events: Events = field(default_factory=Events)

    @classmethod
    def of(cls, config: Config, kinds: Iterable[type[Feature]]) -> World:
        """Return the state at the start of a controller, with one feature of each kind; nothing is known of the
        switch."""
        times = config.neighbours
        table = NeighbourTable(times.refresh_s, times.retry_s, times.forget_after, NEIGHBOURS)
        world = cls(config, make_plan(config), table, config.connections.idle_s)
        world.neighbours.want(world.plan.wanted_neighbours)
        for kind in kinds:
            world.features += (kind(world),)
        return world

    def __getitem__(self, kind: type[_F]) -> _F:
        """The feature of a kind. Raises KeyError for a kind that this world was made without."""
        for feature in self.features:
            if isinstance(feature, kind):
                return feature
        raise KeyError(kind.__name__)

    # -- the desired state

    def state(self, *services: Service) -> State:
        """Return everything that the switch is to hold or, for some services, what a decision on these can change."""
        state = State(
            plan=replace(self.plan, services=services, retired=()) if services else self.plan,
            weights={},
            draining=frozenset(self.drained),
            idle_s=self.idle_s,
            neighbours=self.neighbours.known,
            is_complete=not services,
        )
        for feature in self.features:
            state = feature.want(state)
        return state

    def holds(self, service: int) -> bool:
        """Whether a feature has the weights of a service, by its number, stay as they are."""
        return any(feature.holds(service) for feature in self.features)

    # -- servers

    def drains(self, server: Server) -> bool:
        """Whether a server takes no new connections, by configuration or at run time."""
        return server.drain or server.id in self.drained

    def leave_none_empty(self) -> None:
        """Undrain the servers of each service that would be left without any: they may have been drained one by one
        under an older configuration."""
        for service in self.plan.services:
            if all(map(self.drains, service.servers)):
                self.drained -= {server.id for server in service.servers}

    def present(self) -> tuple[dict[Endpoint, int], list[InstalledServer]]:
        """Return the services and servers that the switch has by the present plan."""
        retired = {r.endpoint: r for r in self.plan.retired} | {
            server.endpoint: server for service in self.plan.services for server in service.installed
        }
        return {s.endpoint: s.id for s in self.plan.services}, list(retired.values())

    def names(self, service: Service) -> Mapping[int, str]:
        """Return the server names of a service by number."""
        return {server.id: server.name for server in service.servers}

    # -- neighbours

    def believable(self, address: Address, neighbour: Neighbour) -> bool:
        """Whether a neighbour can be at a place that an ARP message reports.

        It must be on a port of its subnet: otherwise a client could take a server's place. Its MAC address must be one
        that a station can have (RFC 1812, section 3.3.2), and none of the switch's own.
        """
        if not is_station(neighbour.mac) or any(i.mac == neighbour.mac for i in self.config.interfaces):
            return False
        return any(interface.port == neighbour.port for interface in self.plan.interfaces_towards(address))
