"""A percentile by nearest rank, and a mean that ignores NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least a share `share` of the values do not exceed (nearest rank); NaN if
    `values` is empty."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def mean(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none."""
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) / len(numbers) if numbers else math.nan
