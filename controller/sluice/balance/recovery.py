"""The way back: what the published algorithm leaves out once all R are 0."""

from __future__ import annotations

from collections.abc import Mapping

from .ratios import Ratios


def relax(ratios: Mapping[int, float], fair: Mapping[int, float], part: float) -> Ratios:
    """Go ``part`` of the way from the present ratios to the fair shares."""
    return {server: ratio + part * (fair[server] - ratio) for server, ratio in ratios.items()}


def ramp(age_s: float, slow_start_s: float, floor: float) -> float:
    """The part of its share that a server has ``age_s`` after it came (back): from ``floor`` up to 1."""
    if slow_start_s <= 0 or age_s >= slow_start_s:
        return 1.0
    return max(floor, age_s / slow_start_s)
