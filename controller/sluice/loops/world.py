"""What the controller knows and wants, apart from any connection to a switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address

from sluice.balance import BalanceOptions, Balancer, Decision, Member, Mode, to_ratios
from sluice.config import Config
from sluice.frames import is_station
from sluice.names import NEIGHBOURS
from sluice.switch.errors import SwitchError
from sluice.switch.plan import Endpoint, Moved, OutOfNumbers, Plan, Retired, Service, make_plan
from sluice.switch.reconcile import Found
from sluice.switch.state import Crowd, Neighbour, State

from .neighbourtable import NeighbourTable
from .newsview import NewsView


class Refused(Exception):
    """A command that cannot be done; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a command changed of a service. The switch does not have it yet."""

    service: Service
    undo: Callable[[], None]
    """Make it as it was before: for a switch that does not take the change."""


@dataclass(slots=True)
class ServiceView:
    """A service's balancer and the last it decided."""

    balancer: Balancer
    decision: Decision | None = None
    weight_changes: int = 0
    """Writes of a changed weight vector since the controller started."""
    due_s: float | None = None
    """When the next decision is due; None: at once, for what is read next is a new beginning."""

    def rebase(self) -> None:
        """The switch's counters may have been reset."""
        self.balancer.rebase()
        self.due_s = None


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
    drained: set[int] = field(default_factory=set[int])
    """Server numbers drained at run time."""
    modes: dict[str, Mode] = field(default_factory=dict[str, Mode])
    """Modes set at run time, by service name."""
    idle_s: float = 0.0
    """How long an idle connection keeps its slot at present, in seconds; 0 before the first configuration."""
    held: frozenset[int] = frozenset()
    """Server numbers that pins name, as of the last look at the connection table."""

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
            weights={number: view.balancer.weights() for number, view in self.views.items()},
            second_look=self.second_look(self.plan.services),
            ejected=frozenset[int]().union(*(view.balancer.ejected for view in self.views.values())),
            draining=frozenset(self.drained),
            idle_s=self.idle_s,
            neighbours=self.neighbours.known,
            crowd=self.news.wanted() if self.news else Crowd(),
        )

    def part(self, service: Service) -> State:
        """What of it a decision on one service can change."""
        view = self.views[service.id]
        return State(
            plan=replace(self.plan, services=(service,), retired=()),
            weights={service.id: view.balancer.weights()},
            second_look=self.second_look((service,)),
            ejected=view.balancer.ejected,
            draining=frozenset(self.drained.intersection(server.id for server in service.servers)),
            whole=False,
        )

    def second_look(self, services: Iterable[Service]) -> frozenset[int]:
        """Those among the services, by number, whose new connections take a second look."""
        return frozenset(s.id for s in services if s.second_look(self.options(s).mode))

    # -- changes

    def stand_by(self) -> None:
        """Another controller leads the switch; what this one limited in a flash crowd is forgotten."""
        if self.news:
            self.news.stand_by()

    def adopt(self, found: Found, now_s: float) -> None:
        """Go on from what a switch that runs the program holds: numbers, ratios, drains, neighbours.

        A switch that holds nothing (it has just been programmed) changes nothing here: it is to be restored. Raises
        SwitchError when it holds so many others that the configuration's servers or services find no number, or when a
        server with connections is now another service's.
        """
        if found.services:
            before, self.plan = self.plan, self._plan_found(found)
            self.drained = set(found.draining).intersection(s.id for s in self.plan.servers if not s.drain)
            self._leave_none_empty()
            if _ids(self.plan) != _ids(before):
                self.views = {s.id: ServiceView(Balancer(self.members(s), self.options(s))) for s in self.plan.services}
            for service in self.plan.services:
                self._take_weights(service, found, now_s)
        for address, neighbour in found.neighbours.items():
            if self.believable(address, neighbour):
                self.neighbours.adopt(address, neighbour)
        for view in self.views.values():
            view.rebase()
        if self.news and self.config.news:
            self.news.configure(self.config.news, self.plan)
            self.news.adopt(found)

    def _plan_found(self, found: Found) -> Plan:
        """The configuration, numbered by what the switch holds."""
        try:
            return make_plan(self.config, found.services, found.origins.values(), self.held)
        except Moved as error:
            raise SwitchError(
                f"switch {self.config.switch.address}: {error}; until then start with the configuration that it was "
                "left with"
            ) from error
        except OutOfNumbers as error:
            raise SwitchError(
                f"switch {self.config.switch.address}: {error}: start with the configuration that it was left with and "
                "change fewer at a time, or restart the switch"
            ) from error

    def _leave_none_empty(self) -> None:
        """Servers may have been drained one by one under an older configuration; no service is left without any."""
        for service in self.plan.services:
            if all(member.draining for member in self.members(service)):
                self.drained -= {server.id for server in service.servers}

    def _take_weights(self, service: Service, found: Found, now_s: float) -> None:
        """The members in the ratios found; servers that the switch does not know yet arrive as new ones."""
        view = self.views[service.id]
        weights = found.weights.get(service.id)
        known = {server.id for server in found.origins.values()}
        members, options = self.members(service), self.options(service)
        old = [m for m, s in zip(members, service.servers, strict=True) if s.id in known]
        if weights and options.mode is not Mode.FIXED and any(not m.draining for m in old):
            balancer = view.balancer
            if weights != balancer.weights():
                if len(old) < len(members):
                    balancer = Balancer(old, options)
                balancer.adopt(to_ratios(weights))
            view.balancer = balancer
        view.balancer.configure(members, options, now_s)

    def present(self) -> tuple[dict[Endpoint, int], list[Retired]]:
        """The services and servers that the switch has by the present plan."""
        retired = {r.endpoint: r for r in self.plan.retired} | {
            server.endpoint: server.retired(service.id) for service in self.plan.services for server in service.servers
        }
        return {s.endpoint: s.id for s in self.plan.services}, list(retired.values())

    def planned(self, config: Config) -> Plan:
        """Another configuration, numbered by the present plan: what stays keeps its number.

        Raises Refused while removed servers have too many numbers, and for a server that another service takes over
        while it still gets or has connections.
        """
        services, servers = self.present()
        live = {m.server_id for s in self.plan.services for m in self.members(s) if not m.draining}
        try:
            return make_plan(config, services, servers, self.held | live)
        except Moved as error:
            raise Refused(str(error)) from error
        except OutOfNumbers as error:
            raise Refused(f"{error}: change fewer at a time, the next when those connections have ended") from error

    def reconfigure(self, config: Config, now_s: float) -> None:
        """Take over another configuration; what stays keeps its numbers, its windows and its connections.

        Raises Refused, and changes nothing then.
        """
        self.plan = self.planned(config)
        self.config = config
        self.idle_s = config.connections.idle_s
        self.modes.clear()
        self.drained &= {server.id for server in self.plan.servers}
        self._leave_none_empty()
        views: dict[int, ServiceView] = {}
        for service in self.plan.services:
            view = self.views.get(service.id)
            if view is None:
                view = ServiceView(Balancer(self.members(service), self.options(service)))
            else:
                view.balancer.configure(self.members(service), self.options(service), now_s)
            views[service.id] = view
        self.views = views
        if config.news is None:
            self.news = None
        elif self.news is None:
            self.news = NewsView(config.news, self.plan)
        else:
            self.news.configure(config.news, self.plan)
        times = config.neighbours
        self.neighbours.configure(times.refresh_s, times.retry_s, times.forget_after)
        self.neighbours.want(self.plan.wanted_neighbours)
        self.neighbours.keep(self.believable)

    def believable(self, address: IPv4Address, neighbour: Neighbour) -> bool:
        """Whether a neighbour can be there, whoever says so.

        It must be on a port of its subnet: otherwise a client could take a server's place. Its MAC address must be one
        that a station can have (RFC 1812, section 3.3.2), and none of our own.
        """
        if not is_station(neighbour.mac) or any(i.mac == neighbour.mac for i in self.config.interfaces):
            return False
        return any(interface.port == neighbour.port for interface in self.plan.interfaces_towards(address))

    def set_mode(self, name: str, mode: Mode, now_s: float) -> Change:
        """Have another mode decide a service's ratios, until the next reload. Raises Refused."""
        service = self.plan.service(name)
        if service is None:
            known = ", ".join(s.name for s in self.plan.services)
            raise Refused(f"no service {name!r}; there is: {known}")
        change = self._change(service)
        self.modes[name] = mode
        self.views[service.id].balancer.configure(self.members(service), self.options(service), now_s)
        return change

    def set_drain(self, name: str, drain: bool, now_s: float) -> Change:
        """Give a server (``s1``, or ``web/s1``) no new connections, or again its share. Raises Refused."""
        service, number = self.find_server(name)
        server = next(s for s in service.servers if s.id == number)
        if server.drain and not drain:
            raise Refused(f"{name} drains by configuration; set `drain: false` in the file and run `sluice reload`")
        others = [m for m in self.members(service) if m.server_id != number and not m.draining]
        if drain and not others:
            raise Refused(
                f"{name} is the last server of {service.name} that takes connections; undrain or add another one first"
            )
        change = self._change(service)
        (self.drained.add if drain else self.drained.discard)(number)
        self.views[service.id].balancer.configure(self.members(service), self.options(service), now_s)
        return change

    def _change(self, service: Service) -> Change:
        """A change that begins now."""
        view, drained, modes = self.views[service.id], set(self.drained), dict(self.modes)
        balancer = deepcopy(view.balancer)

        def undo() -> None:
            self.drained, self.modes, view.balancer = drained, modes, balancer

        return Change(service, undo)

    def find_server(self, name: str) -> tuple[Service, int]:
        """The service and number of a server, by ``server`` or ``service/server``. Raises Refused."""
        wanted_service, _, wanted = name.rpartition("/")
        matches = [
            (service, server.id)
            for service in self.plan.services
            for server in service.servers
            if server.name == wanted and wanted_service in ("", service.name)
        ]
        if not matches:
            known = ", ".join(f"{s.name}/{m.name}" for s in self.plan.services for m in s.servers)
            raise Refused(f"no server {name!r}; there is: {known}")
        if len(matches) > 1:
            choice = " or ".join(f"{service.name}/{wanted}" for service, _ in matches)
            raise Refused(f"{name!r} is in several services; say {choice}")
        return matches[0]

    def names(self, service: Service) -> Mapping[int, str]:
        """Server names by number."""
        return {server.id: server.name for server in service.servers}


def _ids(plan: Plan) -> tuple[list[int], list[int]]:
    return [service.id for service in plan.services], [server.id for server in plan.servers]
