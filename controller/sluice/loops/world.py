"""What the controller knows and wants, apart from any connection to a switch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from sluice.balance import BalanceOptions, Balancer, Decision, Member, Mode, to_ratios
from sluice.config import Config
from sluice.names import NEIGHBOURS, SERVERS, SERVICES
from sluice.switch.plan import Numbers, Plan, Service, make_plan
from sluice.switch.reconcile import Found
from sluice.switch.state import Crowd, State

from .neighbourtable import NeighbourTable
from .newsview import NewsView


class Refused(Exception):
    """A command that cannot be done; the text says why and what to do instead."""


@dataclass(slots=True)
class ServiceView:
    """A service's balancer and the last it decided."""

    balancer: Balancer
    decision: Decision | None = None
    weight_changes: int = 0
    """Writes of a changed weight vector since the controller started."""


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

    @classmethod
    def of(cls, config: Config) -> World:
        """The beginning: nothing known of the switch."""
        times = config.neighbours
        plan = make_plan(config, services=SERVICES, servers=SERVERS)
        world = cls(
            config=config,
            plan=plan,
            views={},
            neighbours=NeighbourTable(times.refresh_s, times.retry_s, times.forget_after, NEIGHBOURS),
        )
        world.views = {s.id: ServiceView(Balancer(world.members(s), world.options(s))) for s in plan.services}
        world.neighbours.want(plan.wanted_neighbours)
        world.news = NewsView(config.news, plan) if config.news else None
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

    def adopt(self, found: Found, now_s: float) -> None:
        """Go on from what a switch that runs the program holds: numbers, ratios, drains, neighbours.

        A switch that holds nothing (it has just been programmed) changes nothing here: it is to be restored.
        """
        if found.numbers.services:
            plan = self._numbered(self.config, found.numbers, found)
            renumbered = [s.id for s in plan.servers] != [s.id for s in self.plan.servers]
            if renumbered or [s.id for s in plan.services] != [s.id for s in self.plan.services]:
                self.views = {s.id: ServiceView(Balancer(self.members(s), self.options(s))) for s in plan.services}
            self.plan = plan
            self._take_drains(found.draining)
            for service in plan.services:
                self._take_weights(service, found, now_s)
        for address, neighbour in found.neighbours.items():
            self.neighbours.adopt(address, neighbour)
        for view in self.views.values():
            view.balancer.rebase()
        if self.news and self.config.news:
            self.news.configure(self.config.news, self.plan)
            self.news.adopt(found)

    def _take_drains(self, draining: Collection[int]) -> None:
        own = {server.id for server in self.plan.servers if not server.drain}
        self.drained |= set(draining) & own
        for service in self.plan.services:
            if all(member.draining for member in self.members(service)):
                # Drained one by one under an older configuration; a service is never left without servers.
                self.drained -= {server.id for server in service.servers}

    def _take_weights(self, service: Service, found: Found, now_s: float) -> None:
        """The members in the ratios found; servers that the switch does not know yet arrive as new ones."""
        view = self.views[service.id]
        weights = found.weights.get(service.id)
        members, options = self.members(service), self.options(service)
        old = [m for m, s in zip(members, service.servers, strict=True) if s.endpoint in found.numbers.servers]
        if weights and options.mode is not Mode.FIXED and any(not m.draining for m in old):
            balancer = view.balancer
            if weights != balancer.weights():
                if len(old) < len(members):
                    balancer = Balancer(old, options)
                balancer.adopt(to_ratios(weights))
            view.balancer = balancer
        view.balancer.configure(members, options, now_s)

    def reconfigure(self, config: Config, now_s: float) -> None:
        """Take over another configuration; what stays keeps its numbers, its windows and its connections."""
        before = self.plan
        numbers = Numbers(
            services={s.endpoint: s.id for s in before.services},
            servers={s.endpoint: s.id for s in before.servers},
        )
        self.plan = self._numbered(config, numbers, None)
        self.config = config
        self.modes.clear()
        self.drained &= {server.id for server in self.plan.servers}
        self._take_drains(())
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

    def _numbered(self, config: Config, numbers: Numbers, found: Found | None) -> Plan:
        """Number a configuration by what the switch holds or, without that, by the present plan."""
        if found is not None:
            gone = found.origins
        else:
            gone = {r.endpoint: r for r in self.plan.retired} | {
                server.endpoint: server.retired(service.id)
                for service in self.plan.services
                for server in service.servers
            }
        return make_plan(config, numbers, gone.values(), services=SERVICES, servers=SERVERS)

    def set_mode(self, name: str, mode: Mode, now_s: float) -> Service:
        """Have another mode decide a service's ratios, until the next reload. Raises Refused."""
        service = self.plan.service(name)
        if service is None:
            known = ", ".join(s.name for s in self.plan.services)
            raise Refused(f"no service {name!r}; there is: {known}")
        self.modes[name] = mode
        self.views[service.id].balancer.configure(self.members(service), self.options(service), now_s)
        return service

    def set_drain(self, name: str, drain: bool, now_s: float) -> Service:
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
        (self.drained.add if drain else self.drained.discard)(number)
        self.views[service.id].balancer.configure(self.members(service), self.options(service), now_s)
        return service

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
