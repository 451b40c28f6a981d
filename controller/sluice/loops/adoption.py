"""Takes over what a switch that runs the program holds: numbers, ratios, ejections, drains, neighbours, limits."""

from __future__ import annotations

from sluice.balance import Balancer, Member, Mode, fair_shares, to_ratios
from sluice.switch.errors import SwitchError
from sluice.switch.plan import OutOfNumbers, Plan, ServerMoved, Service, make_plan
from sluice.switch.reconcile import Readback

from .world import ServiceView, World


def adopt(world: World, found: Readback, now_s: float) -> None:
    """Go on from what a switch that runs the program holds: numbers, ratios, ejections, drains, neighbours.

    A switch that holds nothing (it has just been programmed) changes nothing here: it is to be restored. Raises
    SwitchError when it holds so many others that the configuration's servers or services find no number, or when a
    server with connections is now another service's.
    """
    if found.services:
        before, world.plan = world.plan, _plan_found(world, found)
        world.drained = set(found.draining).intersection(s.id for s in world.plan.servers if not s.drain)
        world.absent = set(found.absent).intersection(agent.id for agent in world.plan.agents)
        world.rules = (found.rules or world.rules).following(world.config)
        world.leave_none_empty()
        if _ids(world.plan) != _ids(before):
            world.views = {s.id: ServiceView(Balancer(world.members(s), world.options(s))) for s in world.plan.services}
        for service in world.plan.services:
            _take_weights(world, service, found, now_s)
    for address, neighbour in found.neighbours.items():
        if world.believable(address, neighbour):
            world.neighbours.adopt(address, neighbour)
    for view in world.views.values():
        view.rebase()
    if world.news and world.config.news:
        world.news.configure(world.config.news, world.plan)
        world.news.adopt(found)
    if world.resources:
        world.resources.configure(world.plan)
        world.resources.rebase(found.caps)


def _plan_found(world: World, found: Readback) -> Plan:
    """The configuration, numbered by what the switch holds."""
    try:
        return make_plan(world.config, found.services, found.origins.values(), world.held)
    except ServerMoved as error:
        raise SwitchError(
            f"switch {world.config.switch.address}: {error}; until then start with the configuration that it was "
            "left with"
        ) from error
    except OutOfNumbers as error:
        raise SwitchError(
            f"switch {world.config.switch.address}: {error}: start with the configuration that it was left with and "
            "change fewer at a time, or restart the switch"
        ) from error


def _take_weights(world: World, service: Service, found: Readback, now_s: float) -> None:
    """The members in the ratios found; servers that the switch does not know yet arrive as new ones."""
    view = world.views[service.id]
    weights = found.weights.get(service.id)
    known = {server.id for server in found.origins.values()}
    members, options = world.members(service), world.options(service)
    old = [m for m, s in zip(members, service.servers, strict=True) if s.id in known]
    if weights and options.mode is not Mode.FIXED and any(not m.draining for m in old):
        balancer = view.balancer
        if weights != view.weights:
            if len(old) < len(members):
                balancer = Balancer(old, options)
            balancer.adopt(_with_full(to_ratios(weights), old, service))
        view.balancer = balancer
    view.balancer.configure(members, options, now_s)
    view.balancer.eject(found.ejected)


def _with_full(ratios: dict[int, float], members: list[Member], service: Service) -> dict[int, float]:
    """The ratios found, and fair shares for servers that were left out since they were full: theirs are not known."""
    full = [m.server_id for m in members if not m.draining and m.server_id in service.caps.keys() - ratios.keys()]
    fair = fair_shares({member.server_id: member for member in members})
    given = {server: fair[server] for server in full}
    left = 1.0 - sum(given.values())
    return {server: ratio * left for server, ratio in ratios.items()} | given


def _ids(plan: Plan) -> tuple[list[int], list[int]]:
    return [service.id for service in plan.services], [server.id for server in plan.servers]
