"""Tests of servers' buffers and idle connections in virtual time: real tasks and world, simulated switch stages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from configs import web
from fakeswitch import FakeSwitch, Memory
from measured import Seen
from sluice.config.load import parse
from sluice.features import Resources, world_of
from sluice.features.resources import tasks as resources
from sluice.features.resources.view import PROBE_S, ResourcesView
from sluice.loops.commands import reconfigure
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import Meter, Register, Table
from sluice.resources.columns import NONE, Columns
from sluice.resources.pauses import CONTROLS, DEFAULT_AGE_S, LENGTHS
from sluice.resources.sharer import Caps, Defaults
from sluice.switch.closing import Candidate, Closings, IdleFlows
from sluice.switch.errors import SwitchLost
from sluice.switch.reconcile import Readback, read_back, reconcile
from sluice.switch.registers import Registers
from sluice.switch.session import Session
from virtual import Updates, in_virtual_time

S1, S2 = 1, 2
SEND = "{budget: 1MB, needs: paper}"


def world(resources: str, server: str = "") -> World:
    """Return the world of a service with two servers; `server` is additional configuration of the second server."""
    text = web().replace("  servers:", f"  resources: {resources}\n  servers:")
    return world_of(parse(text.replace("10.0.3.2, port: 80", f"10.0.3.2, port: 80{server}")))


@dataclass
class Connection:
    """A simulated connection: a transfer, whose second field is the number of bytes that it would have in flight
    without a cap; or an idle connection, for which `idle_s` is above 0."""

    server: int
    wants: float = 0.0
    sent: int = 1_000_000
    idle_s: float = 0.0
    send: int = 0
    """Cap on the bytes in flight to the client; 0: no cap."""


@dataclass
class Lab:
    """A simulation of the switch stages and of the controller's session.

    It contains the open connections, and records the controller's caps, probes and table writes.
    """

    connections: dict[int, Connection] = field(default_factory=dict[int, Connection])
    registers: Memory = field(default_factory=Memory)
    updates: Updates = field(default_factory=Updates)
    capped: list[float] = field(default_factory=list[float])
    """Times in virtual seconds at which the controller wrote caps."""
    probes: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    prepared: int = 0
    answers: bool = True
    """Whether the servers answer the controller's probes."""
    fails: bool = False
    """Whether the switch refuses writes of caps."""
    lies: set[int] = field(default_factory=set[int])
    """Connections that the switch has recorded as idle, but that are active again when the controller checks them."""
    slow_s: float = 0.0
    """Seconds that the controller needs to read the switch's records of idle connections."""
    paused: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """Number of responses in each length class of their pauses (class n: below 2^n ticks), by server."""
    noted: dict[int, Candidate] = field(default_factory=dict[int, Candidate])
    """The switch's records of idle connections; that of an ended connection exists until the controller checks it."""

    def link(self) -> Link:
        readback = Readback(entries={}, meters={meter: {} for meter in Meter}, rounded=False)
        return Link(cast(Session, self.updates), cast(Registers, self.registers), readback)

    def open(self, server: int, many: int, **what: Any) -> None:
        for _ in range(many):
            self.connections[100 + len(self.connections)] = Connection(server, **what)
        self.registers.count(Register.LOAD_FIRST, server, many)

    async def transfers(self) -> Columns:
        """Return a measured slot for each connection, and an empty slot."""
        every = list(self.connections.items())
        flight = [min(connection.wants, connection.send or 1e9) for _, connection in every]
        return Seen(
            flow=np.array([*self.connections, NONE]),
            server=np.array([*(connection.server for _, connection in every), 0]),
            fingerprint=np.array([*(flow * 7 for flow, _ in every), 0]),
            sent=np.array([*(connection.sent for _, connection in every), 0]),
            flight=np.array([*flight, 0.0]),
        )

    async def cap(self, own: Caps) -> None:
        if self.fails:
            raise SwitchLost("gone")
        if len(own.flow):
            self.capped.append(asyncio.get_running_loop().time())
        for flow, fingerprint, size in zip(*(column.tolist() for column in own), strict=True):
            assert fingerprint == flow * 7
            self.connections[flow].send = size

    async def prepare(self) -> None:
        self.prepared += 1

    def _idle(self) -> Sequence[Candidate]:
        return [
            Candidate(flow, connection.idle_s, connection.server)
            for flow, connection in self.connections.items()
            if connection.idle_s > 0
        ]

    async def idle(self, now_s: float) -> IdleFlows:
        await asyncio.sleep(self.slow_s)
        self.noted |= {candidate.flow: candidate for candidate in self._idle()}
        candidates = [self.noted[flow] for flow in sorted(self.noted)]
        return IdleFlows(
            np.array([candidate.flow for candidate in candidates], np.int64),
            np.array([candidate.server for candidate in candidates], np.int64),
            np.array([candidate.idle_s for candidate in candidates], np.float64),
        )

    async def facts(self, flows: Sequence[int], now_s: float) -> Sequence[Candidate]:
        candidates = [
            candidate for candidate in self._idle() if candidate.flow in flows and candidate.flow not in self.lies
        ]
        for flow in set(flows) - {candidate.flow for candidate in candidates} - self.lies:
            self.noted.pop(flow, None)
        return candidates

    async def probe(self, candidate: Candidate, least_age_s: float) -> None:
        assert self.prepared and candidate.idle_s >= least_age_s
        self.probes.append((asyncio.get_running_loop().time(), candidate.flow))
        if self.answers:
            del self.connections[candidate.flow]
            self.registers.count(Register.LOAD_FIRST, candidate.server, -1)

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        return {server: self.paused.get(server, [0] * LENGTHS) for server in servers}

    async def closings(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        closed = len(self.probes) if self.answers else 0
        return {server: Closings(closed=closed) for server in servers}


def view_of(it: World) -> ResourcesView:
    view = it[Resources].view
    assert view is not None
    return view


def sharing(it: World, lab: Lab, until_s: float, meanwhile: Callable[[float], None] = lambda _: None) -> None:
    """Run the task that distributes the servers' buffers among connections, until `until_s` in virtual time."""

    async def run() -> None:
        link = lab.link()
        await link.apply(it.state())
        lab.updates.written.clear()
        task = asyncio.create_task(resources.share(it, link, view_of(it), lab))
        await until(task, until_s, meanwhile)

    in_virtual_time(run())


def closing(it: World, lab: Lab, until_s: float, meanwhile: Callable[[float], None] = lambda _: None) -> None:
    """Run the task that closes idle connections, until `until_s` in virtual time; idle times grow with the clock."""

    def older(now_s: float) -> None:
        meanwhile(now_s)
        for connection in lab.connections.values():
            connection.idle_s += 0.05 if connection.idle_s else 0.0

    async def run() -> None:
        task = asyncio.create_task(resources.close(lab.link(), view_of(it), lab))
        await until(task, until_s, older)

    in_virtual_time(run())


async def until(task: asyncio.Task[None], until_s: float, meanwhile: Callable[[float], None]) -> None:
    loop = asyncio.get_running_loop()
    for tick in range(1, round(until_s / 0.05)):
        await asyncio.sleep(0.05 * tick - loop.time())
        meanwhile(loop.time())
        if task.done():
            break
    if task.done():
        task.result()
    task.cancel()


# -- Buffers


def test_caps_follow_the_needs_every_second_and_settle() -> None:
    it, lab = world(f"{{send: {SEND}}}"), Lab()
    lab.open(S1, 2, wants=100e3)
    lab.open(S1, 1, wants=900e3)
    lab.open(S2, 1, wants=80e3)
    sharing(it, lab, 6)
    caps = [connection.send for connection in lab.connections.values()]
    assert caps == [200_000, 200_000, 600_000, 160_000], "the last has a server of its own"
    assert all(time_s % 1 == pytest.approx(0, abs=1e-6) for time_s in lab.capped)
    assert len(lab.capped) <= 4, "nothing new is nothing to write"
    decision = view_of(it).decision
    assert decision is not None and decision.send[S1].capped == 1 and decision.send[S2].capped == 0


def test_the_defaults_go_to_the_table_and_nothing_else_does() -> None:
    it, lab = world(f"{{send: {SEND}, sampling: 1}}", ", resources: {send: 500kB}"), Lab()
    assert it.state().caps == {S1: Defaults(1_000_000, 0), S2: Defaults(500_000, 0)}
    lab.open(S1, 2, wants=100e3)
    sharing(it, lab, 2.5)
    assert it.state().caps == {S1: Defaults(200_000, 0), S2: Defaults(500_000, 0)}
    schema = lab.updates.pipeline.schema
    assert {update.entity.table_entry.table_id for _, update in lab.updates.written} == {
        schema.tables[Table.RESOURCES].id
    }
    assert len(lab.updates.written) == 1


def test_receive_buffers_go_by_open_connections() -> None:
    it, lab = world("{receive: {budget: 1MB}}"), Lab()
    lab.open(S1, 10)
    sharing(it, lab, 1.5)
    assert it.state().caps == {S1: Defaults(0, 100_000), S2: Defaults(0, 1_000_000)}


def test_what_the_switch_did_not_take_is_written_once_it_is_back() -> None:
    it, lab = world(f"{{send: {SEND}}}"), Lab()
    lab.open(S1, 1, wants=100e3)
    lab.fails = True
    with pytest.raises(SwitchLost):
        sharing(it, lab, 3)
    lab.fails = False
    view_of(it).rebase({S1: Defaults(70_000, 0)})
    assert it.state().caps[S1] == Defaults(70_000, 0)
    sharing(it, lab, 0.5)
    assert lab.connections[100].send == 200_000
    assert it.state().caps[S1] == Defaults(500_000, 0)


def test_a_reload_keeps_what_is_known_of_transfers() -> None:
    it, lab = world(f"{{send: {SEND}}}"), Lab()
    lab.open(S1, 2, wants=400e3)
    sharing(it, lab, 2)
    writes = len(lab.capped)
    reconfigure(it, it.config, 2.0)
    sharing(it, lab, 2)
    assert len(lab.capped) == writes, "they are what they were"
    reconfigure(it, world("{send: {budget: 500kB, needs: paper}}").config, 4.0)
    sharing(it, lab, 2)
    assert [connection.send for connection in lab.connections.values()] == [250_000] * 2
    reconfigure(it, parse(web()), 6.0)
    assert it[Resources].view is None and it.state().caps == {}


# -- Idle connections

IDLE = "{limit: 100, threshold: 0.8, release: 0.95, rate: 1000, least_age_s: 0.5}"
LEARNING = "{limit: 100, threshold: 0.8, release: 0.95, rate: 1000}"


def test_below_the_threshold_nothing_is_closed() -> None:
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.open(S1, 80, idle_s=10.0)
    closing(it, lab, 3)
    assert lab.probes == []
    assert (view_of(it).idling[S1].connections, view_of(it).idling[S1].idle) == (80, 80)


def test_above_it_the_longest_idle_are_closed_down_to_the_release() -> None:
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.open(S1, 40)
    lab.open(S1, 30, idle_s=2.0)
    lab.open(S1, 20, idle_s=9.0)
    lab.open(S2, 50, idle_s=50.0)
    closing(it, lab, 3)
    closed = [flow for _, flow in lab.probes]
    assert sorted(closed) == list(range(170, 184)), "14 of the 20 oldest, none of the other server's"
    assert view_of(it).idling[S1].asked == 14
    assert view_of(it).idling[S1].connections == 76


def test_a_crowd_of_thirty_a_second_finds_room() -> None:
    """Server s1 has about twenty free workers, and thirty clients/s arrive: idle connections are closed in time.

    The scenario is section 2.2 of Azuma et al.
    """
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.open(S1, 78, idle_s=5.0)
    most = 0

    def come(now_s: float) -> None:
        nonlocal most
        lab.open(S1, round(30 * now_s) - round(30 * (now_s - 0.05)))
        most = max(most, len(lab.connections))

    closing(it, lab, 2, come)
    assert most <= 100 - 8, "a quarter of a second brings eight"
    assert len(lab.probes) >= 50


def test_what_is_active_again_when_it_is_looked_at_is_left_alone() -> None:
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.open(S1, 90, idle_s=5.0)
    lab.lies = set(range(100, 150))
    closing(it, lab, 3)
    assert {flow for _, flow in lab.probes} == set(range(150, 164)), "nor does it keep others from being looked at"


def test_a_server_that_does_not_answer_is_asked_twice() -> None:
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.answers = False
    lab.open(S1, 81, idle_s=5.0)
    closing(it, lab, 8)
    asked: dict[int, list[float]] = {}
    for time_s, flow in lab.probes:
        asked.setdefault(flow, []).append(time_s)
    assert len(asked) == 20, "five a second, for as many are above the release"
    assert all(len(times) == 2 and times[1] - times[0] >= PROBE_S for times in asked.values())
    idling = view_of(it).idling[S1]
    assert idling.asked == 40 and 35 <= idling.lapsed <= 40


def test_a_controller_that_looks_late_does_not_take_closed_connections_for_lapsed() -> None:
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.slow_s = 1.5 * PROBE_S
    lab.open(S1, 100, idle_s=5.0)
    closing(it, lab, 8)
    idling = view_of(it).idling[S1]
    assert (idling.asked, idling.lapsed, idling.connections) == (24, 0, 76)


def test_a_limit_is_learned_from_what_a_server_refuses() -> None:
    it, lab = world("{idle: {learned: true, rate: 1000, least_age_s: 0.5}}"), Lab()
    lab.open(S1, 200, idle_s=5.0)
    lab.registers.count(Register.LEDGER_SYN, S1, 200)
    lab.registers.count(Register.LEDGER_SYNACK, S1, 200)
    closing(it, lab, 2.5)
    assert lab.probes == [] and view_of(it).idling[S1].closer.limit is None

    def refuse(now_s: float) -> None:
        if now_s == pytest.approx(1.5):
            lab.registers.count(Register.LEDGER_SYN, S1, 14)
            lab.registers.count(Register.LEDGER_SYNACK, S1, 4)

    closing(it, lab, 4, refuse)
    assert view_of(it).idling[S1].closer.limit == pytest.approx(190, rel=0.01)
    assert len(lab.connections) == pytest.approx(0.8 * 0.95 * 190, abs=1)


def test_a_server_that_is_off_shows_no_limit() -> None:
    """A server is down from 2.5 to 12.5 s with 300 open connections; its unanswered SYNs do not set a learned limit."""
    it, lab = world("{idle: {learned: true, rate: 1000, least_age_s: 0.5}}"), Lab()
    lab.open(S1, 300, idle_s=5.0)

    def asked(now_s: float) -> None:
        lab.registers.count(Register.LEDGER_SYN, S1, 5)
        lab.answers = not 2.5 <= now_s < 12.5
        if lab.answers:
            lab.registers.count(Register.LEDGER_SYNACK, S1, 5)

    closing(it, lab, 16, asked)
    assert view_of(it).idling[S1].closer.limit is None
    assert len(lab.connections) == 300, "none is closed"


def test_before_anything_is_learned_a_pause_of_nine_seconds_is_no_idleness() -> None:
    it, lab = world(f"{{idle: {LEARNING}}}"), Lab()
    lab.open(S1, 100, idle_s=DEFAULT_AGE_S - 1)
    closing(it, lab, 0.9)
    assert lab.probes == []
    closing(it, lab, 1.5)
    assert len(lab.probes) == 24


def test_quick_responses_make_idle_shorter_but_for_those_that_would_show_a_longer_pause() -> None:
    it, lab = world(f"{{idle: {LEARNING}}}"), Lab()
    lab.open(S1, 100, idle_s=3.0)
    lab.paused[S1] = [5000, *[0] * (LENGTHS - 1)]
    closing(it, lab, 2)
    closed = {flow for _, flow in lab.probes}
    assert len(closed) == 24 and not any(flow % CONTROLS == 0 for flow in closed)
    assert view_of(it).idling[S1].closer.least_age_s == 1.0


def test_one_long_pause_of_any_of_its_servers_makes_idle_longer_for_a_whole_service() -> None:
    it, lab = world(f"{{idle: {LEARNING}}}"), Lab()
    lab.open(S1, 100, idle_s=30.0)
    lab.paused[S2] = [5000, *[0] * 8, 1, *[0] * 6]
    closing(it, lab, 2)
    assert lab.probes == []
    assert view_of(it).idling[S1].closer.least_age_s == pytest.approx(2 * 512 * 0.065536)


def test_an_age_that_is_given_stays() -> None:
    it, lab = world(f"{{idle: {IDLE}}}"), Lab()
    lab.open(S1, 100, idle_s=3.0)
    lab.paused[S1] = [5000, *[0] * 8, 1, *[0] * 6]
    closing(it, lab, 2)
    assert len(lab.probes) == 24


def test_a_server_can_have_a_limit_of_its_own() -> None:
    it, lab = world(f"{{idle: {IDLE}}}", ", resources: {limit: 10}"), Lab()
    lab.open(S1, 50, idle_s=5.0)
    lab.open(S2, 50, idle_s=5.0)
    closing(it, lab, 2)
    assert [sum(connection.server == server for connection in lab.connections.values()) for server in (S1, S2)] == [
        50,
        7,
    ]


# -- The switch's table `resources`


async def test_the_switch_holds_who_is_managed_and_a_restarted_controller_finds_it(
    switch: FakeSwitch, session: Session
) -> None:
    it = world(f"{{send: {SEND}, sampling: 2, idle: {IDLE}}}")
    readback = await read_back(session)
    await reconcile(session, readback, it.state())
    rows = {
        int.from_bytes(entry.match[0].exact.value, "big"): [
            int.from_bytes(param.value, "big") for param in entry.action.action.params
        ]
        for entry in switch.entries("resources")
    }
    assert rows == {S1: [1, 2, 1, 1_000_000, 0], S2: [1, 2, 1, 1_000_000, 0]}
    assert (await read_back(session)).caps == {S1: Defaults(1_000_000, 0), S2: Defaults(1_000_000, 0)}
    reconfigure(it, parse(web()), 0.0)
    await reconcile(session, readback, it.state())
    assert switch.entries("resources") == []
