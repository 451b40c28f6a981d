"""Balancing as a feature: a balancer for each service, modes set at run time, and the tasks that read and write the
switch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

from sluice.balance import POLICIES, BalanceOptions, Balancer, Member, Mode, fair_shares, to_ratios
from sluice.config.model import Config
from sluice.loops.commands import Refused, find_server
from sluice.loops.link import Link
from sluice.loops.world import Feature, Task, World
from sluice.switch.plan import Plan, Service
from sluice.switch.reconcile import Readback
from sluice.switch.state import State

from . import spill
from .decisions import balance
from .service import ServiceView
from .trace import Trace


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of a command on services. It has not been written to the switch yet."""

    services: tuple[Service, ...]
    undo: Callable[[], None]
    """Function that restores the former state, called if the switch does not accept the change."""


class Balance(Feature):
    """The balancers of all services."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.trace = Trace(None)
        """The trace to which decisions are appended."""
        self.modes: dict[str, Mode] = {}
        """Modes set at run time, by service name."""
        self.views: dict[int, ServiceView] = {}
        """The balancer and the latest decision of each service, by service number."""
        self._plan = world.plan
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._plan = self._world.plan
        self.views = {
            service.id: ServiceView(Balancer(self.members(service), self.options(service)))
            for service in self._plan.services
        }

    # -- the input of a service's balancer

    def options(self, service: Service) -> BalanceOptions:
        """Return a service's options in force: the configured options, with the mode set at run time, if any."""
        configured = service.config.balance
        return replace(configured, mode=self.modes.get(service.name, configured.mode))

    def members(self, service: Service) -> list[Member]:
        """Return the service's servers as members. Those that drain by configuration or at run time are marked as
        draining."""
        return [Member(s.id, s.capacity, draining=self._world.drains(s)) for s in service.servers]

    def second_look(self, services: Iterable[Service]) -> frozenset[int]:
        """Return the numbers of those services whose new connections compare several servers (the second look)."""
        return frozenset(s.id for s in services if s.second_look(self.options(s).mode))

    # -- all services together

    @property
    def ejected(self) -> frozenset[int]:
        """Servers that the balancer of any service has ejected."""
        return frozenset[int]().union(*(view.balancer.ejected for view in self.views.values()))

    @property
    def ratios(self) -> dict[int, Mapping[int, float]]:
        """The ratios in force, by service and server."""
        return {number: view.balancer.ratios for number, view in self.views.items()}

    @property
    def full_of_groups(self) -> frozenset[int]:
        """Servers that are full (see `sluice.balance.spill`) in any group of a content service."""
        groups = (self.views[service.id] for service in self._world.plan.services if service.group_of is not None)
        return frozenset[int]().union(*(view.full for view in groups))

    # -- methods of Feature

    def restart_keys(self, fresh: Config) -> Iterable[str]:
        if fresh.trace_file != self._world.config.trace_file:
            yield "trace_file"

    def configure(self, now_s: float) -> None:
        self.modes.clear()
        self._plan = self._world.plan
        views: dict[int, ServiceView] = {}
        for service in self._plan.services:
            view = self.views.get(service.id)
            if view is None:
                view = ServiceView(Balancer(self.members(service), self.options(service)))
            else:
                view.balancer.configure(self.members(service), self.options(service), now_s)
                view.keep_capped(service.caps)
            views[service.id] = view
        self.views = views

    def adopt(self, snapshot: Readback, now_s: float) -> None:
        if snapshot.services:
            if _numbers(self._plan) != _numbers(self._world.plan):
                self._begin_anew()
            self._plan = self._world.plan
            for service in self._plan.services:
                self._take_weights(service, snapshot, now_s)
        for view in self.views.values():
            view.rebase()

    def _take_weights(self, service: Service, snapshot: Readback, now_s: float) -> None:
        """Continue from the switch's ejections and, if the service's policy learns, from the switch's ratios. Servers
        that the switch does not have yet count as new servers."""
        view = self.views[service.id]
        weights = snapshot.weights.get(service.id)
        known = {server.id for server in snapshot.origins.values()}
        members, options = self.members(service), self.options(service)
        old = [m for m, s in zip(members, service.servers, strict=True) if s.id in known]
        if weights and POLICIES[options.mode].learns and any(not m.draining for m in old):
            balancer = view.balancer
            if weights != view.weights:
                if len(old) < len(members):
                    balancer = Balancer(old, options)
                balancer.adopt(_with_full(to_ratios(weights), old, service))
            view.balancer = balancer
        view.balancer.configure(members, options, now_s)
        view.balancer.eject(snapshot.ejected)

    async def begin(self, link: Link) -> None:
        await spill.read_full(self._world.plan, self.views, link)

    def tasks(self, link: Link) -> Mapping[str, Task]:
        world = self._world
        tasks: dict[str, Task] = {
            f"balance:{service.name}": balance(world, self.views[service.id], link, service, self.trace)
            for service in world.plan.services
        }
        if world.plan.capped:
            tasks["spill"] = spill.spill(world, self.views, link)
        return tasks

    def want(self, state: State) -> State:
        services = state.plan.services
        views = {service.id: self.views[service.id] for service in services}
        return replace(
            state,
            weights={number: view.weights for number, view in views.items()},
            second_look=self.second_look(services),
            ejected=self.ejected,
            refusing=frozenset(number for number, view in views.items() if view.refuses),
            full=self.full_of_groups,
        )

    def unwilling(self) -> Mapping[int, str]:
        full = {server: "is full" for view in self.views.values() for server in view.full}
        return full | dict.fromkeys(self.ejected, "is ejected")

    # -- commands

    def set_mode(self, name: str, mode: Mode, now_s: float) -> Change:
        """Switch a service to another mode until the next reload. Raises Refused if no service has the name."""
        service = self._world.plan.service(name)
        if service is None:
            known = ", ".join(s.name for s in self._world.plan.services)
            raise Refused(f"no service {name!r}; there is: {known}")
        change = self._change(service)
        self.modes[name] = mode
        self._configure(service, now_s)
        return change

    def set_drain(self, name: str, drain: bool, now_s: float) -> Change:
        """Exclude a server (``s1``, or ``web/s1``) from new connections, or let it return like a new server.

        Raises Refused if there is no such server, if a server that drains by configuration is to return, or if no other
        server of a service would accept connections.
        """
        world = self._world
        service, number = find_server(world, name)
        server = next(s for s in service.servers if s.id == number)
        if server.drain and not drain:
            raise Refused(f"{name} drains by configuration; set `drain: false` in the file and run `sluice reload`")
        services = [service for service in world.plan.services if number in world.names(service)]
        for service in services:
            if drain and all(world.drains(s) for s in service.servers if s.id != number):
                raise Refused(
                    f"{name} is the last server of {service.name} that takes connections; undrain or add another one "
                    "first"
                )
        change = self._change(*services)
        (world.drained.add if drain else world.drained.discard)(number)
        for service in services:
            self._configure(service, now_s)
        return change

    def _configure(self, service: Service, now_s: float) -> None:
        self.views[service.id].balancer.configure(self.members(service), self.options(service), now_s)

    def _change(self, *services: Service) -> Change:
        """Record the present state of services, so that a change that starts now can be undone."""
        world, views = self._world, [self.views[service.id] for service in services]
        drained, modes = set(world.drained), dict(self.modes)
        balancers = [deepcopy(view.balancer) for view in views]

        def undo() -> None:
            world.drained, self.modes = drained, modes
            for view, balancer in zip(views, balancers, strict=True):
                view.balancer = balancer

        return Change(services, undo)


def _with_full(ratios: dict[int, float], members: list[Member], service: Service) -> dict[int, float]:
    """Return the ratios read back, with fair shares for servers that were left out because they were full: the switch
    has no ratios of full servers."""
    full = [m.server_id for m in members if not m.draining and m.server_id in service.caps.keys() - ratios.keys()]
    fair = fair_shares({member.server_id: member for member in members})
    given = {server: fair[server] for server in full}
    rest = 1.0 - sum(given.values())
    return {server: ratio * rest for server, ratio in ratios.items()} | given


def _numbers(plan: Plan) -> tuple[list[int], list[int]]:
    """Return the numbers of a plan's services and the numbers of its servers."""
    return [service.id for service in plan.services], [server.id for server in plan.servers]
