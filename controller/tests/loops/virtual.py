"""Run flash-crowd control in virtual time: the real task and world, with a simulated switch and crowd."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
from configs import web
from fakeswitch import Memory
from finsy.proto import p4r
from sluice.addresses import from_text
from sluice.config.load import parse
from sluice.config.model import Config
from sluice.dataplane.units import MICROSECONDS, STEPS
from sluice.features import Balance, CrowdControl, world_of
from sluice.features.balance.decisions import balance
from sluice.features.balance.trace import Trace
from sluice.features.crowd.baseline import BaselineFile
from sluice.features.crowd.control import control
from sluice.features.crowd.trace import NewsTrace
from sluice.features.crowd.view import NewsView
from sluice.loops.commands import reconfigure
from sluice.loops.link import Link
from sluice.names import RATE_FLOWS, RATE_TICK_US, SAMPLES, Meter, Register, Table
from sluice.news import Decision
from sluice.news.rates import flow_mask
from sluice.switch import pipeline
from sluice.switch.plan import Service
from sluice.switch.reconcile import Readback, reconcile
from sluice.switch.session import Session
from sluice.switch.state import Crowd, State
from tokenbucket import TokenBucket

TICK_S = 0.1
FLOWS = 200
FAST_BPS = 200_000.0


class Clock(selectors.SelectSelector):
    """A selector that does not wait but adds each timeout to a virtual clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            self.now += timeout or 0.0
        return ready


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now


def in_virtual_time(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; its sleeps take no real time."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        runner.run(coroutine)


@cache
def program() -> pipeline.Pipeline:
    """Return the P4 program that the simulated switch runs."""
    return pipeline.load()


@dataclass
class Updates:
    """A substitute for the reconciler's session; it records writes and their virtual times."""

    written: list[tuple[float, p4r.Update]] = field(default_factory=list[tuple[float, p4r.Update]])
    address: str = "virtual"
    pipeline: pipeline.Pipeline = field(default_factory=program)

    @property
    def target(self) -> object:
        return self.pipeline.target

    async def write(self, updates: Sequence[p4r.Update]) -> None:
        self.written += [(asyncio.get_running_loop().time(), update) for update in updates]


PINS = {
    Register.PIN_KEY_1: {7: 0xA12_0000_0001, 9: 0xA22_0000_0001},
    Register.PIN_SERVER_1: {7: 1, 9: 2},
}
"""Registers with two connections that were established before the run, one to each server."""


@dataclass
class Switch:
    """A simulation of the switch's stages of flash-crowd control, which also replaces the controller's link.

    `Run` lets requests, handshakes and responses pass once per TICK_S of virtual time.
    """

    spaced = True
    registers: Memory = field(default_factory=Memory)
    updates: Updates = field(default_factory=Updates)
    crowd: Crowd = field(default_factory=Crowd)
    writes: list[Crowd] = field(default_factory=list[Crowd])
    weights: dict[int, int] = field(default_factory=dict[int, int])
    """Weights in the selector groups, by server number."""
    anybody: dict[int, TokenBucket] = field(default_factory=dict[int, TokenBucket])
    clock: int = 1 << 24
    step: int = 0
    live: int = FLOWS
    """Number of responses that send packets at the same time."""
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def __post_init__(self) -> None:
        self.readback = Readback(entries={}, meters={meter: {} for meter in Meter}, rounded=False)
        for register, cells in PINS.items():
            self.registers.cells[register].update(cells)

    async def apply(self, state: State, tables: Collection[Table] | None = None, meters: Collection[Meter] = ()) -> int:
        for weights in state.weights.values():
            self.weights |= weights
        many = await reconcile(cast(Session, self.updates), self.readback, state, tables, meters)
        if state.crowd != self.crowd:
            self.crowd = state.crowd
            self.writes.append(state.crowd)
        buckets = self.readback.meters[Meter.DESTINATION_LIMIT]
        for number in {*self.anybody, *buckets}:
            self.anybody.setdefault(number, TokenBucket(TICK_S)).set(buckets.get(number))
        return many

    def touched(self) -> dict[Table | Meter, list[float]]:
        """Return the times of writes after the start, by table or meter."""
        schema, moments = self.updates.pipeline.schema, dict[Table | Meter, list[float]]()
        names = {schema.tables[table].id: table for table in Table} | {schema.meters[m].id: m for m in Meter}
        for time_s, update in self.updates.written:
            number = update.entity.table_entry.table_id or update.entity.meter_entry.meter_id
            moments.setdefault(names[number], []).append(time_s)
        return moments

    def established(self) -> list[tuple[int, int, bytes]]:
        """Return for each established connection its pin's key, its server's number, and the server's table entry as
        bytes: the values by which the switch forwards the connection's packets."""
        number = self.updates.pipeline.schema.tables[Table.SERVERS].id
        servers = {
            int.from_bytes(entry.match[0].exact.value, "big"): entry.SerializeToString()
            for entry in self.readback.entries.values()
            if entry.table_id == number
        }
        keys, pinned = (self.registers.cells[register] for register in PINS)
        return [(key, pinned[slot], servers[pinned[slot]]) for slot, key in sorted(keys.items())]

    def requests(self, destination: str, many: int) -> int:
        """Let `many` SYNs arrive at a destination; return the number of admitted SYNs."""
        number = self.crowd.numbers.get(from_text(destination), 0)
        admitted = self.anybody[number].admit(many) if number in self.anybody else many
        self.registers.count(Register.REQUESTS_OFFERED, number, many)
        self.registers.count(Register.REQUESTS_ADMITTED, number, admitted)
        self.registers.count(Register.REQUESTS_REFUSED, number, many - admitted)
        for _ in range(self.random.binomial(many + 5 * admitted, self.crowd.sample_share)):
            cells = self.registers.cells
            end = cells[Register.SAMPLE_NEXT].get(0, 0)
            cells[Register.SAMPLE_RING][end % SAMPLES] = int(from_text(destination))
            cells[Register.SAMPLE_NEXT][0] = (end + 1) % (1 << 32)
        return admitted

    def handshakes(self, many: int, lost: Mapping[int, float], completed: float) -> None:
        """Distribute `many` SYNs over the servers by weight; count SYNs, SYN-ACKs and completed handshakes.

        `lost` is the share of unanswered SYNs, by server; `completed` is the share of the answered SYNs whose handshake
        is completed.
        """
        weights = [self.weights.get(server, 1) for server in lost]
        parts = self.random.multinomial(many, [weight / sum(weights) for weight in weights])
        for (server, unanswered), syns in zip(lost.items(), parts, strict=True):
            answered = int(self.random.binomial(syns, 1 - unanswered))
            self.registers.count(Register.LEDGER_SYN, server, int(syns))
            self.registers.count(Register.LEDGER_SYNACK, server, answered)
            self.registers.count(Register.LEDGER_COMPLETED, server, int(self.random.binomial(answered, completed)))

    def flows(self, bps: float) -> None:
        """Let responses of about `bps` bit/s send packets.

        Only responses whose fingerprint the mask selects are measured, and of these only the first in each slot.
        """
        self.clock += round(TICK_S * 1e6 / RATE_TICK_US)
        mask, owners = flow_mask(self.crowd.flow_share), dict[int, int]()
        for flow in range(self.live):
            if not (fingerprint := 1 + flow * 40_503 % 65_521) & mask:
                owners.setdefault(flow % RATE_FLOWS, fingerprint)
        for slot, fingerprint in owners.items():
            last = self.clock + slot % FLOWS
            window_us = (STEPS * self.step + last % self.step) * RATE_TICK_US
            octets = bps * float(self.random.uniform(0.9, 1.1)) * window_us / 8e6
            self.registers.cells[Register.RATE_FLOW][slot] = fingerprint << 32 | last
            self.registers.cells[Register.RATE_BYTES][slot] = round(octets)


Arrivals = Callable[[float], dict[str, float]]
"""Function from the time in seconds to requests/s, by destination."""


@dataclass
class Run:
    """A run of the controller's tasks with a simulated switch; requests share a link with room for `capacity` of them
    per second."""

    options: str
    arrivals: Arrivals
    capacity: float = 60.0
    response: Callable[[float], float] | None = None
    """Function from the time to the rate of responses in bit/s. None: FAST_BPS while the requests are within
    `capacity`, and at most a fifth of FAST_BPS above."""
    unanswered: Callable[[float], float] | None = None
    """Function from the time to the share of SYNs that servers randomly leave unanswered; if given, a balancer decides
    the weights by R every second."""
    silent: Mapping[int, float] = field(default_factory=dict[int, float])
    """Times in seconds from which servers answer almost no SYN, by server number."""
    spoofed_s: float = math.inf
    """Time in seconds from which clients complete almost no handshake."""
    services: str = ""
    """Services in addition to web, as items of the configuration's list."""
    baseline: BaselineFile | None = None
    """The file in which the controller stores its baseline; None: no file."""
    switch: Switch = field(default_factory=Switch)
    reloads: Mapping[float, str] = field(default_factory=dict[float, str])
    """Options of flash-crowd control that a reload applies, by time in seconds."""
    decisions: list[Decision] = field(default_factory=list[Decision])

    def __post_init__(self) -> None:
        self.world = world_of(self._config(self.options))
        view = self.world[CrowdControl].view
        assert view is not None
        self.view: NewsView = view
        self.established: list[tuple[int, int, bytes]] = []
        """The result of `Switch.established` when the run began, for the comparison with a later result."""

    def _config(self, options: str) -> Config:
        return parse(web(more=f"{self.services}\nnews: {options}", period_s=1, window_s=4))

    def until(self, end_s: float) -> Run:
        """Run from time 0 to `end_s` in virtual seconds."""
        in_virtual_time(self._run(end_s))
        return self

    async def _run(self, end_s: float) -> None:
        loop = asyncio.get_running_loop()
        if self.baseline is not None:
            self.baseline.restore(self.view)
        self.switch.step = MICROSECONDS.step(self.view.config.rate_window_s)
        await self.switch.apply(self.world.state())
        self.switch.updates.written.clear()
        self.established = self.switch.established()
        services, reloads = self._deciding(), sorted(self.reloads.items())
        tasks = self._begun()
        while loop.time() < end_s and not any(task.done() for task in tasks):
            while reloads and reloads[0][0] <= loop.time():
                for task in tasks:
                    task.cancel()
                reconfigure(self.world, self._config(reloads.pop(0)[1]), loop.time())
                services, tasks = self._deciding(), self._begun()
            admitted = {
                destination: self.switch.requests(destination, int(self.switch.random.poisson(rate * TICK_S)))
                for destination, rate in self.arrivals(loop.time()).items()
            }
            for service in services:
                assert self.unanswered
                now, chance = loop.time(), self.unanswered(loop.time())
                lost = {s.id: 0.9 if now >= self.silent.get(s.id, math.inf) else chance for s in service.servers}
                completed = 0.02 if now >= self.spoofed_s else 1.0
                self.switch.handshakes(admitted.get(str(service.config.address), 0), lost, completed)
            load = sum(admitted.values()) / TICK_S / self.capacity
            share = 1.0 if load <= 1 else 0.2 / load
            self.switch.flows(self.response(loop.time()) if self.response else FAST_BPS * share)
            await asyncio.sleep(TICK_S)
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()

    def _deciding(self) -> Sequence[Service]:
        return self.world.plan.services if self.unanswered else ()

    def _begun(self) -> list[asyncio.Task[None]]:
        """Start the controller's tasks in the order in which a controller starts them."""
        link, trace = cast(Link, self.switch), _Keep(self.decisions)
        loops = [
            balance(self.world, self.world[Balance].views[service.id], link, service, Trace(None))
            for service in self._deciding()
        ]
        loops.append(control(self.world, link, self.view, trace, self.baseline))
        return [asyncio.create_task(loop) for loop in loops]


class _Keep(NewsTrace):
    """A trace that appends each decision to a list."""

    def __init__(self, decisions: list[Decision]) -> None:
        super().__init__(None)
        self._decisions = decisions

    def write(self, view: NewsView, decision: Decision, *, wrote: bool) -> None:
        self._decisions.append(decision)
