"""Times at which clients repeat a SYN."""

from __future__ import annotations

import math
from collections.abc import Sequence

TICK_S = 0.004
"""Seconds between the kernel's timer ticks (250 Hz)."""
_LEVEL_TICKS, _FINER = 63, 8
"""Steps that a level of the timer wheel spans, and the factor by which each level's step is coarser than the level
before."""


def linear(first_s: float = 1.0, linear_timeouts: int = 4, retries: int = 6) -> Sequence[float]:
    """Return the waits of Linux since 6.5: ``linear_timeouts`` of ``first_s`` (``tcp_syn_linear_timeouts``), then
    doubled ones."""
    return tuple(first_s * 2.0 ** max(0, number - linear_timeouts) for number in range(retries))


def exponential(first_s: float = 1.0, retries: int = 6) -> Sequence[float]:
    """Return waits that double: RFC 6298 begins with 1 s, RFC 1122 (and the clients of 2005 and 2009) with 3 s."""
    return tuple(first_s * 2.0**number for number in range(retries))


def on_wheel(now_s: float, wait_s: float) -> float:
    """Return when a timer of Linux expires: at the next step of its level of the timer wheel (kernel/time/timer.c).

    A timer of one second has a step of 32 ms: a SYN is repeated after 1.024 s. So repetitions do not always fall on the
    same phase of a CPU limit's period of 100 ms.
    """
    step_s = TICK_S
    while wait_s >= _LEVEL_TICKS * step_s:
        step_s *= _FINER
    return (math.floor((now_s + wait_s) / step_s) + 1) * step_s
