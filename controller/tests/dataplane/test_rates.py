"""Tests of the register cells in which the switch measures the rates of responses."""

from __future__ import annotations

import random

from sluice.dataplane.memory import Memory
from sluice.dataplane.rates import RateCells
from sluice.names import RATE_TICK_US, TICK_BASE, Register

STEP = 128


def test_a_clock_that_wraps_changes_nothing() -> None:
    """The 32-bit clock of the switch wraps every 51 days; a wrap during the measurement does not change the cells."""

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
