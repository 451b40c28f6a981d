"""Simulated runs, each labelled with the fault that occurs in it (`topo.plan.causes`).

All runs have the same service, clients and link. The controller has its default configuration, except that the second
look is off.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator

import yaml
from sluice.config.load import parse
from sluice.config.model import Config

from topo.plan import causes
from topo.plan.causes import Decision, Judged, Label
from topo.plan.requests import Request
from topo.plan.synthesis import synthesise

from .answers import AnswerServer, FastServer, SlowServer
from .clock import Clock
from .crowd import CrowdPlan, CrowdRun, Place
from .tcp import TcpPlan

ONSET_S, RAMP_S, END_S = 120.0, 10.0, 190.0
"""Time of the fault's onset, duration of the crowd's rise, and end of the run, in seconds. Before the onset, production
mode has time to learn its baselines."""
HALF_OPEN_S = 63.0
"""Seconds for which a server keeps a half-open connection (Linux: five retransmissions of a SYN-ACK)."""


class Mortal:
    """A server that dies at ``dies_s``: it answers no later packet, and its unfinished answers stop."""

    def __init__(self, clock: Clock, server: AnswerServer, dies_s: float) -> None:
        self._clock, self._server, self._dies_s = clock, server, dies_s

    def _lives(self) -> bool:
        return self._clock.now < self._dies_s

    def syn(self) -> bool:
        """Return whether the server is alive and answers the SYN."""
        return self._lives() and self._server.syn()

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Pass the request to the server; a dead server ignores the request."""
        if self._lives():
            self._server.request(size, lambda count: offer(count) if self._lives() else None, wanted)


class HalfOpen:
    """A server without SYN cookies: it drops SYNs while its table of half-open connections is full."""

    def __init__(self, clock: Clock, server: AnswerServer) -> None:
        self._clock, self._server = clock, server
        self._ends: deque[float] = deque()
        """Times at which half-open connections expire, in ascending order. A completed handshake removes the newest
        entry; its own entry is hardly older, because a client's ACK follows soon."""

    def syn(self) -> bool:
        """Return whether the table has room and the server answers."""
        now = self._clock.now
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        if len(self._ends) >= causes.HALF_OPEN or not self._server.syn():
            return False
        self._ends.append(now + HALF_OPEN_S)
        return True

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Remove the completed handshake from the table and pass the request on."""
        if self._ends:
            self._ends.pop()
        self._server.request(size, offer, wanted)


class Turning:
    """A server whose speed changes at the onset, modelled by two servers: ``before`` with the old speed, and ``after``
    with the new speed. Requests that arrived before the onset are answered at the old speed."""

    def __init__(self, clock: Clock, before: AnswerServer, after: AnswerServer) -> None:
        self._clock, self._before, self._after = clock, before, after

    @property
    def _server(self) -> AnswerServer:
        return self._before if self._clock.now < ONSET_S else self._after

    def syn(self) -> bool:
        """Return whether the SYN is answered by that of the two servers which models the present speed."""
        return self._server.syn()

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Pass the request to that of the two servers which models the present speed."""
        self._server.request(size, offer, wanted)


def configuration() -> Config:
    """Return the configuration of every run: the defaults, without a second look (open connections are not
    simulated)."""
    servers = [{"name": f"s{n + 1}", "address": f"10.0.2.{11 + n}", "port": 80} for n in range(causes.SERVERS)]
    service = {"name": causes.SERVICE, "address": "203.0.113.80", "port": 80, "second_look": False, "servers": servers}
    port = {"port": 1, "mac": "02:00:00:00:00:01", "address": "10.0.2.1/24"}
    return parse(yaml.safe_dump({"interfaces": [port], "services": [service], "news": {}}))


def plan(label: Label, seed: int) -> CrowdPlan:
    """Return the plan of a run in which the fault ``label`` begins at ``ONSET_S``; equal seeds give equal plans."""
    source = random.Random(f"{seed} places")
    places: dict[int, Place] = {}

    def place(request: Request) -> Place:
        if request.client not in places:
            places[request.client] = Place(source.uniform(*causes.ROUND_TRIP_S))
        return places[request.client]

    return CrowdPlan(
        config=configuration(),
        requests=synthesise(
            causes.rates(label, onset_s=ONSET_S, ramp_s=RAMP_S, end_s=END_S), causes.SERVICE, seed=seed
        ),
        servers=lambda clock: {causes.SERVICE: [_server(clock, label, number) for number in range(causes.SERVERS)]},
        place=place,
        link_bit_per_s=causes.LINK_BIT_PER_S,
        room_bytes=causes.QUEUE_BYTES,
        end_s=END_S,
        loss=(lambda now_s: causes.LOSS if now_s >= ONSET_S else 0.0) if label is Label.LOSSY else None,
        spoofed=_flood(seed) if label in causes.FLOODS else (),
        tcp=TcpPlan(initial_window=10),
        seed=seed,
    )


def _server(clock: Clock, label: Label, number: int) -> AnswerServer:
    def computing(turn_s: float) -> AnswerServer:
        return SlowServer(clock, workers=causes.WORKERS, backlog=causes.BACKLOG, turn_s=turn_s)

    match label:
        case Label.SERVERS:
            return computing(causes.CROWDED_TURN_S)
        case Label.UNANSWERED:
            return HalfOpen(clock, FastServer())
        case Label.SLOW:
            return Turning(
                clock,
                computing(causes.TURN_S),
                computing(causes.SLOW_TURN_S if number == causes.SICK else causes.TURN_S),
            )
        case Label.KILLED | Label.BOTH if number == causes.SICK:
            return Mortal(clock, FastServer(), ONSET_S)
        case _:
            return FastServer()


def _flood(seed: int) -> Iterator[Request]:
    source, now = random.Random(f"{seed} flood"), ONSET_S
    while (now := now + source.expovariate(causes.SPOOFED_PER_S)) < END_S:
        yield Request(now, -1 - source.randrange(1 << 30), causes.SERVICE, 0)


def judged(run: CrowdRun) -> Judged:
    """Compare the controller's decisions with the run's label, and return the judgement."""
    said = [
        Decision(
            decision.time_s,
            str(decision.verdict.cause),
            frozenset(f"s{server}" for server in decision.verdict.servers),
            limited=bool(decision.limits),
        )
        for decision in run.decisions
    ]
    return causes.judged(said, (time_s for time_s, _ in run.weight_changes), ONSET_S)
