"""What is read off ratios against time: how long they take to settle, and how much they swing then.  Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

NEAR = 0.05
"""Ratios within this of where they end up have settled."""


@dataclass(frozen=True, slots=True)
class Course:
    """The course of one server's ratio; times in seconds."""

    settled_s: float
    """From when on it stays near its level; infinite if it never does."""
    level: float
    """Its mean over the last third."""
    swing: float
    """Standard deviation over the last third."""


def course(times: Sequence[float], ratios: Sequence[float]) -> Course:
    """Read a course off samples in order of time; ValueError without any."""
    if not times:
        raise ValueError("a course needs samples")
    last = [ratio for time, ratio in zip(times, ratios, strict=True) if time >= times[-1] * 2 / 3]
    level = statistics.fmean(last)
    settled = math.inf
    for time, ratio in reversed(list(zip(times, ratios, strict=True))):
        if abs(ratio - level) > NEAR:
            break
        settled = time
    return Course(settled, level, statistics.pstdev(last))
