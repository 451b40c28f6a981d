"""When a client sends its SYN again."""

from __future__ import annotations

import math
from collections.abc import Sequence

TICK_S = 0.004
"""Of the kernel's timers (250 Hz)."""
_LEVEL_TICKS, _FINER = 63, 8
"""A level of the timer wheel reaches so many of its own steps, and each is so many times coarser than the last."""


def linear(first_s: float = 1.0, linear_timeouts: int = 4, retries: int = 6) -> Sequence[float]:
    """Linux since 6.5: so many waits of ``first_s``, then doubling from it (``tcp_syn_linear_timeouts``)."""
    return tuple(first_s * 2.0 ** max(0, number - linear_timeouts) for number in range(retries))


def exponential(first_s: float = 1.0, retries: int = 6) -> Sequence[float]:
    """Doubling from the first: RFC 6298 with 1 s, RFC 1122 (and the clients of 2005 and 2009) with 3 s."""
    return tuple(first_s * 2.0**number for number in range(retries))


def on_wheel(now_s: float, wait_s: float) -> float:
    """When a timer of Linux goes off: at the next step of its level of the wheel (kernel/time/timer.c).

    A second is waited for in steps of 32 ms: 1.024 s from one SYN to the next, so that it does not always come at the
    same place of a CPU limit's period of 100 ms.
    """
    step_s = TICK_S
    while wait_s >= _LEVEL_TICKS * step_s:
        step_s *= _FINER
    return (math.floor((now_s + wait_s) / step_s) + 1) * step_s
