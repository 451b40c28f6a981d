"""When a loop's turns are: a period apart, on a grid, for those who wait and for those who replay."""

from __future__ import annotations

import math

_ROUNDING = 1e-6
"""Of a period: so near is there."""


def next_turn(due_s: float, period_s: float, now_s: float) -> float:
    """When the turn after the one that was due then is due, which is done now.

    Whole periods later: late turns do not add up. At least half a period from now: a decision right behind a late one
    would be made of next to nothing, and slow readings leave time for others.
    """
    return due_s + period_s * max(1, math.ceil((now_s - due_s) / period_s + 0.5))


def nearest(due_s: float, since_s: float, period_s: float, first_s: float) -> float:
    """The place nearest to ``due_s`` of the grid that ``since_s`` is on, and not before ``first_s``."""
    first = math.ceil((first_s - since_s) / period_s - _ROUNDING)
    return since_s + period_s * max(first, round((due_s - since_s) / period_s))


def until_next(since_s: float, period_s: float, now_s: float) -> float:
    """Seconds to the next place of the grid that began at ``since_s``: for what is done now and then, by tasks that
    every reload begins anew."""
    return period_s - (now_s - since_s) % period_s
