"""The parameters of flash-crowd control (NEWS): Chen & Heidemann's values where the paper states them, otherwise this
project's.

Times are in seconds, rates of requests in new connections per second, shares in parts of 1. Sections are those of Chen
& Heidemann, Flash Crowd Mitigation via Adaptive Admission Control.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from annotated_types import Gt, Interval, Lt

from sluice.balance.options import Count, NotNegative, Positive, Share

from .errors import OptionsError


class NewsMode(StrEnum):
    """The method that decides when a limit starts and how it moves."""

    PAPER = "paper"
    """The detector and the scoreboard as published."""
    PRODUCTION = "production"
    """A clean baseline, thresholds above the noise, a search for the capacity, and limits that are lifted when not
    needed."""
    STATIC = "static"
    """The published detector, without limits of its own: only configured limits are in force."""

    @property
    def uses_production(self) -> bool:
        """Whether the parameters of ``production`` apply: period, window, and memory of admitted clients."""
        return self is NewsMode.PRODUCTION


PartOfOne = Annotated[float, Gt(0), Lt(1)]


@dataclass(frozen=True, slots=True)
class NewsProductionOptions:
    """The parameters that production mode adds to those of Chen & Heidemann."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    detection_s: Positive = 1.0
    """Seconds between two decisions (section 7.4 requires a period that differs from the window)."""
    window_s: Positive = 4.0
    """Seconds over which AR and the request rate are measured; a multiple of the period."""
    baseline_s: Positive = 64.0
    """Time constant of the long-term averages, in seconds. They learn only while there is no limit and no
    congestion."""
    noise: NotNegative = 6.0
    """AR and the request rate must change by more than this many mean absolute deviations, and by more than
    ``tolerance``, to count as changed."""
    tolerance_max: PartOfOne = 0.5
    """An AR that is below its average by more than this part is a degradation, however noisy AR is."""
    limit_floor: Share = 0.5
    """The limit is never below this part of the hot spot's usual request rate, which its servers can serve."""
    back_off: PartOfOne = 0.1
    """At the first degradation, the limit falls to the last healthy limit less this part of the healthy limit."""
    back_off_max: PartOfOne = 0.5
    """The largest part by which the limit falls in one move while no healthy limit is known."""
    probe_min: PartOfOne = 0.02
    """Smallest step upward, in parts of the limit."""
    probe_max: Positive = 0.1
    """Largest step upward, in parts of the limit."""
    binding_share: Share = 0.01
    """The limit binds while it refuses more than this part of the hot spot's requests."""
    lift_intervals: Count = 10
    """Consecutive intervals without need of the limit after which it is lifted."""
    remember_s: Annotated[float, Interval(ge=0, le=3600)] = 30.0
    """Seconds for which an admitted client's next connections are admitted as well, within the limit; 0: not at all.
    Experiments that compress time leave this value as it is, because clients' retransmission timers are not
    compressed."""
    returning_share: PartOfOne = 0.5
    """The largest part of the limit for remembered clients. The rest is for new clients."""

    @property
    def intervals(self) -> int:
        """The number of detection periods in the measurement window."""
        return max(1, round(self.window_s / self.detection_s))

    @property
    def gain(self) -> float:
        """g of the long-term averages, so that their time constant is ``baseline_s``."""
        return math.exp(-self.detection_s / self.baseline_s)


@dataclass(frozen=True, slots=True)
class NewsOptions:
    """The options of flash-crowd control. Raises OptionsError if two of them contradict each other."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    mode: NewsMode = NewsMode.PRODUCTION
    """The method that decides when a limit starts and how it moves."""
    period_s: Positive = 64.0
    """T: seconds between two decisions, as in Chen & Heidemann's testbed (section 8.4; 60 in simulations). Production
    mode has ``detection_s`` instead."""
    fast_share: Annotated[float, Gt(0), Interval(le=1)] = 0.1
    """p: the fastest part of the flows, whose mean rate is AR (section 4.3)."""
    tolerance: PartOfOne = 0.1
    """delta of conditions 1 to 3 ("for example, 10 %", section 4.2)."""
    gain_quiet: Share = 0.125
    """g of the high-low filter while there is no alarm (section 4.2)."""
    gain_alarm: Share = 0.875
    """g of the high-low filter while the alarm is set (section 4.2)."""
    step: PartOfOne = 0.2
    """Part of the limit that one move of the scoreboard changes. Chen & Heidemann state no value. While the alarm is
    set, the scoreboard moves the limit down and up in turn. A first limit above the capacity then sinks by the part
    step^2 in two intervals."""
    table_size: Count = 64
    """N: number of entries in the hot-spot table (section 4.4). Chen & Heidemann state no value."""
    table_idle_intervals: Count = 2
    """Number of intervals without a hit after which an entry of the hot-spot table is dropped."""
    identify: bool = True
    """Limit only the hot spot (section 4.4). Otherwise all destinations share one limit (Table III, "with NEWS")."""
    sample_share: Annotated[float, Gt(0), Interval(le=1)] = 0.125
    """Part of the packets towards servers that the switch samples while the alarm is set."""
    sample_min: Count = 64
    """Number of samples from which on the hot spot is determined before the interval ends."""
    bucket_s: Positive = 0.25
    """Size of a limit's token bucket: the connections that the limit permits in this many seconds, at least one."""
    limit_min: Positive = 1.0
    """The lower bound of all limits, in connections per second."""
    limit_max: Positive = 100_000.0
    """The upper bound of all limits, in connections per second. Before the first alarm nothing is limited, which has
    the effect of Chen & Heidemann's initial 1,000 per second (section 7.1). In production mode a limit has two buckets.
    For an interval their sum can exceed this bound: by a seventh if ``returning_share`` is a half
    (``split.widest``)."""
    min_requests: Count = 10
    """If at least this many requests are admitted and no response flow is seen, AR is 0. Fewer requests are no
    evidence. Only the part of the requests counts whose responses are measured (``flow_share``)."""
    flow_share: Annotated[float, Gt(0), Interval(le=1)] = 1.0
    """The largest part of the flows whose responses the switch measures, rounded to 1/2^n. The part is lowered as the
    switch's slots fill."""
    production: NewsProductionOptions = field(default_factory=NewsProductionOptions)

    def __post_init__(self) -> None:
        if self.limit_min > self.limit_max:
            raise OptionsError(
                f"limit_min {self.limit_min:g} is above limit_max {self.limit_max:g}: lower the one or raise the other"
            )
        extra = self.production
        if extra.window_s < extra.detection_s:
            raise OptionsError(
                f"production.window_s {extra.window_s:g} is shorter than production.detection_s"
                f" {extra.detection_s:g}: the window holds at least one period"
            )
        if extra.probe_min > extra.probe_max:
            raise OptionsError(
                f"production.probe_min {extra.probe_min:g} is above production.probe_max {extra.probe_max:g}"
            )

    @property
    def interval_s(self) -> float:
        """Seconds between two observations in the present mode."""
        return self.production.detection_s if self.mode.uses_production else self.period_s

    @property
    def window_intervals(self) -> int:
        """Number of observations in the measurement window; 1 except in production mode."""
        return self.production.intervals if self.mode.uses_production else 1

    @property
    def response_intervals(self) -> int:
        """The largest number of observations in the measurement window, used at a site with few requests; 1 except in
        production mode."""
        extra = self.production
        return round(extra.baseline_s / extra.detection_s) if self.mode.uses_production else 1

    @property
    def remember_s(self) -> float:
        """Seconds for which an admitted client is remembered; 0 except in production mode."""
        return self.production.remember_s if self.mode.uses_production else 0.0
