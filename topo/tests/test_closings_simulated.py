"""Tests that close thousands of connections while their clients' next requests arrive at random times. Clients and
server are simulated packet by packet, and every connection's outcome is checked.

With `FULL=1` in the environment the test makes 100,000 closings instead of 5,000.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from math import fsum
from typing import Any

import pytest
from sluice.addresses import Packed, from_text
from sluice.config.model import Config
from sluice.dataplane.connection import Connection
from sluice.dataplane.transfers import flow_index

from topo.labs import closing as closing_lab
from topo.labs.closing import DISTANCES, ClosingNetwork
from topo.plan.network import CLIENT, VIP, WEB_PORT
from topo.tests import needs
from topo.tests.closer import TIMEOUT_S, Closer, closing, configured
from topo.tests.endpoints import Endpoints, Key

pytestmark = needs.LONG

CLOSINGS = 100_000 if os.environ.get("FULL") else 5_000
BATCH = 500
CLIENTS = [f"10.0.1.{number}" for number in range(20, 40)]
SERVER = "10.0.11.2"
"""Addresses of clients and server; the kernels of their hosts do not have these addresses."""
THINK_S = 1.0
ANSWER_S = 0.002
"""Seconds from the time at which the tickle (the controller's probe) passes the switch until the server's answer passes
it."""
RACES = 1.5
FIRST_PORT, LAST_PORT = 1024, 65_000


@pytest.fixture
def net() -> Iterator[tuple[Endpoints, Config]]:
    neighbours = {SERVER: (closing_lab.SERVER.port, closing_lab.SERVER.mac)}
    neighbours |= dict.fromkeys(CLIENTS, (CLIENT.port, CLIENT.mac))
    with ClosingNetwork() as place, configured(place, served_by(SERVER), neighbours) as config, ExitStack() as stack:
        for host in (CLIENT, closing_lab.SERVER):
            place.call(host.name, "sysctl", "-qw", "net.ipv4.ip_forward=0")
        ends = Endpoints(place, VIP.packed, from_text(SERVER).packed)
        stack.callback(ends.close)
        yield ends, config


def served_by(address: str) -> Callable[[dict[str, Any]], None]:
    """Return a function that sets the address of the service's server in a configuration."""

    def change(document: dict[str, Any]) -> None:
        document["services"][0]["servers"][0]["address"] = address

    return change


def keys() -> Iterator[Key]:
    """Yield addresses and ports of clients, without end; after the last pair the first one is repeated."""
    packed: Sequence[Packed] = [from_text(client).packed for client in CLIENTS]
    while True:
        for port in range(FIRST_PORT, LAST_PORT):
            for address in packed:
                yield address, port


def flows_of(batch: Sequence[Key]) -> list[int]:
    """Return the numbers of the slots in which the connection table may store each connection."""
    places = (Connection(*key, VIP.packed, WEB_PORT).place for key in batch)
    return [flow for place in places for flow in (flow_index(0, place.slot_1), flow_index(1, place.slot_2))]


class Round:
    """A batch of connections. Each is closed while its client thinks; the time of the client's next request is
    random."""

    def __init__(self, ends: Endpoints, closer: Closer, batch: list[Key], fresh: Iterator[Key]) -> None:
        self.ends, self.closer, self.batch, self._fresh = ends, closer, batch, fresh
        self.taken_back: list[Key] = []
        self.racing: list[Key] = []
        self.tickled = ends.seen["tickles"]
        self.expected = 0.0
        distances = list(DISTANCES.values())
        for number, key in enumerate(batch):
            round_trip_s = distances[number % len(distances)]
            self.expected += round_trip_s / THINK_S
            arrives_s = random.expovariate(1 / THINK_S)  # from the tickle to the next request, both at the switch
            if arrives_s < ANSWER_S:
                self.taken_back.append(key)
            elif arrives_s < ANSWER_S + round_trip_s:
                self.racing.append(key)

    async def run(self) -> None:
        """Fetch a page on each connection, close the connections, and check the outcome of each."""
        ends = self.ends
        self._fetch(self.batch)
        for key in self.racing:
            ends.clients[key].races = True
        ends.overtaken = set(self.taken_back)
        for flow in await self._idle():
            await self.closer.closing.tickle(flow, self.closer.service, 0.0)
            ends.exchange(0.0)
        await self._tickled()
        ends.answers()
        ends.exchange()
        for key in self.racing:
            assert ends.clients[key].saw_fin
            if not ends.clients[key].was_reset:
                ends.repeats(key)  # the client's retransmission acknowledges the FIN
        ends.exchange()
        self._check()
        repeated = list(islice(self._fresh, len(self.racing)))
        self._fetch(repeated)
        for key in (*self.batch, *repeated):
            if not ends.clients[key].was_reset:
                ends.ends(key)
        ends.exchange()
        ends.clients.clear()

    def _fetch(self, batch: Sequence[Key]) -> None:
        """Fetch a page on a new connection for each key. Requests lost in a race are repeated with new keys."""
        for key in batch:
            self.ends.opens(key)
        self.ends.exchange()
        lost = [key for key in batch if self.ends.clients[key].pages != 1]
        assert lost == []

    async def _idle(self) -> list[int]:
        end = time.monotonic() + TIMEOUT_S
        idle: list[int] = []
        while time.monotonic() < end:
            idle = [
                facts.flow for facts in await self.closer.closing.confirm_idle(flows_of(self.batch), time.monotonic())
            ]
            if len(idle) == len(self.batch):
                return idle
            await asyncio.sleep(0.05)
        raise AssertionError(f"{len(idle)} of {len(self.batch)} connections are idle")

    async def _tickled(self) -> None:
        end = time.monotonic() + TIMEOUT_S
        before = self.tickled
        while self.ends.seen["tickles"] - before < len(self.batch):
            assert time.monotonic() < end, f"{self.ends.seen['tickles'] - before} of {len(self.batch)} tickles came"
            await asyncio.sleep(0)
            self.ends.exchange()

    def _check(self) -> None:
        """Check each connection's outcome, which depends on the time of its next request: kept open, reset, or
        closed."""
        back, racing = set(self.taken_back), set(self.racing)
        for key in self.batch:
            client, is_served = self.ends.clients[key], key in self.ends.served
            assert is_served is (key in back)
            assert client.saw_fin is (key not in back)
            assert client.was_reset is (key in racing)
            assert (client.asked, client.pages) == ((2, 2) if key in back else (2, 1) if key in racing else (1, 1))


def test_of_thousands_that_are_closed_every_one_is_accounted_for(net: tuple[Endpoints, Config]) -> None:
    ends, config = net
    random.seed(36)
    fresh = keys()
    rounds: list[Round] = []

    async def act(closer: Closer) -> None:
        closed = raced = back = 0
        while closed < CLOSINGS:
            rounds.append(current := Round(ends, closer, list(islice(fresh, BATCH)), fresh))
            await current.run()
            closed += BATCH - len(current.taken_back)
            counts = (await closer.closing.counts([closer.server]))[closer.server]
            raced = sum(len(each.racing) for each in rounds)
            back = sum(len(each.taken_back) for each in rounds)
            assert (counts.closed, counts.taken_back, counts.raced) == (closed, back, raced)
            assert await closer.load() == 0
        expected = fsum(each.expected for each in rounds)
        print(f"{closed} closed, {back} taken back, {raced} raced, {expected:.0f} expected; {dict(ends.seen)}")
        assert raced <= RACES * expected
        assert ends.seen["resets of the server's"] == closed
        wrong = {"inexact at the server", "out of order at the server", "no request"}
        assert not wrong & {name for name, count in ends.seen.items() if count}

    closing(config, act)
