"""What the controller knows and wants, apart from any connection to a switch.

`adoption` takes over what a switch holds, `commands` what an operator asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sluice.addresses import Address
from sluice.balance import BalanceOptions, Balancer, Decision, Member, Mode, full_servers, refuses
from sluice.config.model import Config
from sluice.frames import is_station
from sluice.names import NEIGHBOURS
from sluice.switch.plan import Endpoint, InstalledServer, Plan, Service, make_plan
from sluice.switch.rules import Rules
from sluice.switch.state import Crowd, Neighbour, State

from .events import Events
from .neighbourtable import NeighbourTable
from .newsview import NewsView
from .pinages import PinAges
from .resourcesview import ResourcesView

SERVICE = 0
"""Stands for all servers of a service together among their numbers, which begin at 1."""


@dataclass(slots=True)
class ServiceView:
    """A service's balancer and the last it decided."""

    balancer: Balancer
    decision: Decision | None = None
    weight_changes: int = 0
    """Writes of a changed weight vector since the controller started."""
    due_s: float | None = None
    """When the next decision is due; None: at once, for what is read next is a new beginning."""
    full: frozenset[int] = frozenset()
    """Servers at their cap of open connections, as of the last look."""
    been_full: frozenset[int] = frozenset()
    """Those that were since the last decision."""
    refusing: bool = False
    """Whether the last look had the switch refuse new connections."""
    told_full: dict[int, float] = field(default_factory=dict[int, float])
    """Servers, or SERVICE, of which people were told that they are full, and when that was last so (`spilling`)."""

    @property
    def weights(self) -> dict[int, int]:
        """The selector weights: those decided, of the servers that are not full."""
        return self.balancer.weights(self.full)

    @property
    def taking(self) -> frozenset[int]:
        """Servers that can be given connections: those that do not drain, without the ejected if any other is left."""
        active = frozenset(i for i, member in self.balancer.members.items() if not member.draining)
        return active - self.balancer.ejected or active

    @property
    def refuses(self) -> bool:
        """Whether new connections are refused, for all servers are full."""
        return refuses(self.full, self.taking)

    def look(self, caps: Mapping[int, int], open_now: Mapping[int, int]) -> None:
        """Take in the open connections of the servers that have a cap."""
        self.full = full_servers(caps, open_now, self.full, self.taking)
        self.been_full |= self.full

    def rebase(self) -> None:
        """The switch's counters may have been reset."""
        self.balancer.rebase()
        self.due_s = None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How full the connection table was at the last sweep, in slots."""

    slots: int
    kept: int

    @property
    def share(self) -> float:
        """The part of the slots that a connection keeps."""
        return self.kept / self.slots


@dataclass(slots=True)
class World:
    """The desired state and what it is decided from."""

    config: Config
    plan: Plan
    views: dict[int, ServiceView]
    """By service number."""
    neighbours: NeighbourTable
    news: NewsView | None = None
    """Flash-crowd control, where it is configured."""
    resources: ResourcesView | None = None
    """Servers' TCP resources, where a service manages them."""
    drained: set[int] = field(default_factory=set[int])
    """Server numbers drained at run time."""
    absent: set[int] = field(default_factory=set[int])
    """Numbers of agents that do not answer."""
    leaving: set[int] = field(default_factory=set[int])
    """Numbers of agents that end."""
    rules: Rules = field(default_factory=Rules)
    """Of content services."""
    modes: dict[str, Mode] = field(default_factory=dict[str, Mode])
    """Modes set at run time, by service name."""
    idle_s: float = 0.0
    """How long an idle connection keeps its slot at present, in seconds; 0 before the first configuration."""
    held: frozenset[int] = frozenset()
    """Server numbers that pins name, as of the last look at the connection table."""
    table: Occupancy | None = None
    """None before the first sweep."""
    ages: PinAges = field(default_factory=PinAges)
    """Of pins, as of the sweeps."""
    events: Events = field(default_factory=Events)

    @classmethod
    def of(cls, config: Config) -> World:
        """The beginning: nothing known of the switch."""
        times = config.neighbours
        plan = make_plan(config)
        world = cls(
            config=config,
            plan=plan,
            views={},
            neighbours=NeighbourTable(times.refresh_s, times.retry_s, times.forget_after, NEIGHBOURS),
        )
        world.views = {s.id: ServiceView(Balancer(world.members(s), world.options(s))) for s in plan.services}
        world.neighbours.want(plan.wanted_neighbours)
        world.news = NewsView(config.news, plan) if config.news else None
        world.resources = ResourcesView(plan) if world.manages else None
        world.rules = world.rules.following(config)
        world.idle_s = config.connections.idle_s
        return world

    # -- what a service looks like to its balancer

    def options(self, service: Service) -> BalanceOptions:
        """The options in force: as configured, with the mode set at run time."""
        configured = service.config.balance
        return replace(configured, mode=self.modes.get(service.name, configured.mode))

    def members(self, service: Service) -> list[Member]:
        """The service's servers; drained by configuration or at run time."""
        return [Member(s.id, s.capacity, draining=s.drain or s.id in self.drained) for s in service.servers]

    # -- the desired state

    def state(self) -> State:
        """Everything the switch is to hold."""
        return State(
            plan=self.plan,
            weights={number: view.weights for number, view in self.views.items()},
            second_look=self.second_look(self.plan.services),
            ejected=self.ejected,
            refusing=frozenset(number for number, view in self.views.items() if view.refuses),
            full=self.full_of_groups,
            draining=frozenset(self.drained),
            absent=frozenset(self.absent),
            leaving=frozenset(self.leaving),
            unread=self.unread,
            rules=self.rules,
            idle_s=self.idle_s,
            neighbours=self.neighbours.known,
            crowd=self.news.wanted() if self.news else Crowd(),
            caps=self.resources.caps if self.resources else {},
        )

    def part(self, service: Service) -> State:
        """What of it a decision on one service can change."""
        view = self.views[service.id]
        return State(
            plan=replace(self.plan, services=(service,), retired=()),
            weights={service.id: view.weights},
            second_look=self.second_look((service,)),
            ejected=self.ejected,
            refusing=frozenset({service.id} if view.refuses else ()),
            full=self.full_of_groups,
            draining=frozenset(self.drained.intersection(server.id for server in service.servers)),
            absent=frozenset(self.absent),
            leaving=frozenset(self.leaving),
            unread=self.unread,
            is_complete=False,
        )

    def capped(self, servers: Collection[int]) -> State:
        """What of it new caps of some servers change."""
        some = ((service, [one for one in service.servers if one.id in servers]) for service in self.plan.services)
        services = tuple(replace(service, servers=tuple(few)) for service, few in some if few)
        caps = self.resources.caps if self.resources else {}
        return State(plan=replace(self.plan, services=services, retired=()), weights={}, caps=caps, is_complete=False)

    @property
    def ejected(self) -> frozenset[int]:
        """Servers that a balancer has ejected; of a server in several groups one is enough."""
        return frozenset[int]().union(*(view.balancer.ejected for view in self.views.values()))

    @property
    def unread(self) -> dict[int, dict[int, int]]:
        """See State: what services without any agent do is declared by their `without_agents`."""
        groups = {service.name: service.id for service in self.plan.services}
        return {
            service.id: self.views[groups[group]].weights if (group := content.unread_group) is not None else {}
            for service in self.plan.services
            if (content := service.config.content) is not None
            and all(agent.id in self.absent for agent in service.servers)
        }

    @property
    def ratios(self) -> dict[int, Mapping[int, float]]:
        """The balancers', by service and server."""
        return {number: view.balancer.ratios for number, view in self.views.items()}

    @property
    def full_of_groups(self) -> frozenset[int]:
        """Full servers of content services' groups; of one in several groups one is enough."""
        groups = (self.views[service.id] for service in self.plan.services if service.group_of is not None)
        return frozenset[int]().union(*(view.full for view in groups))

    def second_look(self, services: Iterable[Service]) -> frozenset[int]:
        """Those among the services, by number, whose new connections take a second look."""
        return frozenset(s.id for s in services if s.second_look(self.options(s).mode))

    # -- what it knows

    @property
    def manages(self) -> bool:
        """Whether a service has its servers' resources managed."""
        return any(service.resources for service in self.config.services)

    def stand_by(self) -> None:
        """Another controller leads the switch; what this one limited in a flash crowd is forgotten."""
        if self.news:
            self.news.stand_by()

    def leave_none_empty(self) -> None:
        """Servers may have been drained one by one under an older configuration; no service is left without any."""
        for service in self.plan.services:
            if all(member.draining for member in self.members(service)):
                self.drained -= {server.id for server in service.servers}

    def present(self) -> tuple[dict[Endpoint, int], list[InstalledServer]]:
        """The services and servers that the switch has by the present plan."""
        retired = {r.endpoint: r for r in self.plan.retired} | {
            server.endpoint: server for service in self.plan.services for server in service.installed
        }
        return {s.endpoint: s.id for s in self.plan.services}, list(retired.values())

    def believable(self, address: Address, neighbour: Neighbour) -> bool:
        """Whether a neighbour can be there, whoever says so.

        It must be on a port of its subnet: otherwise a client could take a server's place. Its MAC address must be one
        that a station can have (RFC 1812, section 3.3.2), and none of our own.
        """
        if not is_station(neighbour.mac) or any(i.mac == neighbour.mac for i in self.config.interfaces):
            return False
        return any(interface.port == neighbour.port for interface in self.plan.interfaces_towards(address))

    def names(self, service: Service) -> Mapping[int, str]:
        """Server names by number."""
        return {server.id: server.name for server in service.servers}
