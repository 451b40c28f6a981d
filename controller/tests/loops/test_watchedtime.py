"""Tests of a controller whose own process was late: it does not treat agents, servers or neighbours as dead.

It also does not treat the silence of servers as a crowd.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from configs import web
from content import content
from fakeswitch import Memory
from sluice.addresses import from_text
from sluice.agents.client import AgentError, AgentSilent
from sluice.agents.messages import Problem, Report, ServiceCounts
from sluice.config.load import parse
from sluice.features import Balance, Content, CrowdControl, world_of
from sluice.features.balance.decisions import balance
from sluice.features.balance.trace import Trace
from sluice.features.content import agents as agents_task
from sluice.features.content.agents import DEAD_S, INTERVAL_S, LAST_S, Agents
from sluice.features.crowd.control import control
from sluice.features.crowd.trace import NewsTrace
from sluice.loops.link import Link
from sluice.loops.watchedtime import LATE_S, TICK_S, Readings, WatchedTime, lost_s
from sluice.names import Register
from stalled import stall, stalled
from virtual import Switch

STOPPED_S = 4.0
A1, A2 = 1, 2
CONTROLS = ("unix:///run/a1.sock", "127.0.0.1:9471")


# -- The clock


def test_time_passes_as_it_does_while_the_clock_is_looked_at() -> None:
    now = [10.0]
    clock = WatchedTime(lambda: now[0])
    for _ in range(10):
        now[0] += LATE_S
        clock.now()
    assert (clock.now(), clock.lost_s) == (10.0 + 10 * LATE_S, 0.0)


def test_of_a_gap_a_tick_counts() -> None:
    now = [10.0]
    clock = WatchedTime(lambda: now[0])
    now[0] += STOPPED_S
    assert clock.now() == 10.0 + TICK_S
    assert clock.lost_s == STOPPED_S - TICK_S
    now[0] += 0.1
    assert clock.now() == pytest.approx(10.0 + TICK_S + 0.1)


@stalled
async def test_a_deadline_does_not_pass_while_the_process_is_stopped() -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(stall, STOPPED_S)
    asyncio.get_running_loop().call_later(2 * TICK_S, answer.set_result, "in the socket all the time")
    async with asyncio.timeout(1.0):
        await answer
    assert lost_s() == STOPPED_S - TICK_S


@stalled
async def test_a_long_wait_of_an_idle_loop_is_no_gap() -> None:
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(60.0)
    assert asyncio.get_running_loop().time() - began == pytest.approx(60.0)
    assert lost_s() == 0.0


@stalled
async def test_a_reading_is_late_behind_a_gap_or_when_it_takes_unusually_long() -> None:
    readings = Readings()

    async def late(takes_s: float) -> bool:
        readings.begin()
        await asyncio.sleep(takes_s)
        return readings.is_late()

    assert [await late(takes_s) for takes_s in (1.0, 1.5, 0.4, 1.5, 2.0)] == [False, False, False, False, True]
    stall(STOPPED_S)
    assert [await late(0.4), await late(0.4)] == [True, False]


# -- Agents


class Wire:
    """Simulated connections of agents; reports arrive in virtual time, and queue while the controller does not read."""

    def __init__(self) -> None:
        self.talks = {control: asyncio.Event() for control in CONTROLS}
        self.stands, self.compiles_s = set(CONTROLS), 0.0
        self.connections: list[str] = []

    @asynccontextmanager
    async def connected(self, control: str) -> AsyncGenerator[_Agent]:
        self.connections.append(control)
        if control not in self.stands:
            raise AgentError("connection refused")
        yield _Agent(self, control)


class _Agent:
    def __init__(self, wire: Wire, control: str) -> None:
        self._wire, self._control = wire, control

    async def configure(self, _: object) -> list[Problem]:
        await asyncio.sleep(self._wire.compiles_s)
        return []

    async def share(self, _: object) -> None:
        return

    async def watch(self, interval_s: float, patience_s: float) -> AsyncGenerator[Report]:
        while True:
            try:
                async with asyncio.timeout(patience_s):
                    await asyncio.sleep(interval_s)
                    await self._wire.talks[self._control].wait()
            except TimeoutError:
                raise AgentSilent(f"silent for {patience_s:g} s") from None
            if self._control not in self._wire.stands:
                raise AgentError("connection reset")
            yield Report(1, 1.0, 0, 0, 0, draining=False, services={"shop": ServiceCounts()})


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    wire = Wire()
    for talks in wire.talks.values():
        talks.set()
    monkeypatch.setattr(agents_task, "connected", wire.connected)
    return wire


@asynccontextmanager
async def following(tmp: str = "/nowhere/sluice.sock") -> AsyncGenerator[Agents]:
    agents = world_of(parse(content(control=tmp)))[Content].agents
    task = asyncio.create_task(agents.follow(cast(Link, Switch())))
    try:
        yield agents
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _absent(agents: Agents) -> frozenset[int]:
    return agents._world[Content].state.away.absent  # pyright: ignore[reportPrivateUsage]


@stalled
async def test_no_agent_is_gone_when_the_controller_was_stopped(wire: Wire) -> None:
    async with following() as agents:
        await asyncio.sleep(3 * INTERVAL_S)
        for _ in range(20):
            stall(STOPPED_S)
            await asyncio.sleep(0.01)
            assert _absent(agents) == set()
        await asyncio.sleep(2 * DEAD_S)
        assert _absent(agents) == set()
        assert len(wire.connections) == 2, "nor is a connection given up"


@stalled
async def test_one_silent_agent_is_gone_and_the_reason_is_said(wire: Wire) -> None:
    async with following() as agents:
        await asyncio.sleep(3 * INTERVAL_S)
        wire.talks[CONTROLS[0]].clear()
        await asyncio.sleep(DEAD_S + INTERVAL_S)
        assert _absent(agents) == {A1}
        assert agents.views[CONTROLS[0]].error == f"silent for {DEAD_S:g} s"
        wire.talks[CONTROLS[0]].set()
        await asyncio.sleep(2 * INTERVAL_S)
        assert _absent(agents) == set()


@stalled
async def test_all_silent_agents_at_once_are_asked_a_second_time(wire: Wire) -> None:
    async with following() as agents:
        await asyncio.sleep(3 * INTERVAL_S)
        for talks in wire.talks.values():
            talks.clear()
        await asyncio.sleep(DEAD_S + INTERVAL_S)
        assert _absent(agents) == set()
        assert len(wire.connections) == 4, "by new connections"
        await asyncio.sleep(LAST_S - DEAD_S)
        assert _absent(agents) == {A1, A2}


@stalled
async def test_all_agents_that_have_ended_are_gone_at_once(wire: Wire) -> None:
    async with following() as agents:
        await asyncio.sleep(3 * INTERVAL_S)
        wire.stands.clear()
        await asyncio.sleep(DEAD_S + INTERVAL_S)
        assert _absent(agents) == {A1, A2}


@stalled
async def test_agents_that_were_not_listened_to_are_not_silent(wire: Wire) -> None:
    """The controller read no reports while the switch was unreachable or a reload ran."""
    world = world_of(parse(content(control="/nowhere/sluice.sock")))
    agents = world[Content].agents
    for _ in range(2):
        task = asyncio.create_task(agents.follow(cast(Link, Switch())))
        await asyncio.sleep(0.01)
        assert world[Content].state.away.absent == set()
        await asyncio.sleep(3 * INTERVAL_S)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(10 * DEAD_S)


@stalled
async def test_an_agent_that_compiles_its_rules_is_not_silent(wire: Wire) -> None:
    wire.compiles_s = 3 * DEAD_S
    async with following() as agents:
        await asyncio.sleep(4 * DEAD_S)
        assert _absent(agents) == set()


# -- Servers, crowds, neighbours


class Counting(Memory):
    """Counters of servers that answer every SYN; if `torn`, a reading has SYNs whose SYN-ACKs are not counted yet."""

    def __init__(self, *, slow_s: float = 0.0) -> None:
        super().__init__()
        self.slow_s, self.torn = slow_s, False

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        if Register.LEDGER_SYN in registers:
            for server in (1, 2):
                self.count(Register.LEDGER_SYN, server, 20)
                self.count(Register.LEDGER_SYNACK, server, 0 if self.torn and server == 1 else 20)
            if self.torn and self.slow_s:
                await asyncio.sleep(self.slow_s)
            columns = await super().columns(registers, indices)
            if self.torn:
                self.torn = False
                self.count(Register.LEDGER_SYNACK, 1, 20)
            return columns
        return await super().columns(registers, indices)


@pytest.mark.parametrize("slow_s", [0.0, STOPPED_S], ids=["controller stopped", "switch stopped"])
@stalled
async def test_no_server_falls_silent_by_a_late_reading(slow_s: float) -> None:
    world = world_of(parse(web(mode="production", period_s=1.0, window_s=4.0)))
    registers, (service,) = Counting(slow_s=slow_s), world.plan.services
    task = asyncio.create_task(
        balance(world, world[Balance].views[service.id], cast(Link, Switch(registers=registers)), service, Trace(None))
    )
    balancer = world[Balance].views[service.id].balancer
    await asyncio.sleep(3.5)
    registers.torn = True
    if not slow_s:
        stall(STOPPED_S)
    for _ in range(8):
        await asyncio.sleep(1.0)
        assert balancer.ejected == frozenset()
    assert not registers.torn
    task.cancel()


@stalled
async def test_requests_of_a_pause_are_no_crowd() -> None:
    options = "{mode: paper, period_s: 1, poll_s: 1}"
    world = world_of(parse(web(more=f"news: {options}", period_s=1, window_s=4)))
    view = world[CrowdControl].view
    assert view is not None
    switch, decided = Switch(), list[float]()
    (address, number), *_ = view.numbers.items()
    assert address == from_text("10.0.0.100")

    class Kept(NewsTrace):
        def write(self, view: Any, decision: Any, *, wrote: bool) -> None:
            decided.append(decision.target.offered / decision.target_s)

    def arrive(seconds: float) -> None:
        for register in (Register.REQUESTS_OFFERED, Register.REQUESTS_ADMITTED):
            switch.registers.count(register, number, round(seconds * 100))

    async def go_on_arriving() -> None:
        while True:
            await asyncio.sleep(0.1)
            arrive(0.1)

    tasks = [
        asyncio.create_task(go_on_arriving()),
        asyncio.create_task(control(world, cast(Link, switch), view, Kept(None))),
    ]
    for _ in range(5):
        await asyncio.sleep(5.0)
        stall(STOPPED_S)
        arrive(STOPPED_S)
    assert len(decided) > 10
    assert max(decided) < 150
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
