"""What an operator asks for while the controller runs: another configuration, or a command on a server."""

from __future__ import annotations

from sluice.config.model import Config
from sluice.switch.plan import OutOfNumbers, Plan, ServerMoved, Service, make_plan

from .world import World


class Refused(Exception):
    """A command that cannot be done; the text states why and what to do instead."""


def planned(world: World, config: Config) -> Plan:
    """Return the plan of another configuration, numbered by the present plan: what stays keeps its number.

    Raises Refused while removed servers have too many numbers, and for a server that another service takes over
    while it still gets or has connections.
    """
    services, servers = world.present()
    pinned = [service for service in world.plan.services if not service.is_content]
    live = {server.id for service in pinned for server in service.servers if not world.drains(server)}
    try:
        return make_plan(config, services, servers, world.pinned | live)
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
    world.idle_s = config.connections.idle_s
    world.drained &= {server.id for server in world.plan.servers}
    world.leave_none_empty()
    for feature in world.features:
        feature.configure(now_s)
    times = config.neighbours
    world.neighbours.configure(times.refresh_s, times.retry_s, times.forget_after)
    world.neighbours.want(world.plan.wanted_neighbours)
    world.neighbours.keep(world.believable)


def find_server(world: World, name: str) -> tuple[Service, int]:
    """Return the service and number of a server, by ``server`` or ``service/server``. Raises Refused."""
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
