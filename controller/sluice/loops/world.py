"""The controller's state that does not depend on a connection to a switch: configuration, shared state, and features.

A feature is one capability of the controller: balancing, flash-crowd control, content switching, TCP resources. The
module `adoption` takes over a switch's state, the module `commands` a changed configuration.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sluice.addresses import Address
from sluice.config.model import Config
from sluice.frames import is_station
from sluice.names import NEIGHBOURS
from sluice.switch.neighbourids import NeighbourIds
from sluice.switch.plan import Endpoint, InstalledServer, Plan, Server, Service, make_plan
from sluice.switch.reconcile import Readback
from sluice.switch.registers import Registers
from sluice.switch.state import Neighbour, State

from .events import Events
from .link import Link
from .neighbourtable import NeighbourTable
from .pinages import PinAges

Task = Coroutine[Any, Any, None]
"""A task that runs while the controller is the switch's primary. It never returns. It raises SwitchError."""


class Feature:
    """One capability of the controller: its state, its part of the desired state, its tasks and its views.

    World creates one feature of each kind, whether it is configured or not. It lives as long as the controller. A
    feature that is not configured adds nothing to the desired state and has no tasks. The methods below do nothing
    unless a feature overrides them.
    """

    def __init__(self, world: World) -> None:
        """``world`` already has its configuration, its plan, and those features that come before this one."""
        self._world = world

    # -- the configuration

    def configure(self, now_s: float) -> None:
        """Take over the world's configuration and plan, both of which a reload has replaced."""

    def restart_keys(self, fresh: Config) -> Iterable[str]:
        """Return those changed keys of a new configuration that require a restart of the controller."""
        return ()

    async def prepare(self, plan: Plan) -> None:
        """Prepare for a plan before a reload applies it. Raises Refused if the plan cannot take effect; the feature
        then undoes its preparations."""

    # -- the switch

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        """Continue from a switch's state. The world's plan already has the switch's numbers.

        ``snapshot`` has no services if the switch has just been programmed, in which case the switch's counters start
        at 0.
        """

    async def begin(self, link: Link) -> None:
        """Read from the switch what the first write needs. Raises SwitchError."""

    def tasks(self, link: Link) -> Mapping[str, Task]:
        """Return the tasks to run while the controller is primary, by name. They are restarted after each reload."""
        return {}

    def stand_by(self) -> None:
        """Forget what only the primary decides, because another controller is now the switch's primary."""

    def want(self, state: State) -> State:
        """Return the desired state with this feature's part added, for the services of ``state.plan``."""
        return state

    # -- other features

    def holds(self, service: int) -> bool:
        """Return whether this feature requires that the weights of a service, given by its number, stay as they are."""
        return False

    def verdict_turn(self, now_s: float) -> tuple[float, float] | None:
        """Return the time (by the event loop's clock) at which this feature next decides the result of ``holds``, and
        the seconds between such decisions; None if it makes no decisions."""
        return None

    # -- views

    async def read(self, registers: Registers) -> None:
        """Read from the switch the counts that a status report contains. Raises SwitchError."""

    def status(self) -> Mapping[str, Any]:
        """Return the feature's keys of a status report, with values for JSON."""
        return {}

    def service_status(self, service: Service) -> Mapping[str, Any]:
        """Return the feature's keys of a service in a status report."""
        return {}

    def server_status(self, service: Service, server: Server) -> Mapping[str, Any]:
        """Return the feature's keys of a server in a status report. They override keys that are already present."""
        return {}

    def unwilling(self) -> Mapping[int, str]:
        """Return the servers that receive no new connections, by number, each with a reason for `sluice explain`."""
        return {}


_F = TypeVar("_F", bound=Feature)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The occupancy of the connection table at the last sweep, in slots."""

    slots: int
    kept: int
    """Slots whose connection has not expired."""

    @property
    def share(self) -> float:
        """The share of the slots whose connection has not expired."""
        return self.kept / self.slots


@dataclass(slots=True)
class World:
    """The configuration, the state that features and tasks share, and the features."""

    config: Config
    plan: Plan
    neighbours: NeighbourTable
    neighbour_ids: NeighbourIds
    idle_s: float
    """Seconds for which an idle connection keeps its slot at present."""
    features: tuple[Feature, ...] = ()
    drained: set[int] = field(default_factory=set[int])
    """Numbers of the servers that were drained at run time."""
    pinned: frozenset[int] = frozenset()
    """Numbers of the servers that had pins (connections' entries in the table) when the table was last read."""
    table: Occupancy | None = None
    """The table's occupancy; None before the first sweep."""
    ages: PinAges = field(default_factory=PinAges)
    """Times at which connections were pinned, learned in sweeps."""
    events: Events = field(default_factory=Events)

    @classmethod
    def of(cls, config: Config, kinds: Iterable[type[Feature]]) -> World:
        """Return the state at the start of a controller, with one feature of each kind. The switch's state is not yet
        known."""
        times = config.neighbours
        table = NeighbourTable(times.refresh_s, times.retry_s, times.forget_after, NEIGHBOURS)
        world = cls(config, make_plan(config), table, NeighbourIds(), config.connections.idle_s)
        world.neighbours.want(world.plan.wanted_neighbours)
        for kind in kinds:
            world.features += (kind(world),)
        return world

    def __getitem__(self, kind: type[_F]) -> _F:
        """Return the feature of a kind. Raises KeyError if this world was created without that kind."""
        for feature in self.features:
            if isinstance(feature, kind):
                return feature
        raise KeyError(kind.__name__)

    # -- the desired state

    def state(self, *services: Service) -> State:
        """Return the desired state of the switch. With ``services``, return only the part that decisions on these
        services can change."""
        known = self.neighbours.known
        state = State(
            plan=replace(self.plan, services=services, retired=()) if services else self.plan,
            weights={},
            draining=frozenset(self.drained),
            idle_s=self.idle_s,
            neighbours=known,
            neighbour_ids={} if services else self.neighbour_ids.assign({*known, *self.plan.wanted_neighbours}),
            is_complete=not services,
        )
        for feature in self.features:
            state = feature.want(state)
        return state

    def holds(self, service: int) -> bool:
        """Return whether a feature requires that the weights of a service, given by its number, stay as they are."""
        return any(feature.holds(service) for feature in self.features)

    # -- servers

    def drains(self, server: Server) -> bool:
        """Return whether a server receives no new connections, by configuration or because it was drained at run
        time."""
        return server.drain or server.id in self.drained

    def leave_none_empty(self) -> None:
        """End the drains that were started at run time, for each service of which no server would be left.

        Such a service can result from a new configuration, if it removes or drains the servers that did not drain.
        """
        for service in self.plan.services:
            if all(map(self.drains, service.servers)):
                self.drained -= {server.id for server in service.servers}

    def present(self) -> tuple[dict[Endpoint, int], list[InstalledServer]]:
        """Return the services and the servers, including retired ones, that the switch has by the present plan."""
        retired = {r.endpoint: r for r in self.plan.retired} | {
            server.endpoint: server for service in self.plan.services for server in service.installed
        }
        return {s.endpoint: s.id for s in self.plan.services}, list(retired.values())

    def names(self, service: Service) -> Mapping[int, str]:
        """Return the names of a service's servers, by number."""
        return {server.id: server.name for server in service.servers}

    # -- neighbours

    def believable(self, address: Address, neighbour: Neighbour) -> bool:
        """Return whether a neighbour can be at the place that an ARP message reports.

        The port must belong to the address's subnet; otherwise a client could impersonate a server. The MAC address
        must be one that a station can have (RFC 1812, section 3.3.2), and none of the switch's own.
        """
        if not is_station(neighbour.mac) or any(i.mac == neighbour.mac for i in self.config.interfaces):
            return False
        return any(interface.port == neighbour.port for interface in self.plan.interfaces_towards(address))
