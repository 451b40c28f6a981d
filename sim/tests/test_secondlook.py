"""Tests that the simulated second look selects the same servers as the model of the data plane. Packet tests compare
the real switch with that model."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from sluice.addresses import from_text
from sluice.balance.looks import MOST_LOOKS, SMALL_POOL, sought_idle
from sluice.dataplane.connection import Connection
from sluice.dataplane.dataplane import DataPlane, Packet, Service
from sluice.dataplane.draws import Draws
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import Event
from sluice.names import TICK_BASE, PinState, Register

from sim.clock import Clock
from sim.secondlook import SecondLook

SERVICE, CLIENT = from_text("10.0.0.100").packed, from_text("10.0.1.7").packed


def draws(weights: Mapping[int, int]) -> Draws:
    """Return the random draws of servers that the controller programs into the switch.

    A connection's second and further servers are drawn from the rest of a small pool, or from all servers of a large
    pool.
    """
    if len(weights) == 1:
        return Draws(weights, shares=sum(weights.values()))
    if len(weights) > SMALL_POOL:
        return Draws(weights, dict.fromkeys(weights, weights), sum(weights.values()), MOST_LOOKS)
    others = {first: {server: weights[server] for server in weights if server != first} for first in weights}
    return Draws(weights, others, sum(weights.values()), MOST_LOOKS)


@pytest.mark.parametrize("weight_choices", [(5, 8, 10), (10, 11)], ids=["unlike", "alike"])
@pytest.mark.parametrize("servers", [1, 2, 3, 5, 16, 17, 40])
def test_connections_go_where_the_data_plane_sends_them(servers: int, weight_choices: tuple[int, ...]) -> None:
    source = random.Random(servers)
    weights = {server: source.choice(weight_choices) for server in range(1, servers + 1)}
    looking = SecondLook(Clock(), weights)
    plane = DataPlane(Memory(), dict.fromkeys(PinState, 1 << 20), dict.fromkeys(weights, False))
    service = Service(1, draws(weights), sought=sought_idle(weights))
    live: list[tuple[Connection, int]] = []
    sought = 0
    for port in range(1024, 3024):
        connection = Connection(CLIENT, port, SERVICE, 80)
        assert service.draws is not None
        drawn = service.draws.evenly(plane.memory.of(Register.DRAW_POINT)[service.id])
        server = looking.choose(source)
        assert plane.request(TICK_BASE, service, Packet(connection, Event.SYN)).server == server
        sought += server not in drawn
        live.append((connection, server))
        while live and source.random() < (0.55 if len(live) > servers else 0.3):
            ended, server = live.pop(source.randrange(len(live)))
            looking.closed(server, by_fin=True)
            plane.answer(TICK_BASE, service, server, Packet(ended, Event.FIN))
    assert sought > 0 or servers <= MOST_LOOKS, "no idle server was selected"
