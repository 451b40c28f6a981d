"""Tests of the state that a starting controller adopts from a switch that is already programmed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from configs import web
from sluice.balance import Counts
from sluice.config.load import parse
from sluice.features import Balance, world_of
from sluice.loops.adoption import adopt
from sluice.loops.world import World
from sluice.names import Meter
from sluice.switch.plan import InstalledServer
from sluice.switch.reconcile import Readback

BOOTED_S = 5000.0
"""Time in seconds on the host's clock when the controller starts, long after the host booted."""


def holding(world: World, servers: dict[str, int], weights: dict[int, int]) -> Readback:
    """Return the readback of a switch that has these servers, and these weights in the group of the only service."""
    return Readback(
        entries={},
        meters={meter: {} for meter in Meter},
        services={service.endpoint: service.id for service in world.plan.services},
        origins={
            server.endpoint: InstalledServer(servers[server.name], server.endpoint, service.id)
            for service in world.plan.services
            for server in service.servers
            if server.name in servers
        },
        weights={1: weights},
    )


def test_a_server_that_the_switch_does_not_know_joins_when_it_is_adopted() -> None:
    """Server s2 is new, so its share grows during slow start (60 s).

    Without slow start, recovery would raise the share to its full size after one period.
    """
    production = "mode: production, production: {slow_start_s: 60, recovery: 1}"
    world = world_of(parse(web(period_s=10, window_s=20).replace("mode: paper", production)))
    adopt(world, holding(world, {"s1": 1}, {1: 256}), BOOTED_S)
    balancer, idle = world[Balance].views[1].balancer, {1: Counts(), 2: Counts()}
    balancer.observe(BOOTED_S, idle)
    shares: list[float] = []
    for turn in range(1, 8):
        decision = balancer.observe(BOOTED_S + 10 * turn, idle)
        assert decision is not None
        shares.append(decision.ratios[2])
    assert shares == pytest.approx([min(1.0, turn / 6) / 2 for turn in range(1, 8)])


def test_a_server_that_was_ejected_stays_so_until_it_answers() -> None:
    world = world_of(parse(web(period_s=10, window_s=20).replace("mode: paper", "mode: production")))
    readback = replace(holding(world, {"s1": 1, "s2": 2}, {1: 250, 2: 6}), ejected=frozenset({2}))
    adopt(world, readback, BOOTED_S)
    assert world[Balance].ejected == world.state().ejected == {2}
    balancer = world[Balance].views[1].balancer
    balancer.observe(BOOTED_S, {1: Counts(), 2: Counts()})
    idle = balancer.observe(BOOTED_S + 10, {1: Counts(), 2: Counts()})
    assert idle is not None and idle.ejected == {2}
    answered = balancer.observe(BOOTED_S + 20, {1: Counts(), 2: Counts(1, 1, 0, 1)})
    assert answered is not None and answered.ejected == frozenset()
