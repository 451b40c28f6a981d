"""When open connections are read: live and in a replay, and by a controller that is late."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from configs import web
from fakeswitch import Memory
from sluice.balance.slowness import MEETINGS
from sluice.configload import parse
from sluice.loops.balancing import balance
from sluice.loops.link import Link
from sluice.loops.trace import Trace
from sluice.loops.world import World
from sluice.names import Register
from sluice.replay.driver import Balanced, Driver
from virtual import Switch, in_virtual_time

PERIOD_S = 2.0
PERIODS = 3


class Watched(Memory):
    """Registers that know when loads and ledger were read, and need a while for loads."""

    def __init__(self, takes_s: float = 0.0) -> None:
        super().__init__()
        self.takes_s = takes_s
        self.now_s: float | None = None
        """Left out: the loop's time."""
        self.loads: list[float] = []
        self.ledger: list[float] = []

    async def columns(self, registers: Sequence[Register], indices: Sequence[int]) -> list[list[int]]:
        now = asyncio.get_running_loop().time() if self.now_s is None else self.now_s
        (self.loads if Register.LOAD_FIRST in registers else self.ledger).append(now)
        if self.takes_s and Register.LOAD_FIRST in registers:
            await asyncio.sleep(self.takes_s)
        return await super().columns(registers, indices)


class Kept(Trace):
    """Keeps the lines."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lines: list[dict[str, Any]] = []

    def write(self, line: dict[str, Any]) -> None:
        self.lines.append(line)


def world(mode: str) -> World:
    return World.of(parse(web(mode=mode, period_s=PERIOD_S, window_s=4 * PERIOD_S)))


def live(mode: str, registers: Watched) -> list[dict[str, Any]]:
    trace = Kept()

    async def run() -> None:
        it = world(mode)
        link = cast(Link, Switch(registers=registers))
        task = asyncio.create_task(balance(it, link, it.plan.services[0], trace))
        await asyncio.sleep(PERIODS * PERIOD_S - 0.01)
        task.cancel()

    in_virtual_time(run())
    return trace.lines


ALL = [PERIOD_S * (period + part) for period in range(PERIODS) for part in (0.0, *MEETINGS)]


def test_loads_are_read_eight_times_a_period_and_decided_from_once() -> None:
    registers = Watched()
    lines = live("production", registers)
    assert registers.loads == pytest.approx(ALL)
    assert registers.ledger == pytest.approx([0.0, 2.0, 4.0])
    assert len(lines) == PERIODS - 1
    assert lines[0]["servers"]["s1"]["work"] == {"open_sum": 0, "anew": 0, "begun": 0}


def test_nobody_reads_them_without_a_second_look() -> None:
    registers = Watched()
    lines = live("paper", registers)
    assert registers.loads == [] and registers.ledger == pytest.approx([0.0, 2.0, 4.0])
    assert lines[0]["servers"]["s1"]["work"] is None


def test_a_reading_that_is_late_for_the_next_is_left_out_and_decisions_keep_their_times() -> None:
    registers = Watched(takes_s=0.55)
    live("production", registers)
    assert registers.ledger == pytest.approx([0.0, 2.0, 4.0], abs=0.55)
    assert 3 * PERIODS <= len(registers.loads) <= 5 * PERIODS
    assert all(later - one > 0.54 for one, later in zip(registers.loads, registers.loads[1:], strict=False))


def test_a_replay_reads_them_when_the_controller_does() -> None:
    registers, decided = Watched(), list[float]()
    driver = Driver(world("production"), registers, 0.0)
    while driver.due < PERIODS * PERIOD_S - 0.01:
        registers.now_s = driver.due
        decides = driver.decides
        events = driver.step(driver.due)
        assert decides or not events
        decided += [event.decision.time_s for event in events if isinstance(event, Balanced)]
    driver.close()
    assert registers.loads == pytest.approx(ALL)
    assert decided == pytest.approx([2.0, 4.0])
