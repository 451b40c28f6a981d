"""The times of periodic tasks: whole periods apart, on a grid. The tasks and the replay share these functions."""

from __future__ import annotations

import math

_ROUNDING = 1e-6
"""Times that differ by less than this part of a period are equal."""


def next_turn(due_s: float, period_s: float, now_s: float) -> float:
    """Return when the next turn is due, after the turn that was due at ``due_s`` has ended now.

    It is a whole number of periods later, so that late turns do not add up. It is at least half a period from now: a
    decision right behind a late one would have hardly any measurements, and slow readings leave time for other tasks.
    """
    return due_s + period_s * max(1, math.ceil((now_s - due_s) / period_s + 0.5))


def nearest(due_s: float, since_s: float, period_s: float, first_s: float) -> float:
    """Return the time nearest to ``due_s`` on the grid through ``since_s``, not before ``first_s``."""
    first = math.ceil((first_s - since_s) / period_s - _ROUNDING)
    return since_s + period_s * max(first, round((due_s - since_s) / period_s))


def until_next(since_s: float, period_s: float, now_s: float) -> float:
    """Return the seconds to the next time on the grid through ``since_s``, for tasks that every reload begins anew."""
    return period_s - (now_s - since_s) % period_s
