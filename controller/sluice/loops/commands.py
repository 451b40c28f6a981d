"""An operator's requests to a running controller: another configuration, or a command on a server."""

from __future__ import annotations

from sluice.config.model import Config
from sluice.switch.plan import OutOfNumbers, Plan, ServerMoved, Service, make_plan

from .world import World


class Refused(Exception):
    """The controller cannot execute a command. The text states the reason and the remedy."""


def planned(world: World, config: Config) -> Plan:
    """Return the plan of another configuration; services and servers that stay retain their present numbers.

    Raises Refused while removed servers still occupy too many numbers. Raises Refused also for a server that moves to
    another service while it still receives or has connections.
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
    """Take over another configuration. Services and servers that stay retain their numbers, measurements and
    connections.

    Raises Refused, as ``planned`` does; the configuration in force then stays.
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
    """Find a server by ``server`` or ``service/server``. Returns its service and its number. Raises Refused."""
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
