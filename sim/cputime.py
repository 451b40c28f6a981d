"""CPU time of the controller's own work: the only figure of a simulation that is measured instead of simulated."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return what ``work`` returns, and the CPU seconds that it took.

    Garbage collection is off meanwhile: it would traverse the simulation's whole heap, which takes up to hundreds of
    times as long as a step of the controller.
    """
    collecting = gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        result = work()
        return result, time.thread_time() - began
    finally:
        if collecting:
            gc.enable()
