"""CPU time of the controller's own work: the one figure of a simulation that is not simulated."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")


def timed(work: Callable[[], _T]) -> tuple[_T, float]:
    """Do it; what it returns, and its CPU time in seconds.

    No garbage is collected meanwhile: the heap is the simulation's, with what is under way in it, and going through it
    takes up to hundreds of times as long as a step of the controller.
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
