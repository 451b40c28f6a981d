"""Measures of ratios against time: when they settle, how much they swing afterwards, how often they reverse. Without
side effects."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NEAR = 0.05
"""Ratios within this distance of their final level have settled."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one server's ratio; times in seconds."""

    settled_s: float
    """Seconds from which on the ratio stays near its level; infinite if it does not even in the last third."""
    level: float
    """Mean ratio over the last third."""
    swing: float
    """Standard deviation of the ratio over the last third."""
    reversals: float
    """Share of the last third's steps that go against the direction of the previous move."""


def course(times: Sequence[float], ratios: Sequence[float], near: float = NEAR) -> Course:
    """Read a course off samples in order of time; it has settled when within `near` of its level.

    Raises ValueError without samples.
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
    """Return the share of steps that go against the last move; 0 if there are none."""
    moves = [after > before for before, after in pairwise(ratios) if after != before]
    return sum(after != before for before, after in pairwise(moves)) / max(1, len(ratios) - 1)
