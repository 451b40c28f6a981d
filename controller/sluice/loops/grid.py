"""The times of periodic tasks, a whole number of periods apart. The tasks and the replay of traces use these
functions."""

from __future__ import annotations

import math

_ROUNDING = 1e-6
"""Times count as equal if they differ by less than this part of a period."""


def next_turn(due_s: float, period_s: float, now_s: float) -> float:
    """Return when a periodic task is due next; its previous run was due at ``due_s`` and ends at ``now_s``.

    The time is a whole number of periods after ``due_s``, so that delays do not add up. It is at least half a period
    after ``now_s``: a decision right after a late one would have hardly any measurements, and slow readings would leave
    no time for other tasks.
    """
    return due_s + period_s * max(1, math.ceil((now_s - due_s) / period_s + 0.5))


def nearest(due_s: float, since_s: float, period_s: float, first_s: float) -> float:
    """Return the grid time nearest to ``due_s``, at ``first_s`` or later. Grid times are whole periods from
    ``since_s``."""
    first = math.ceil((first_s - since_s) / period_s - _ROUNDING)
    return since_s + period_s * max(first, round((due_s - since_s) / period_s))


def until_next(since_s: float, period_s: float, now_s: float) -> float:
    """Return the seconds until the next time on the grid through ``since_s``. Tasks that each reload restarts use this
    function, so that a reload does not shift their times."""
    return period_s - (now_s - since_s) % period_s
