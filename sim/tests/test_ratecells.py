"""The registers of rates that a simulation and a replay fill, held against the packet tests' estimator."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from sluice.names import RATE_TICK_US, TICK_BASE, Register
from sluice.replay.memory import Memory
from sluice.replay.ratecells import RateCells
from sluice.switch.rates import decode

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "ptf-tests")]

from harness.tsw import RateCell  # noqa: E402 (needs the path)

STEP = 128


@pytest.mark.parametrize("pause_s", [0.01, 0.2, 1.0, 3.0])
def test_rates_are_the_estimators_to_the_bit(pause_s: float) -> None:
    source, memory, cell = random.Random(1), Memory(), RateCell(STEP)
    cells = RateCells(memory, STEP)
    time = 0.5
    for _ in range(300):
        time += source.expovariate(1 / pause_s)
        size = source.randrange(40, 1500)
        cells.packet(time, 7, 99, size)
        cell.add(TICK_BASE + int(time * 1e6) // 1024, size)
        flow, octets = memory.of(Register.RATE_FLOW), memory.of(Register.RATE_BYTES)
        assert octets[7] == cell.content
        rate = decode(np.array(flow[7:8], np.uint64), np.array(octets[7:8], np.uint64), STEP)
        assert rate[0] == pytest.approx(cell.bits_per_second)


def test_a_clock_that_wraps_changes_nothing() -> None:
    """As that of a capture does every 51 days, which may begin anywhere."""

    def contents(start_us: int) -> list[int]:
        source, memory = random.Random(1), Memory()
        cells, seen, time_us = RateCells(memory, STEP), list[int](), start_us
        for _ in range(300):
            time_us += source.choice([5, 50, 500]) * 1000
            cells.packet(time_us / 1e6, source.randrange(20), source.randrange(2), source.randrange(40, 1500))
            seen.append(sum(memory.of(Register.RATE_BYTES)))
        return seen

    step_us = STEP * RATE_TICK_US
    wrap_us = ((1 << 32) - TICK_BASE) * RATE_TICK_US
    assert contents(wrap_us - 200 * step_us + 500) == contents(step_us + 500)


def test_a_slot_is_its_response_s_until_that_is_silent() -> None:
    memory = Memory()
    cells = RateCells(memory, STEP)
    cells.packet(1.0, 7, 1, 1000)
    cells.packet(1.1, 7, 2, 500)
    assert (memory.of(Register.RATE_FLOW)[7] >> 32, memory.of(Register.RATE_BYTES)[7]) == (1, 1000)
    cells.packet(6.0, 7, 2, 500)
    assert (memory.of(Register.RATE_FLOW)[7] >> 32, memory.of(Register.RATE_BYTES)[7]) == (2, 500)
