"""CPU time of the controller's own work: the only figure of a simulation that is measured on the machine that runs the
simulation."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Return the result of ``work``, and the CPU seconds that the call took.

    Garbage collection is off during the call. A collection traverses the simulation's whole heap, which can take
    hundreds of times as long as a step of the controller.
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
