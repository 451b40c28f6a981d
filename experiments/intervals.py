"""Means with 95 % confidence intervals over repeated runs (Student's t)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean of `runs` values; `half` is half the width of its 95 % confidence interval, NaN for a single run."""

    value: float
    half: float
    runs: int

    @property
    def bar(self) -> float:
        """Length of the error bar to each side of the mean: `half`, or 0 for a single run. The length is at most 0.9
        times the mean, so that the lower end of the bar is above 0, as a logarithmic axis requires."""
        return 0.0 if math.isnan(self.half) else min(self.half, 0.9 * self.value)

    def signed(self, digits: int = 1) -> str:
        """Return a difference as `+12.3 ± 0.4`; for a single run, which has no interval, as `+12.3`."""
        return f"{self.value:+,.{digits}f}" + ("" if math.isnan(self.half) else f" ± {self.half:,.{digits}f}")

    def text(self, digits: int = 1) -> str:
        """Return the mean as `12.3 ± 0.4`, or as `12.3 (0–30.1)` if half the interval's width exceeds the mean.

        A single run has no interval (`12.3`); without runs, the text is `-`. Measured quantities are never negative, so
        an interval that would begin below 0 begins at 0.
        """
        if math.isnan(self.value):
            return "-"
        plain, half = f"{self.value:,.{digits}f}", f"{self.half:,.{digits}f}"
        if math.isnan(self.half):
            return plain
        wide = self.half > self.value >= 0 and float(half.replace(",", "")) > 0
        return f"{plain} (0–{self.value + self.half:,.{digits}f})" if wide else f"{plain} ± {half}"


BY_CHANCE = ", no more apart than chance"
"""Suffix of a text about two means whose difference is not significant."""


def by_chance(first: Mean, second: Mean) -> bool:
    """Return whether the difference of two means may be due to chance: whether it is at most the root of the sum of the
    squared half widths of the two intervals. False if one of the means is that of a single run."""
    return abs(first.value - second.value) <= math.hypot(first.half, second.half)


def chance(first: Mean, second: Mean) -> str:
    """Return BY_CHANCE if the difference of two means is not significant, else ""."""
    return BY_CHANCE if by_chance(first, second) else ""


def difference(ours: Mapping[int, float], theirs: Mapping[int, float]) -> Mean:
    """Return the mean of `ours` minus `theirs` over pairs of runs with the same number, which had the same load."""
    return mean_of([ours[number] - theirs[number] for number in sorted(ours.keys() & theirs.keys())])


def surely_above(gap: Mean) -> bool:
    """Return whether the whole interval of a difference is above 0. For a single pair, which has no interval, return
    whether the difference is above 0."""
    return gap.value > (0.0 if math.isnan(gap.half) else gap.half)


def student_t(degrees: int) -> float:
    """Return the quantile of Student's t for a two-sided interval with the confidence LEVEL."""
    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of repeated runs; its value is NaN if there are no runs."""
    if not values:
        return Mean(math.nan, math.nan, 0)
    n = len(values)
    half = student_t(n - 1) * statistics.stdev(values) / math.sqrt(n) if n > 1 else math.nan
    return Mean(statistics.fmean(values), half, n)
