"""What an operator asks for while the controller runs: another configuration, a mode, a drain."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from sluice.balance import Balancer, Mode
from sluice.config.model import Config
from sluice.switch.plan import OutOfNumbers, Plan, ServerMoved, Service, make_plan

from .newsview import NewsView
from .resourcesview import ResourcesView
from .world import SERVICE, ServiceView, World


class Refused(Exception):
    """A command that cannot be done; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a command changed of services. The switch does not have it yet."""

    services: tuple[Service, ...]
    undo: Callable[[], None]
    """Make it as it was before: for a switch that does not take the change."""


def planned(world: World, config: Config) -> Plan:
    """Another configuration, numbered by the present plan: what stays keeps its number.

    Raises Refused while removed servers have too many numbers, and for a server that another service takes over
    while it still gets or has connections.
    """
    services, servers = world.present()
    pinned = [service for service in world.plan.services if not service.is_content]
    live = {m.server_id for s in pinned for m in world.members(s) if not m.draining}
    try:
        return make_plan(config, services, servers, world.held | live)
    except ServerMoved as error:
        raise Refused(str(error)) from error
    except OutOfNumbers as error:
        raise Refused(f"{error}: change fewer at a time, the next when those connections have ended") from error


def reconfigure(world: World, config: Config, now_s: float) -> None:
    """Take over another configuration; what stays keeps its numbers, its windows and its connections.

    Raises Refused, and changes nothing then.
    """
    world.plan = planned(world, config)
    world.config = config
    world.rules = world.rules.following(config)
    world.idle_s = config.connections.idle_s
    world.modes.clear()
    world.drained &= {server.id for server in world.plan.servers}
    agents = {agent.id for agent in world.plan.agents}
    world.absent &= agents
    world.leaving &= agents
    world.leave_none_empty()
    views: dict[int, ServiceView] = {}
    for service in world.plan.services:
        view = world.views.get(service.id)
        if view is None:
            view = ServiceView(Balancer(world.members(service), world.options(service)))
        else:
            view.balancer.configure(world.members(service), world.options(service), now_s)
            view.full &= service.caps.keys()
            known = {SERVICE, *service.caps} if service.caps else set[int]()
            view.told_full = {one: at for one, at in view.told_full.items() if one in known}
        views[service.id] = view
    world.views = views
    if config.news is None:
        world.news = None
    elif world.news is None:
        world.news = NewsView(config.news, world.plan)
    else:
        world.news.configure(config.news, world.plan)
    if not world.manages:
        world.resources = None
    elif world.resources is None:
        world.resources = ResourcesView(world.plan)
    else:
        world.resources.configure(world.plan)
    times = config.neighbours
    world.neighbours.configure(times.refresh_s, times.retry_s, times.forget_after)
    world.neighbours.want(world.plan.wanted_neighbours)
    world.neighbours.keep(world.believable)


def set_mode(world: World, name: str, mode: Mode, now_s: float) -> Change:
    """Have another mode decide a service's ratios, until the next reload. Raises Refused."""
    service = world.plan.service(name)
    if service is None:
        known = ", ".join(s.name for s in world.plan.services)
        raise Refused(f"no service {name!r}; there is: {known}")
    change = _change(world, service)
    world.modes[name] = mode
    world.views[service.id].balancer.configure(world.members(service), world.options(service), now_s)
    return change


def set_drain(world: World, name: str, drain: bool, now_s: float) -> Change:
    """Give a server (``s1``, or ``web/s1``) no new connections, or again its share. Raises Refused."""
    service, number = find_server(world, name)
    server = next(s for s in service.servers if s.id == number)
    if server.drain and not drain:
        raise Refused(f"{name} drains by configuration; set `drain: false` in the file and run `sluice reload`")
    having = [one for one in world.plan.services if number in world.names(one)]
    for one in having:
        others = [m for m in world.members(one) if m.server_id != number and not m.draining]
        if drain and not others:
            raise Refused(
                f"{name} is the last server of {one.name} that takes connections; undrain or add another one first"
            )
    change = _change(world, *having)
    (world.drained.add if drain else world.drained.discard)(number)
    for one in having:
        world.views[one.id].balancer.configure(world.members(one), world.options(one), now_s)
    return change


def _change(world: World, *services: Service) -> Change:
    """A change that begins now."""
    views, drained, modes = [world.views[service.id] for service in services], set(world.drained), dict(world.modes)
    balancers = [deepcopy(view.balancer) for view in views]

    def undo() -> None:
        world.drained, world.modes = drained, modes
        for view, balancer in zip(views, balancers, strict=True):
            view.balancer = balancer

    return Change(services, undo)


def find_server(world: World, name: str) -> tuple[Service, int]:
    """The service and number of a server, by ``server`` or ``service/server``. Raises Refused."""
    wanted_service, _, wanted = name.rpartition("/")
    matches = [
        (service, server.id)
        for service in world.plan.services
        for server in service.servers
        if server.name == wanted and wanted_service in ("", service.name)
    ]
    if not matches:
        known = ", ".join(f"{s.name}/{m.name}" for s in world.plan.services for m in s.servers)
        raise Refused(f"no server {name!r}; there is: {known}")
    if len({number for _, number in matches}) > 1:
        choice = " or ".join(f"{service.name}/{wanted}" for service, _ in matches)
        raise Refused(f"{name!r} is in several services; say {choice}")
    return matches[0]
