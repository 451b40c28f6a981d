"""Tests of a server that refuses connections: its host answers SYNs with RSTs.

Such a server has no open connection, and so the smallest load, but must not receive more than its share by weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sluice.addresses import from_text
from sluice.balance.looks import sought_idle
from sluice.dataplane.connection import Connection
from sluice.dataplane.dataplane import DataPlane, Packet, Service
from sluice.dataplane.draws import Draws
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import Event
from sluice.dataplane.table import REFUSING
from sluice.names import TICK_BASE, PinState

NOW = TICK_BASE + 1000
CLIENT, SERVICE = from_text("10.0.1.7").packed, from_text("10.0.0.100").packed
DEAD = 1
LIFETIMES = dict.fromkeys(PinState, 1000)
SLACK = 4
"""Connections that a server may receive above its share.

The sequence in which the switch draws servers by weight deviates from the share by at most 3 connections. A server in
the queue of idle servers can receive one connection in addition.
"""


@dataclass
class Pool:
    """A service's servers on a model of the switch; all servers except those in `dead` are alive."""

    weights: dict[int, int]
    looks: int = 4
    dead: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.plane = DataPlane(Memory(), LIFETIMES, dict.fromkeys(self.weights, False))
        others = {server: {i: weight for i, weight in self.weights.items() if i != server} for server in self.weights}
        draws = Draws(self.weights, others, sum(self.weights.values()), self.looks)
        self.service = Service(1, draws, sought_idle(self.weights))
        self.open: list[tuple[int, Connection]] = []
        self._ports = count(1024)

    def answer(self, server: int, connection: Connection, event: Event, *, acknowledges: bool = True) -> None:
        packet = Packet(connection, event, acknowledges=acknowledges)
        self.plane.answer(NOW, self.service, server, packet)

    def syn(self) -> tuple[int, Connection]:
        """Send the SYN of a new connection; return the selected server and the unanswered connection."""
        connection = Connection(CLIENT, next(self._ports), SERVICE, 80)
        return self.plane.request(NOW, self.service, Packet(connection, Event.SYN)).server, connection

    def connect(self) -> int:
        """Open a connection of a client that does not retry when refused; return the selected server."""
        server, connection = self.syn()
        if server in self.dead:
            self.answer(server, connection, Event.RESET)
            return server
        self.answer(server, connection, Event.SYN_ACK)
        self.plane.request(NOW, self.service, Packet(connection, Event.ACK))
        self.open.append((server, connection))
        return server

    def end(self, number: int, event: Event) -> None:
        """End an open connection: the server sends the event (FIN or RST)."""
        server, connection = self.open.pop(number % len(self.open))
        self.answer(server, connection, event)

    def die(self, server: int) -> None:
        """Kill a server's process, which ends its connections.

        Every third connection by number ends by RST, as if the process had not read all its data; the others by FIN.
        """
        self.dead.add(server)
        for number in reversed(range(len(self.open))):
            if self.open[number][0] == server:
                self.end(number, Event.RESET if number % 3 == 0 else Event.FIN)

    def refuses(self, server: int) -> bool:
        """Return whether the switch marks the server as one that refuses connections."""
        (refuses,) = {self.plane.memory.of(register)[server] for register in REFUSING}
        return bool(refuses)


@settings(max_examples=150, deadline=None)
@given(
    weights=st.lists(st.integers(1, 8), min_size=2, max_size=6),
    looks=st.integers(2, 4),
    before=st.integers(0, 120),
    history=st.lists(st.integers(0, 9), min_size=30, max_size=250),
)
def test_a_dead_server_gets_at_most_its_share_of_new_connections(
    weights: list[int], looks: int, before: int, history: list[int]
) -> None:
    """After `before` connections server 1 dies, and then receives at most its share (plus SLACK) of the connections.

    Each later step opens a connection, and an odd step also ends one.
    """
    pool = Pool(dict(enumerate(weights, 1)), looks)
    for _ in range(before):
        pool.connect()
    pool.die(DEAD)
    taken: list[int] = []
    for step in history:
        taken.append(pool.connect())
        if step % 2 and pool.open:
            pool.end(step, Event.FIN)
    fair = weights[0] / sum(weights)
    assert taken.count(DEAD) <= fair * len(taken) + SLACK


@settings(max_examples=50, deadline=None)
@given(weights=st.lists(st.integers(1, 8), min_size=2, max_size=6), before=st.integers(0, 120))
def test_a_server_that_answers_again_is_preferred_again(weights: list[int], before: int) -> None:
    """The switch still selects a refusing server at times, by weight, and so notices when SYNs are answered again.

    The server then has the fewest open connections and is preferred.
    """
    pool = Pool(dict(enumerate(weights, 1)))
    for _ in range(before):
        pool.connect()
    pool.die(DEAD)
    while not pool.refuses(DEAD):
        pool.connect()
    pool.dead.clear()
    for _ in range(3 * sum(weights)):
        pool.connect()
    assert not pool.refuses(DEAD)
    assert DEAD in {server for server, _ in pool.open}


@pytest.mark.parametrize(
    ("event", "acknowledges", "refuses"),
    [
        (Event.RESET, True, True),
        (Event.RESET, False, False),  # an RST that acknowledges no SYN is an answer to a segment other than a SYN
        (Event.SYN_ACK, True, False),
        (Event.FIN, True, False),
    ],
)
def test_a_server_refuses_by_a_reset_that_acknowledges_a_syn(event: Event, acknowledges: bool, refuses: bool) -> None:
    pool = Pool({1: 1, 2: 1})
    server, connection = pool.syn()
    pool.answer(server, connection, event, acknowledges=acknowledges)
    assert pool.refuses(server) is refuses


def test_the_end_of_a_connection_that_was_answered_is_no_refusal() -> None:
    pool = Pool({1: 1, 2: 1})
    server = pool.connect()
    pool.end(0, Event.RESET)
    assert not pool.refuses(server)


def test_what_another_server_sends_says_nothing() -> None:
    pool = Pool({1: 1, 2: 1})
    server, connection = pool.syn()
    pool.answer(3 - server, connection, Event.RESET)
    assert not pool.refuses(1) and not pool.refuses(2)


def test_a_refused_clients_next_syn_of_the_same_ports_chooses_anew() -> None:
    pool = Pool({1: 1, 2: 1}, dead={DEAD})
    connection = Connection(CLIENT, 5000, SERVICE, 80)
    reached: list[int] = []
    for _ in range(4):
        reached.append(pool.plane.request(NOW, pool.service, Packet(connection, Event.SYN)).server)
        if reached[-1] == DEAD:
            pool.answer(DEAD, connection, Event.RESET)
    assert 2 in reached
