"""A simulation of clients, switches that balance, and a pool of web servers: the setup of Ohta & Andou's measurements,
at any size."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sluice.balance import BalanceOptions, Counts, Decision, Member

from . import syn
from .balancing import BalancingSwitch, Pin
from .clock import Clock
from .secondlook import SecondLook
from .server import Handshake, WebServer

SPREAD_S = 1e-3
"""Seconds within which the SYNs leave that are due at the same step of the kernel's timer wheel: the kernel handles
expired timers one after another."""


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One server. `cpus` is the share of one CPU that the server may use; `work_s` is the CPU time of a request in
    seconds."""

    cpus: float = 0.1
    work_s: float = 0.7e-3
    workers: int = 10
    backlog: int = 16
    others: int = 0
    """Number of other tasks that use CPU time of the server's quota all the time."""
    capacity: float = 1.0
    """The server's capacity in the balancer's configuration."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """Parameters of a run. Times are in seconds, rates per second."""

    servers: Sequence[ServerPlan]
    options: BalanceOptions
    rate_per_s: float
    end_s: float
    syn_waits_s: Sequence[float] = field(default_factory=syn.linear)
    timeout_s: float = 5.0
    """Seconds after which a client gives up (httperf's timeout)."""
    round_trip_s: float = 0.2e-3
    page_way_s: float = 0.0
    """Seconds from the time at which the worker writes a page until the client has received all of the page (the round
    trips of slow start)."""
    heavy_share: float = 0.0
    heavy_factor: float = 1.0
    """A share `heavy_share` of the requests cost `heavy_factor` times as much CPU time as the other requests."""
    lost_share: float = 0.0
    """Share of the SYNs that the network between switch and servers loses."""
    switches: int = 1
    arrivals: Callable[[float], Iterator[float]] | None = None
    """Yields the begin of each connection, in seconds since the load began, for a given rate per second; None: random
    intervals."""
    second_look: type[SecondLook] | None = None
    """The class that selects servers by their open connections; None: the switch ignores open connections. Each switch
    counts only the connections that it forwards."""
    events: Mapping[float, Callable[[Simulation], None]] = field(
        default_factory=dict[float, "Callable[[Simulation], None]"]
    )
    """Actions by their time in seconds. An action may load, repair or kill a server, or change the options or the
    load."""
    seed: int = 1


@dataclass(slots=True)
class Connection:
    """A connection as its client measured it. Times are in seconds; None: the event did not occur."""

    begun_s: float
    connect_s: float | None = None
    """Seconds from the first SYN to the first SYN-ACK."""
    done_s: float | None = None
    """Seconds from the first SYN to the end of the answer."""
    syns: int = 1


@dataclass(slots=True)
class PoolRun:
    """The results of a run."""

    plan: PoolPlan
    connections: list[Connection]
    decisions: list[list[Decision]]
    """The decisions of each switch's controller."""
    counts: Mapping[int, Counts]
    """Handshake counters by server, summed over all switches."""
    decide_s: list[float]
    weight_changes: int
    servers: Sequence[WebServer]


class _Client:
    """A client with one connection."""

    __slots__ = ("_factor", "_handshake", "_over", "_pin", "_run", "_switch", "record")

    def __init__(self, run: Simulation, switch: BalancingSwitch) -> None:
        self._run, self._switch, self._pin = run, switch, Pin()
        self._factor = run.cost()
        self._over = False
        self._handshake: Handshake | None = None
        self.record = Connection(run.clock.now)
        self._syn(0)
        if switch.looks:
            run.clock.after(run.plan.timeout_s, self._give_up)

    def _syn(self, number: int) -> None:
        run, record = self._run, self.record
        if self._over:
            return
        if run.clock.now - record.begun_s >= run.plan.timeout_s:
            self._over = True
            return
        record.syns = number + 1
        server = self._switch.syn(self._pin)
        if run.servers[server].refuses:
            self._over = True
            self._switch.refused(self._pin)
            return
        if run.is_lost() or not run.servers[server].syn():
            if number < len(run.plan.syn_waits_s):
                now = run.clock.now
                due = syn.on_wheel(now, run.plan.syn_waits_s[number]) + run.spread_s()
                run.clock.after(due - now, self._syn, number + 1)
            return
        self._switch.synack(server)
        record.connect_s = run.clock.now - record.begun_s + run.plan.round_trip_s
        run.clock.after(run.plan.round_trip_s, self._ack, server)

    def _ack(self, server: int) -> None:
        self._switch.completed(server)
        self._run.servers[server].ack(
            Handshake(self._run.plan.servers[server].work_s * self._factor, self._done),
            lambda: self._switch.synack(server, again=True),
            self._is_waiting,
        )

    def _is_waiting(self) -> bool:
        return self._run.clock.now - self.record.begun_s <= self._run.plan.timeout_s

    def _done(self) -> None:
        """Handle the end of the worker's writing; the FIN follows the last byte of the page."""
        way_s = self._run.plan.page_way_s
        if self._switch.looks:
            self._run.clock.after(way_s, lambda: self._switch.end(self._pin, seen=True, by_fin=True))
        if self._is_waiting():
            self.record.done_s = self._run.clock.now - self.record.begun_s + way_s

    def _give_up(self) -> None:
        # Only the close of an established connection makes the client send a packet, by which the switch detects the
        # end.
        if self.record.done_s is None:
            self._switch.end(self._pin, seen=self.record.connect_s is not None)


class Simulation:
    """A run in progress; the plan's events may change its load and its servers."""

    def __init__(self, plan: PoolPlan) -> None:
        self.plan, self.clock = plan, Clock()
        source = random.Random(plan.seed)
        self._losses = random.Random(f"losses {plan.seed}")
        self._arrivals, self._choices = random.Random(source.random()), random.Random(source.random())
        self.servers = [
            WebServer(
                self.clock,
                workers=s.workers,
                backlog=s.backlog,
                cpus=s.cpus,
                others=s.others,
                seed=1000 * plan.seed + number,
            )
            for number, s in enumerate(plan.servers)
        ]
        members = [Member(number, server.capacity) for number, server in enumerate(plan.servers)]
        self.decisions: list[list[Decision]] = [[] for _ in range(plan.switches)]
        self.switches = [
            BalancingSwitch(
                self.clock,
                random.Random(source.random()),
                members,
                plan.options,
                decisions.append,
                second_look=plan.second_look,
            )
            for decisions in self.decisions
        ]
        self.connections: list[Connection] = []
        self._rate_per_s = 0.0
        self._due_s: Iterator[float] = iter(())
        self._turn = 0
        for moment, event in plan.events.items():
            self.clock.after(moment, event, self)
        self.load(plan.rate_per_s)

    def load(self, rate_per_s: float) -> None:
        """Make ``rate_per_s`` new connections per second from now on."""
        self._rate_per_s = rate_per_s
        if self.plan.arrivals is not None:
            begun_s = self.clock.now
            self._due_s = (
                (begun_s + offset_s for offset_s in self.plan.arrivals(rate_per_s)) if rate_per_s else iter(())
            )
        self._turn += 1
        self._next(self._turn)

    def cost(self) -> float:
        """Return the CPU cost of the next request as a multiple of a usual request's cost."""
        heavy = self.plan.heavy_share
        return self.plan.heavy_factor if heavy and self._arrivals.random() < heavy else 1.0

    def is_lost(self) -> bool:
        """Return whether the next SYN is lost between switch and server."""
        return self.plan.lost_share > 0 and self._losses.random() < self.plan.lost_share

    def spread_s(self) -> float:
        """Return a random delay, in seconds below ``SPREAD_S``, between a step of the kernel's timer wheel and a SYN
        that is due at this step."""
        return self._arrivals.random() * SPREAD_S

    def _next(self, turn: int) -> None:
        if self._rate_per_s > 0:
            self.clock.after(self._wait_s(), self._arrive, turn)

    def _wait_s(self) -> float:
        if self.plan.arrivals is None:
            return self._arrivals.expovariate(self._rate_per_s)
        return max(0.0, next(self._due_s) - self.clock.now)

    def _arrive(self, turn: int) -> None:
        if turn != self._turn:
            return
        switch = self.switches[self._choices.randrange(len(self.switches))]
        self.connections.append(_Client(self, switch).record)
        self._next(turn)

    def run(self) -> PoolRun:
        """Run to the plan's end, and return the results."""
        self.clock.run(self.plan.end_s)
        ledgers = [switch.counts() for switch in self.switches]
        return PoolRun(
            plan=self.plan,
            connections=self.connections,
            decisions=self.decisions,
            counts={i: sum((ledger[i] for ledger in ledgers), Counts()) for i in ledgers[0]},
            decide_s=[seconds for switch in self.switches for seconds in switch.decide_s],
            weight_changes=sum(switch.weight_changes for switch in self.switches),
            servers=self.servers,
        )


def simulate(plan: PoolPlan) -> PoolRun:
    """Simulate a plan and return its results; equal plans give equal results."""
    return Simulation(plan).run()
