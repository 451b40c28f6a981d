"""When httperf begins connections: it draws exponential intervals from its processes' numbers, so that every load of a
rate has the same ones (httperf 0.9, src/gen/rate.c; checked against what it prints)."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

from topo.plan.load import Load

_MULTIPLIER, _INCREMENT, _MODULUS = 0x5DEECE66D, 0xB, 1 << 48
"""Of erand48 (POSIX)."""


def as_in_the_lab(rate_per_s: float) -> Iterator[float]:
    """Those of the lab's load, where one processor is the load's (topo/httperf.py)."""
    return httperf(rate_per_s, Load(rate_per_s, 1.0).processes(1))


def httperf(rate_per_s: float, processes: int = 1) -> Iterator[float]:
    """Seconds since the beginning of each connection of a load, without end; the first of each process is at once."""
    return heapq.merge(*(_process(number, rate_per_s / processes) for number in range(processes)))


def _process(number: int, rate_per_s: float) -> Iterator[float]:
    moment = 0.0
    for sample in uniform(number):
        yield moment
        moment -= math.log(1.0 - sample) / rate_per_s


def uniform(number: int) -> Iterator[float]:
    """What erand48 gives a process, in [0, 1); `number` is that of `--client`."""
    low, middle, high = 0x1234 ^ number, 0x5678 ^ number << 8, 0x9ABC ^ ~number
    state = low & 0xFFFF | (middle & 0xFFFF) << 16 | (high & 0xFFFF) << 32
    while True:
        state = (_MULTIPLIER * state + _INCREMENT) % _MODULUS
        yield state / _MODULUS
