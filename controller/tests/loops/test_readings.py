"""Tests of the times at which counters and open connections are read: live, in a replay, by a late controller."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import pytest
from configs import web
from fakeswitch import Memory
from hypothesis import given
from hypothesis import strategies as st
from sluice.balance.slowness import SAMPLE_TIMES
from sluice.config.load import parse
from sluice.features import Balance, world_of
from sluice.features.balance.decisions import balance
from sluice.features.balance.trace import Trace
from sluice.loops.commands import reconfigure
from sluice.loops.grid import nearest, next_turn
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import Register
from sluice.replay.driver import Balanced, Driver, LiveTimes
from virtual import Switch, in_virtual_time

PERIOD_S = 2.0
PERIODS = 3
STALLED = 3
"""Ordinal (from 1) of that reading of the servers' counters that takes `stall_s` seconds."""


class Watched(Memory):
    """Registers that record the times of readings.

    A reading of open connections takes `takes_s` seconds. Of the readings of counters, number STALLED takes `stall_s`
    seconds.
    """

    def __init__(self, takes_s: float = 0.0, stall_s: float = 0.0) -> None:
        super().__init__()
        self.takes_s, self.stall_s = takes_s, stall_s
        self.now_s: float | None = None
        """The current time in seconds; None: the event loop's time."""
        self.loads: list[float] = []
        self.ledger: list[float] = []

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        now = asyncio.get_running_loop().time() if self.now_s is None else self.now_s
        of_loads = Register.LOAD_FIRST in registers
        (self.loads if of_loads else self.ledger).append(now)
        if of_loads and self.takes_s:
            await asyncio.sleep(self.takes_s)
        elif not of_loads and self.stall_s and len(self.ledger) == STALLED:
            await asyncio.sleep(self.stall_s)
        return await super().columns(registers, indices)


class Kept(Trace):
    """A trace that stores its lines and the times at which they were written."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lines: list[dict[str, Any]] = []
        self.times: list[float] = []

    def write(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        self.times.append(asyncio.get_running_loop().time())


def world(mode: str) -> World:
    return world_of(parse(web(mode=mode, period_s=PERIOD_S, window_s=4 * PERIOD_S)))


def live(mode: str, registers: Watched, periods: int = PERIODS) -> Kept:
    trace = Kept()

    async def run() -> None:
        it = world(mode)
        link = cast(Link, Switch(registers=registers))
        task = asyncio.create_task(balance(it, it[Balance].views[1], link, it.plan.services[0], trace))
        await asyncio.sleep(periods * PERIOD_S - 0.01)
        task.cancel()

    in_virtual_time(run())
    return trace


ALL = [PERIOD_S * (period + fraction) for period in range(PERIODS) for fraction in (0.0, *SAMPLE_TIMES)]


def test_loads_are_read_eight_times_a_period_and_decided_from_once() -> None:
    registers = Watched()
    lines = live("production", registers).lines
    assert registers.loads == pytest.approx(ALL)
    assert registers.ledger == pytest.approx([0.0, 2.0, 4.0])
    assert len(lines) == PERIODS - 1
    assert lines[0]["servers"]["s1"]["work"] == {"open_sum": 0, "anew": 0, "begun": 0}


def test_they_are_not_read_without_a_second_look() -> None:
    registers = Watched()
    lines = live("paper", registers).lines
    assert registers.loads == [] and registers.ledger == pytest.approx([0.0, 2.0, 4.0])
    assert lines[0]["servers"]["s1"]["work"] is None


def test_a_reading_that_is_late_for_the_next_is_left_out_and_decisions_keep_their_times() -> None:
    registers = Watched(takes_s=0.55)
    live("production", registers)
    assert registers.ledger == pytest.approx([0.0, 2.0, 4.0], abs=0.55)
    assert 3 * PERIODS <= len(registers.loads) <= 5 * PERIODS
    assert all(later - earlier > 0.54 for earlier, later in zip(registers.loads, registers.loads[1:], strict=False))


@pytest.mark.parametrize(
    ("period_s", "expected"), [(2.0, [2.0, 4.0, 6.0, 8.0]), (1.0, [2.0, 3.3, 4.3, 5.3, 6.3, 7.3, 8.3])]
)
def test_a_reload_makes_no_decision_but_for_a_shorter_period(period_s: float, expected: list[float]) -> None:
    trace = Kept()

    async def run() -> None:
        it, link = world("paper"), cast(Link, Switch(registers=Watched()))
        for until_s in (2.3, 3.9, 8.9):
            task = asyncio.create_task(balance(it, it[Balance].views[1], link, it.plan.services[0], trace))
            await asyncio.sleep(until_s - asyncio.get_running_loop().time())
            task.cancel()
            config = parse(web(mode="paper", period_s=period_s, window_s=4 * period_s))
            reconfigure(it, config, asyncio.get_running_loop().time())

    in_virtual_time(run())
    assert trace.times == pytest.approx(expected)


def replayed(mode: str, registers: Watched, late: dict[float, float], live: LiveTimes | None = None) -> list[float]:
    """Return the times of a replay's decisions, in seconds.

    `late` maps the due time of a delayed step to its actual time. `live`: the times of all live decisions, at which the
    replay then decides.
    """
    decided: list[float] = []
    driver = Driver(world(mode), registers, 0.0, live=live)
    while driver.due < 2 * PERIODS * PERIOD_S - 0.01:
        registers.now_s = late.get(driver.due, driver.due)
        decided += [event.decision.time_s for event in driver.step(registers.now_s) if isinstance(event, Balanced)]
    driver.close()
    return decided


def test_a_replay_reads_them_when_the_controller_does() -> None:
    registers = Watched()
    assert replayed("production", registers, {}) == pytest.approx([PERIOD_S * n for n in range(1, 2 * PERIODS)])
    assert registers.loads[: len(ALL)] == pytest.approx(ALL)


@pytest.mark.parametrize("mode", ["paper", "production"])
@pytest.mark.parametrize(
    ("periods", "expected"),
    [(0.4, [2.0, 4.8, 6.0, 8.0, 10.0]), (0.7, [2.0, 5.4, 8.0, 10.0]), (1.7, [2.0, 7.4, 10.0])],
)
def test_a_decision_that_is_late_has_none_right_behind_it(mode: str, periods: float, expected: list[float]) -> None:
    """A reading of the counters that takes `periods` decision periods delays the second decision.

    The third decision follows at least half a period after the second. A replay decides at the times of the live
    decisions, if it receives either the delay or these times.
    """
    late, restored, traced = Watched(stall_s=periods * PERIOD_S), Watched(), Watched()
    times = live(mode, late, 2 * PERIODS).times
    assert times == pytest.approx(expected)
    assert min(later - earlier for earlier, later in pairwise(times)) >= PERIOD_S / 2
    assert replayed(mode, restored, {4.0: 4.0 + periods * PERIOD_S}) == pytest.approx(times)
    assert replayed(mode, traced, {}, LiveTimes({"web": times})) == pytest.approx(times)
    assert bool(late.loads) is (mode == "production")
    assert restored.loads == traced.loads == pytest.approx(late.loads)


@given(
    due=st.floats(0, 1e9, allow_subnormal=False),
    period=st.floats(0.05, 600),
    late=st.floats(0, 20, allow_subnormal=False),
)
def test_turns_are_on_the_grid_and_half_a_period_away(due: float, period: float, late: float) -> None:
    now = due + late * period
    turns = (next_turn(due, period, now) - due) / period
    assert turns == pytest.approx(round(turns), abs=1e-5) and turns > 0.99
    assert 0.5 - 1e-5 <= turns - late <= 1.5 + 1e-5


@given(due=st.floats(-100, 100), since=st.floats(-100, 100), period=st.floats(0.05, 60), first=st.floats(-100, 100))
def test_the_nearest_place_is_on_the_grid_and_not_before_the_first(
    due: float, since: float, period: float, first: float
) -> None:
    place = nearest(due, since, period, first)
    assert (place - since) / period == pytest.approx(round((place - since) / period), abs=1e-5)
    assert place >= first - 1e-5 * period
    assert abs(place - due) <= period / 2 * 1.00001 or due < place < first + period * 1.00001
