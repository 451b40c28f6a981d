"""Measures of a ratio's course over time: settling time, variation afterwards, and reversals. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NEAR = 0.05
"""A ratio has settled when it remains within this distance of its final level."""


@dataclass(frozen=True, slots=True)
class Course:
    """Measures of the course of one server's ratio (share of the new connections)."""

    settled_s: float
    """Time in seconds after which the ratio remains near `level`; infinite if this time is in the last third of the
    course."""
    level: float
    """Mean ratio over the last third of the course."""
    swing: float
    """Standard deviation of the ratio over the last third of the course."""
    reversals: float
    """Share of the steps in the last third of the time that reverse the direction of the previous change."""


def course(times: Sequence[float], ratios: Sequence[float], near: float = NEAR) -> Course:
    """Return the measures of samples in the order of time; a ratio has settled if it remains within `near` of its
    level.

    Raises ValueError if there are no samples.
    """
    if not times:
        raise ValueError("a course needs samples")
    last = [ratio for time, ratio in zip(times, ratios, strict=True) if time >= times[-1] * 2 / 3]
    level = statistics.fmean(last)
    settled = math.inf
    for time, ratio in reversed(list(zip(times, ratios, strict=True))):
        if abs(ratio - level) > near:
            break
        settled = time
    if settled > times[-len(last)]:
        settled = math.inf
    return Course(settled, level, statistics.pstdev(last), reversals(last))


def reversals(ratios: Sequence[float]) -> float:
    """Return the share of the steps from one ratio to the next whose direction is opposite to the previous change.
    Steps without a change count as steps, but not as changes. The share is 0 without steps."""
    moves = [after > before for before, after in pairwise(ratios) if after != before]
    return sum(after != before for before, after in pairwise(moves)) / max(1, len(ratios) - 1)
