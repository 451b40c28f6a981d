"""A simulated flash crowd: clients that replay a request log, the switch, a shared link from the switch to the clients,
and each client's own link."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sluice.config.model import Config
from sluice.news import Decision
from sluice.switch.plan import Server

from topo.plan.outcomes import Ending, Outcome
from topo.plan.requests import Request, draw_wait

from . import syn
from .answers import AnswerServer
from .clock import Clock
from .crowdswitch import CrowdSwitch, Flow, Step
from .link import Link, LinkCounts
from .tcp import FRAME, HEADERS, Sender, TcpPlan

HEADER_BYTES = 45
"""Bytes of an answer's HTTP header."""
SYNACK_BYTES = HEADERS + 20
SYNACK_WAITS_S = (1.0, 3.0, 7.0)
"""Seconds after the first SYN-ACK at which a server repeats an unacknowledged SYN-ACK."""
BULK_PIECE_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Place:
    """A client's path: its round trip time and its own link."""

    round_trip_s: float
    bit_per_s: float = math.inf
    """Rate of the client's own link; answers wait in its unlimited queue, so the link loses no packet."""
    client: Hashable = None
    """Identity of the client that owns the link; all of a client's requests share it."""


@dataclass(frozen=True, slots=True)
class CrowdPlan:
    """The parameters of a run. Times are in seconds, rates in bit/s and requests per second."""

    config: Config
    """The controller's configuration; it has a service for each name in the field `server` of `requests`."""
    requests: Iterable[Request]
    """The request log, in the order of time."""
    servers: Callable[[Clock], Mapping[str, Sequence[AnswerServer]]]
    """Returns new servers by the name of their service, in the order of the configuration."""
    place: Callable[[Request], Place]
    """Returns the path of a request's client."""
    link_bit_per_s: float
    room_bytes: float
    end_s: float
    loss: Callable[[float], float] | None = None
    """Share of the packets that the shared link loses at a given time although its queue has room; None: only a full
    queue loses packets."""
    spoofed: Iterable[Request] = ()
    """SYNs from spoofed addresses, in the order of time. Their handshakes never complete, so the server repeats its
    SYN-ACKs."""
    tcp: TcpPlan = field(default_factory=TcpPlan)
    syn_waits_s: Sequence[float] = field(default_factory=syn.linear)
    patience_s: float = 0.0
    """Mean time after which a client decides at random whether to abandon its request (`draw_wait`); 0: clients never
    leave."""
    bulk_bit_per_s: float = 0.0
    """Rate of an application-limited bulk transfer that runs beside the requests; 0: no such transfer."""
    bulk_place: Place = Place(0.08)
    bulk_from: int = 0
    """Address of the host that sends the bulk transfer."""
    sample_s: float = 1.0
    """Seconds between two samples of the shared link's counters."""
    restart_s: float = math.inf
    """Time at which the controller ends and a new controller starts at once."""
    keeps_usual: bool = True
    """Whether the new controller takes over the baselines of the earlier controller (`news.baseline_file`)."""
    seed: int = 1


@dataclass(slots=True)
class CrowdRun:
    """Records of a run; times in seconds."""

    outcomes: list[Outcome]
    decisions: list[Decision]
    link: list[tuple[float, LinkCounts]]
    bulk: list[tuple[float, int]]
    """Arrivals of the bulk transfer at its receiver: time and number of bytes."""
    refused: dict[str, int]
    """Refused SYNs by service."""
    weight_changes: list[tuple[float, str]]
    """Changes of a service's weights: time and name of the service."""
    steps: list[Step]
    """The steps of the controller's loops."""
    unmeasured: float
    """Share, of the packets of responses that were selected for measurement, of those that were not measured because
    another response occupied the slot."""
    least_share: float
    """The smallest share of responses that the controller selected for measurement during the run."""


class _Exchange:
    """One request from its first SYN to its end."""

    __slots__ = (
        "_answered",
        "_connect_s",
        "_done_s",
        "_ended",
        "_first_s",
        "_flow",
        "_pinned",
        "_pinned_until_s",
        "_place",
        "_received",
        "_retries",
        "_run",
        "_sender",
        "_servers",
        "_service",
        "_total",
        "begun_s",
        "ending",
        "request",
    )

    def __init__(self, run: _Crowd, request: Request) -> None:
        self._run, self.request = run, request
        self.begun_s = run.clock.now
        self._place = run.plan.place(request)
        self._service, self._servers = run.switch.service(request.server), run.servers[request.server]
        self._pinned: Server | None = None
        self._flow = Flow(run.number())
        self._pinned_until_s = -math.inf
        self._answered = self._ended = False
        self._connect_s = self._first_s = self._done_s = None
        self._retries = self._received = 0
        self._total = request.size + HEADER_BYTES
        self._sender: Sender | None = None
        self.ending = Ending.PENDING
        wait = draw_wait(run.plan.patience_s, run.people)
        if math.isfinite(wait):
            run.clock.after(wait, self._give_up)
        run.clock.after(self._place.round_trip_s, self._syn, 0)

    # Each SYN is delayed by the whole round trip before it reaches the switch. Half of the delay per direction would
    # give the same figures.

    def _syn(self, number: int) -> None:
        """Handle a SYN that reaches the switch, a round trip (without the link's queue) after the client sent it."""
        if self._ended or self._connect_s is not None:
            return
        run, now = self._run, self._run.clock.now
        times = run.plan.config.connections
        self._retries = number
        pinned = self._pinned if now <= self._pinned_until_s else None
        server = run.switch.syn(self._service, self.request.client, pinned=pinned)
        if server is not None:
            if server is not pinned:
                self._pinned, self._pinned_until_s, self._answered = server, now + times.pending_s, False
            if self._servers[self._service.servers.index(server)].syn():
                run.switch.synack(server, again=self._answered)
                self._pinned_until_s, self._answered = max(self._pinned_until_s, now + times.answered_s), True
                arrival = run.send(SYNACK_BYTES)
                if arrival is not None:
                    self._connect_s = arrival - self.begun_s
                    run.clock.after(arrival - now + self._place.round_trip_s, self._ask)
                    return
        if number < len(run.plan.syn_waits_s):
            run.clock.after(run.plan.syn_waits_s[number], self._syn, number + 1)

    def _ask(self) -> None:
        if self._ended:
            return
        run, server = self._run, self._pinned
        assert server is not None, "a request follows a SYN-ACK"
        run.switch.completed(server)
        run.switch.towards(int(self._service.config.address))
        self._sender = Sender(run.clock, run.plan.tcp, self._packet, self._arrived)
        answering = self._servers[self._service.servers.index(server)]
        answering.request(self._total, self._sender.offer, self._wanted)

    def _wanted(self) -> bool:
        return not self._ended

    def _packet(self, size: int) -> float | None:
        run = self._run
        run.switch.response(self._flow, size)
        back = run.carry(size, self._place)
        if back is not None:
            run.switch.towards(int(self._service.config.address))
        return back

    def _arrived(self, count: int) -> None:
        now = self._run.clock.now - self._place.round_trip_s - self.begun_s
        if self._first_s is None:
            self._first_s = now
        self._received += count
        if self._received >= self._total:
            self._finish(Ending.FINISHED, now)

    def _give_up(self) -> None:
        if not self._ended:
            self._finish(Ending.GAVE_UP, self._run.clock.now - self.begun_s)

    def _finish(self, ending: Ending, after_s: float) -> None:
        self._ended, self.ending, self._done_s = True, ending, after_s
        if self._connect_s is not None and self._connect_s > after_s:
            self._connect_s = None  # the client had not received the SYN-ACK yet
        if self._sender is not None and ending is not Ending.FINISHED:
            self._sender.stop()
        self._run.ended(self)

    def outcome(self) -> Outcome:
        """Return the request's outcome in the format of the lab's logs."""
        return Outcome(
            due_s=self.begun_s,
            client=self.request.client,
            server=self.request.server,
            size=self.request.size,
            connect_s=self._connect_s,
            first_byte_s=self._first_s,
            done_s=self._done_s,
            bytes=max(0, self._received - HEADER_BYTES),
            ending=self.ending,
            retries=self._retries,
            late_s=0.0,
        )


class _Crowd:
    def __init__(self, plan: CrowdPlan) -> None:
        self.plan, self.clock = plan, Clock()
        self.people = random.Random(f"{plan.seed} patience")
        self.link = Link(plan.link_bit_per_s, room_bytes=plan.room_bytes)
        self.decisions: list[Decision] = []
        self.switch = CrowdSwitch(self.clock, plan.config, random.Random(f"{plan.seed} samples"), self.decisions.append)
        self.servers = plan.servers(self.clock)
        self._losses = random.Random(f"{plan.seed} losses")
        self._access: dict[Hashable, Link] = {}
        self._numbers = 0
        self._log, self._flood = iter(plan.requests), iter(plan.spoofed)
        self.outcomes: list[Outcome] = []
        self._open: dict[_Exchange, None] = {}
        self.samples: list[tuple[float, LinkCounts]] = []
        self.bulk: list[tuple[float, int]] = []
        self.clock.every(plan.sample_s, self.sample)
        if math.isfinite(plan.restart_s):
            self.clock.after(plan.restart_s, lambda: self.switch.restart(keeps_usual=plan.keeps_usual))
        self._next()
        self._next_spoofed()
        if plan.bulk_bit_per_s:
            self._bulk_flow = Flow(self.number())
            sender = Sender(self.clock, plan.tcp, self._bulk_packet, self._bulk_arrived)
            piece_s = BULK_PIECE_BYTES * 8 / plan.bulk_bit_per_s
            self.clock.every(piece_s, lambda: sender.offer(BULK_PIECE_BYTES))

    def number(self) -> int:
        """Return an unused number for a response."""
        self._numbers += 1
        return self._numbers

    def send(self, size: int) -> float | None:
        """Send a packet over the shared link; return the time at which the packet has left the link, or None if the
        link loses the packet. ``size``: bytes from the IP header on."""
        now, loss = self.clock.now, self.plan.loss
        arrival = self.link.send(now, size + FRAME)
        return None if loss is not None and self._losses.random() < loss(now) else arrival

    def carry(self, size: int, place: Place) -> float | None:
        """Send a packet to a client over the shared link and the client's own link; return the seconds until the
        acknowledgement arrives, or None if the shared link loses the packet. ``size``: bytes from the IP header on."""
        arrival = self.send(size)
        if arrival is None:
            return None
        if math.isfinite(place.bit_per_s):
            own = self._access.get(place.client)
            if own is None:
                own = self._access[place.client] = Link(place.bit_per_s)
            arrival = own.send(arrival, size + FRAME) or arrival
        return arrival - self.clock.now + place.round_trip_s

    def _next(self) -> None:
        request = next(self._log, None)
        if request is not None:
            self.clock.after(max(0.0, request.time_s - self.clock.now), self._begin, request)

    def _begin(self, request: Request) -> None:
        self._open[_Exchange(self, request)] = None
        self._next()

    def _next_spoofed(self) -> None:
        request = next(self._flood, None)
        if request is not None:
            self.clock.after(max(0.0, request.time_s - self.clock.now), self._spoof, request)

    def _spoof(self, request: Request) -> None:
        service = self.switch.service(request.server)
        server = self.switch.syn(service, request.client, pinned=None)
        if server is not None and self.servers[service.name][service.servers.index(server)].syn():
            self._synack(server, again=False)
            for wait_s in SYNACK_WAITS_S:
                self.clock.after(wait_s, self._synack, server, True)
        self._next_spoofed()

    def _synack(self, server: Server, again: bool) -> None:
        self.switch.synack(server, again=again)
        self.send(SYNACK_BYTES)

    def ended(self, exchange: _Exchange) -> None:
        """Store the outcome of a request and delete all other state of the request, because a run may have a million
        requests."""
        self._open.pop(exchange, None)
        self.outcomes.append(exchange.outcome())

    def everything(self) -> list[Outcome]:
        """Return the outcomes of all requests, open ones included, in the order in which the requests began."""
        return sorted(
            [*self.outcomes, *(request.outcome() for request in self._open)], key=lambda request: request.due_s
        )

    def _bulk_packet(self, size: int) -> float | None:
        self.switch.response(self._bulk_flow, size)
        back = self.carry(size, self.plan.bulk_place)
        if back is not None:
            self.switch.towards(self.plan.bulk_from)
        return back

    def _bulk_arrived(self, count: int) -> None:
        self.bulk.append((self.clock.now - self.plan.bulk_place.round_trip_s, count))

    def sample(self) -> None:
        counts = self.link.counts
        self.samples.append((self.clock.now, LinkCounts(counts.sent, counts.sent_bytes, counts.dropped)))


def simulate(plan: CrowdPlan) -> CrowdRun:
    """Simulate a plan and return its records; equal plans give equal records."""
    crowd = _Crowd(plan)
    try:
        crowd.clock.run(plan.end_s)
        crowd.sample()
        services = {name: crowd.switch.service(name).config.address for name in crowd.servers}
        return CrowdRun(
            outcomes=crowd.everything(),
            decisions=crowd.decisions,
            link=crowd.samples,
            bulk=crowd.bulk,
            weight_changes=crowd.switch.weight_changes,
            refused={name: crowd.switch.requests[address].refused for name, address in services.items()},
            steps=crowd.switch.steps,
            least_share=crowd.switch.least_share,
            unmeasured=crowd.switch.unmeasured / max(1, crowd.switch.unmeasured + crowd.switch.measured),
        )
    finally:
        crowd.switch.close()
