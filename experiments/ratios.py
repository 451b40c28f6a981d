"""What is read off ratios against time: how long they take to settle, how much they swing then, how often they turn.

Pure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

NEAR = 0.05
"""Ratios within this of where they end up have settled."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one server's ratio; times in seconds."""

    settled_s: float
    """From when on it stays near its level; infinite if it does not even for the last third, which has the level."""
    level: float
    """Its mean over the last third."""
    swing: float
    """Standard deviation over the last third."""
    reversals: float
    """Moves against the direction of the move before, of all steps from sample to sample of the last third."""


def course(times: Sequence[float], ratios: Sequence[float], near: float = NEAR) -> Course:
    """Read a course off samples in order of time, settled when within `near`; ValueError without any."""
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
    """Return the part of the steps that go the other way than the last one that moved; 0 where there are none."""
    moves = [after > before for before, after in pairwise(ratios) if after != before]
    return sum(after != before for before, after in pairwise(moves)) / max(1, len(ratios) - 1)
