"""Takes over the state of a switch that already runs the program: the numbers of services and servers, the drained
servers, the neighbours, and each feature's state."""

from __future__ import annotations

from sluice.switch.errors import SwitchError
from sluice.switch.plan import OutOfNumbers, Plan, ServerMoved, make_plan
from sluice.switch.reconcile import Readback

from .world import World


def adopt(world: World, snapshot: Readback, now_s: float) -> None:
    """Continue from the state of a switch that already runs the program.

    A switch without services has just been programmed: then the configuration alone determines the numbers of services
    and servers. Raises SwitchError if no numbers are free for the configuration's servers or services. Raises
    SwitchError also if a server that has connections belongs to another service in the configuration.
    """
    if snapshot.services:
        world.plan = _plan_of(world, snapshot)
        world.drained = set(snapshot.draining).intersection(s.id for s in world.plan.servers if not s.drain)
        world.leave_none_empty()
    world.neighbour_ids.adopt(snapshot.neighbour_ids, snapshot.used_ids)
    for address, neighbour in snapshot.neighbours.items():
        if world.believable(address, neighbour):
            world.neighbours.adopt(address, neighbour)
    for feature in world.features:
        feature.adopt(snapshot, now_s)


def _plan_of(world: World, snapshot: Readback) -> Plan:
    """Return the plan of the configuration, with the numbers that the switch already uses for services and servers."""
    try:
        return make_plan(world.config, snapshot.services, snapshot.origins.values(), world.pinned)
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
