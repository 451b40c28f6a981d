"""Labelled runs: a service with four servers, and one thing that goes wrong, or two, or nothing.

What a run is labelled with is what its verdict has to be (`sluice.news.verdict`). The service, its clients and its link
are alike in all of them; everything of the controller is as configured by default, but for the second look.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import yaml
from sluice.config import Config
from sluice.configload import parse
from sluice.news import Cause

from workload.requestlog import Request
from workload.synthesise import Crowd, synthesise

from .answers import AnswerServer, FastServer, SlowServer
from .clock import Clock
from .crowd import CrowdPlan, CrowdRun, Place
from .tcp import TcpPlan

SERVICE, SERVERS = "web", 4
QUIET_PER_S, CROWD_PER_S, SERVER_CROWD_PER_S = 40.0, 200.0, 120.0
"""Requests; a crowd at the servers is too small to fill the link."""
SPOOFED_PER_S = 500.0
LINK_BIT_PER_S, QUEUE_BYTES = 4e6, 50_000.0
"""As Figure 10's; it carries some 135 requests per second."""
ONSET_S, RAMP_S, END_S = 120.0, 10.0, 190.0
"""By the onset production mode knows what is usual."""
ROUND_TRIP_S = 0.04, 0.2
LOSS = 0.05
"""Part of the packets towards the clients, of a lossy link."""
HALF_OPEN, HALF_OPEN_S = 256, 63.0
"""Handshakes that a server without SYN cookies holds, and how long (Linux: five retransmissions of a SYN-ACK)."""
TURN_S, SLOW_TURN_S = 8e-3, 80e-3
"""Time on the wall of a server for a block of an answer: four can do together 215 requests per second, were they all
asked alike, and one that is slow can do a seventh of what it is asked for."""
CROWDED_TURN_S = 30e-3
WORKERS, BACKLOG = 16, 16
SICK, SICK_NAME = 1, "s2"
"""The place among the servers of the one that fails, and its name."""


class Label(StrEnum):
    """What goes wrong."""

    NONE = "none"
    NETWORK = "crowd at the network"
    SERVERS = "crowd at the servers"
    ANSWERED = "SYN flood, answered"
    UNANSWERED = "SYN flood, unanswered"
    SLOW = "slow server"
    KILLED = "killed server"
    LOSSY = "lossy link"
    BOTH = "crowd at the network, and a killed server"


CAUSES = {
    Label.NONE: Cause.NORMAL,
    Label.NETWORK: Cause.CROWD,
    Label.SERVERS: Cause.CROWD,
    Label.ANSWERED: Cause.FLOOD,
    Label.UNANSWERED: Cause.FLOOD,
    Label.SLOW: Cause.SICK,
    Label.KILLED: Cause.SICK,
    Label.LOSSY: Cause.NORMAL,
    Label.BOTH: Cause.CROWD,
}
"""What the verdict has to be."""
CROWDS = frozenset({Label.NETWORK, Label.SERVERS, Label.BOTH})
"""A limit may be set."""
FAILING = frozenset({Label.SLOW, Label.KILLED, Label.BOTH})
"""One server is to blame: the verdict names it, and weights may move."""


class Mortal:
    """A server that ends at a time: it answers nothing from then on, and what it was sending stops."""

    def __init__(self, clock: Clock, server: AnswerServer, dies_s: float) -> None:
        self._clock, self._server, self._dies_s = clock, server, dies_s

    def _lives(self) -> bool:
        return self._clock.now < self._dies_s

    def syn(self) -> bool:
        """While it lives."""
        return self._lives() and self._server.syn()

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """While it lives."""
        if self._lives():
            self._server.request(size, lambda count: offer(count) if self._lives() else None, wanted)


class HalfOpen:
    """A server without SYN cookies: while its half-open connections are all taken, SYNs are dropped."""

    def __init__(self, clock: Clock, server: AnswerServer) -> None:
        self._clock, self._server = clock, server
        self._ends: deque[float] = deque()
        """When those that nobody completes are forgotten; those completed are taken for the newest."""

    def syn(self) -> bool:
        """While there is room for one more."""
        now = self._clock.now
        while self._ends and self._ends[0] <= now:
            self._ends.popleft()
        if len(self._ends) >= HALF_OPEN or not self._server.syn():
            return False
        self._ends.append(now + HALF_OPEN_S)
        return True

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Its handshake is complete."""
        if self._ends:
            self._ends.pop()
        self._server.request(size, offer, wanted)


class Turning:
    """A server whose speed changes at the onset: what it has then is finished at the old speed."""

    def __init__(self, clock: Clock, before: AnswerServer, after: AnswerServer) -> None:
        self._clock, self._before, self._after = clock, before, after

    @property
    def _server(self) -> AnswerServer:
        return self._before if self._clock.now < ONSET_S else self._after

    def syn(self) -> bool:
        """As fast as it is now."""
        return self._server.syn()

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """As fast as it is now."""
        self._server.request(size, offer, wanted)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the controller made of a run."""

    causes: Mapping[str, float]
    """Part of the decisions from SETTLED_S after the onset that had each cause."""
    named: frozenset[str]
    """The servers that most of the decisions with the most frequent cause name."""
    limited: bool
    """A limit was set."""
    moved: bool
    """Weights moved after the onset."""

    @property
    def cause(self) -> str:
        """The most frequent one."""
        return max(self.causes, key=lambda cause: self.causes[cause])


SETTLED_S = 10.0
"""A verdict has so long: the window is 4 s, and R decides every 10."""


def configuration() -> Config:
    """Of every run: the defaults, without a second look (open connections are not simulated)."""
    servers = [{"name": f"s{n + 1}", "address": f"10.0.2.{11 + n}", "port": 80} for n in range(SERVERS)]
    service = {"name": SERVICE, "address": "203.0.113.80", "port": 80, "second_look": False, "servers": servers}
    port = {"port": 1, "mac": "02:00:00:00:00:01", "address": "10.0.2.1/24"}
    return parse(yaml.safe_dump({"interfaces": [port], "services": [service], "news": {}}))


def plan(label: Label, seed: int) -> CrowdPlan:
    """A run with this label."""
    crowd = {Label.NETWORK: CROWD_PER_S, Label.BOTH: CROWD_PER_S, Label.SERVERS: SERVER_CROWD_PER_S}
    rates = Crowd(QUIET_PER_S, crowd.get(label, QUIET_PER_S), ONSET_S, RAMP_S, END_S)
    source = random.Random(f"{seed} places")
    places: dict[int, Place] = {}

    def place(request: Request) -> Place:
        if request.client not in places:
            places[request.client] = Place(source.uniform(*ROUND_TRIP_S))
        return places[request.client]

    return CrowdPlan(
        config=configuration(),
        requests=synthesise(rates, SERVICE, seed=seed),
        servers=lambda clock: {SERVICE: [_server(clock, label, number) for number in range(SERVERS)]},
        place=place,
        link_bit_per_s=LINK_BIT_PER_S,
        room_bytes=QUEUE_BYTES,
        end_s=END_S,
        loss=(lambda now_s: LOSS if now_s >= ONSET_S else 0.0) if label is Label.LOSSY else None,
        spoofed=_flood(seed) if label in (Label.ANSWERED, Label.UNANSWERED) else (),
        tcp=TcpPlan(initial_window=10),
        seed=seed,
    )


def _server(clock: Clock, label: Label, number: int) -> AnswerServer:
    def computing(turn_s: float) -> AnswerServer:
        return SlowServer(clock, workers=WORKERS, backlog=BACKLOG, turn_s=turn_s)

    match label:
        case Label.SERVERS:
            return computing(CROWDED_TURN_S)
        case Label.UNANSWERED:
            return HalfOpen(clock, FastServer())
        case Label.SLOW:
            return Turning(clock, computing(TURN_S), computing(SLOW_TURN_S if number == SICK else TURN_S))
        case Label.KILLED | Label.BOTH if number == SICK:
            return Mortal(clock, FastServer(), ONSET_S)
        case _:
            return FastServer()


def _flood(seed: int) -> Iterator[Request]:
    source, now = random.Random(f"{seed} flood"), ONSET_S
    while (now := now + source.expovariate(SPOOFED_PER_S)) < END_S:
        yield Request(now, -1 - source.randrange(1 << 30), SERVICE, 0)


def judged(run: CrowdRun) -> Judged:
    """What was decided from SETTLED_S after the onset on."""
    settled = [one for one in run.decisions if one.time_s >= ONSET_S + SETTLED_S]
    held = Counter(str(one.verdict.cause) for one in settled)
    ((cause, often),) = held.most_common(1)
    names = Counter(server for one in settled if one.verdict.cause == cause for server in one.verdict.servers)
    return Judged(
        causes={cause: number / held.total() for cause, number in held.items()},
        named=frozenset(f"s{server}" for server, number in names.items() if number > often / 2),
        limited=any(one.limits for one in run.decisions),
        moved=any(time_s >= ONSET_S for time_s, _ in run.weight_changes),
    )
