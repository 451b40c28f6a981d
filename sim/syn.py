"""Times at which a client's kernel repeats a SYN."""

from __future__ import annotations

import math
from collections.abc import Sequence

TICK_S = 0.004
"""Seconds between the kernel's timer ticks (250 Hz)."""
_LEVEL_TICKS, _FINER = 63, 8
"""Number of steps that a level of Linux's timer wheel spans, and the factor between the steps of successive levels."""


def linear(first_s: float = 1.0, linear_timeouts: int = 4, retries: int = 6) -> Sequence[float]:
    """Return ``retries`` waits between SYNs, in seconds, as in Linux since 6.5: the first ``linear_timeouts`` + 1 waits
    are ``first_s`` (``tcp_syn_linear_timeouts``); after them, each wait is twice the wait before."""
    return tuple(first_s * 2.0 ** max(0, number - linear_timeouts) for number in range(retries))


def exponential(first_s: float = 1.0, retries: int = 6) -> Sequence[float]:
    """Return ``retries`` waits between SYNs, in seconds. The first wait is ``first_s``: 1 s by RFC 6298, 3 s by RFC
    1122 and for the clients in the papers of 2005 and 2009. Each further wait is twice the wait before."""
    return tuple(first_s * 2.0**number for number in range(retries))


def on_wheel(now_s: float, wait_s: float) -> float:
    """Return the time at which a Linux timer expires that is set at ``now_s`` to ``wait_s``: the first step after the
    wait, of the level of the timer wheel to which waits of this length belong (kernel/time/timer.c).

    The level of a wait of one second has steps of 32 ms, so a SYN that was sent at a step is repeated after 1.024 s.
    Successive repetitions therefore fall on different phases of a CPU limit's period of 100 ms.
    """
    step_s = TICK_S
    while wait_s >= _LEVEL_TICKS * step_s:
        step_s *= _FINER
    return (math.floor((now_s + wait_s) / step_s) + 1) * step_s
