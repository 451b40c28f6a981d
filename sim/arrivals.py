"""Times at which httperf begins connections.

httperf draws exponential intervals from random numbers whose seed is the process's number (`--client`). So a process
with the same number and rate begins its connections at the same times in every run (httperf 0.9, src/gen/rate.c;
checked against the times that httperf prints).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from topo.plan.load import Load

_MULTIPLIER, _INCREMENT, _MODULUS = 0x5DEECE66D, 0xB, 1 << 48
"""Constants of erand48's linear congruential generator (POSIX)."""


def as_in_the_lab(rate_per_s: float) -> Iterator[float]:
    """Yield, without end, the times in seconds at which the lab's load generator (topo/measure/httperf.py) begins
    connections at ``rate_per_s`` on a machine with one processor."""
    return httperf(rate_per_s, Load(rate_per_s, 1.0).processes(1))


def httperf(rate_per_s: float, processes: int = 1) -> Iterator[float]:
    """Yield, without end, the times at which connections begin, in seconds since the load began.

    ``rate_per_s`` is the sum over ``processes`` processes. Each process begins its first connection at 0 s.
    """
    return heapq.merge(*(_process(number, rate_per_s / processes) for number in range(processes)))


def _process(number: int, rate_per_s: float) -> Iterator[float]:
    moment = 0.0
    for sample in uniform(number):
        yield moment
        moment -= math.log(1.0 - sample) / rate_per_s


def uniform(number: int) -> Iterator[float]:
    """Yield the random numbers, in [0, 1), that erand48 returns to the process with this `--client` number."""
    low, middle, high = 0x1234 ^ number, 0x5678 ^ number << 8, 0x9ABC ^ ~number
    state = low & 0xFFFF | (middle & 0xFFFF) << 16 | (high & 0xFFFF) << 32
    while True:
        state = (_MULTIPLIER * state + _INCREMENT) % _MODULUS
        yield state / _MODULUS
