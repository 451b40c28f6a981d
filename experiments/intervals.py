"""Means with 95 % intervals over repeated runs (Student's t)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

T_95 = (math.nan, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % points of Student's t for 0 to 10 degrees of freedom; beyond that 2.2 is on the safe side."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of `runs` values; `half` is half the width of its 95 % interval, NaN for a single run."""

    value: float
    half: float
    runs: int

    @property
    def bar(self) -> float:
        """How long its error bar is on a logarithmic axis: the whole of it stays above 0."""
        return 0.0 if math.isnan(self.half) else min(self.half, 0.9 * self.value)

    def text(self, digits: int = 1) -> str:
        """Return it as `12.3 ± 0.4`."""
        if math.isnan(self.value):
            return "-"
        plain = f"{self.value:,.{digits}f}"
        return plain if math.isnan(self.half) else f"{plain} ± {self.half:,.{digits}f}"


BY_CHANCE = ", no more apart than chance"
"""Behind what is said of two means."""


def by_chance(first: Mean, second: Mean) -> bool:
    """Say whether two means of repeated runs differ by no more than their intervals allow; no for single runs."""
    return abs(first.value - second.value) <= math.hypot(first.half, second.half)


def chance(first: Mean, second: Mean) -> str:
    """Say behind two means that they are no further apart than chance, if so."""
    return BY_CHANCE if by_chance(first, second) else ""


def repeated(runs: int, least: int | None = None) -> str:
    """Say how often each run was made, or `least` to `runs` times, at the beginning of a sentence."""
    if runs <= 1:
        return "One run each"
    fewer = least is not None and least < runs
    where = " where there are several" if fewer and least == 1 else ""
    return f"Means over {f'{least} to {runs}' if fewer else runs} runs, with 95 % intervals{where}"


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of repeated runs; NaN without any."""
    if not values:
        return Mean(math.nan, math.nan, 0)
    n = len(values)
    half = (T_95[n - 1] if n <= len(T_95) else 2.2) * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan
    return Mean(statistics.fmean(values), half, n)
