"""The parameters of flash-crowd control (NEWS): Chen & Heidemann's values where they give them, else this project's.

Times are in seconds, rates of requests in new connections per second, shares in parts of 1. Sections are those of
Chen & Heidemann, Flash Crowd Mitigation via Adaptive Admission Control.
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
    """What decides when and how far to limit."""

    PAPER = "paper"
    """The detector and the scoreboard as published."""
    PRODUCTION = "production"
    """A clean baseline, thresholds above the noise, a search for the capacity, a limit that goes when it is idle."""
    STATIC = "static"
    """The published detector watches; nothing is limited but what is configured."""

    @property
    def uses_production(self) -> bool:
        """Whether the parameters of ``production`` apply: period, window, and memory of admitted clients."""
        return self is NewsMode.PRODUCTION


PartOfOne = Annotated[float, Gt(0), Lt(1)]


@dataclass(frozen=True, slots=True)
class NewsProductionOptions:
    """What production mode adds to Chen & Heidemann."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    detection_s: Positive = 1.0
    """Seconds between two decisions (section 7.4 asks for a period that differs from the window)."""
    window_s: Positive = 4.0
    """Seconds over which AR and the request rate are measured; a multiple of the period."""
    baseline_s: Positive = 64.0
    """Time constant of the long-term averages, in seconds. They learn only while there is no limit and no
    congestion."""
    noise: NotNegative = 6.0
    """Mean absolute deviations by which AR or the request rate must change (and by ``tolerance``) to count."""
    tolerance_max: PartOfOne = 0.5
    """AR that is below its average by more than this part is a degradation, however noisy AR is."""
    limit_floor: Share = 0.5
    """The limit never falls below this part of the hot spot's usual request rate, which its servers can serve."""
    back_off: PartOfOne = 0.1
    """Part of the last healthy limit by which the limit goes below it at the first degradation."""
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
    """Seconds for which an admitted client's next connections pass as well, charged to the limit; 0: not at all.
    Experiments that compress time leave it as it is, since clients' retransmission timers are not compressed."""
    returning_share: PartOfOne = 0.5
    """The largest part of the limit for remembered clients; the rest is for new clients."""

    @property
    def intervals(self) -> int:
        """Detection periods in the measurement window."""
        return max(1, round(self.window_s / self.detection_s))

    @property
    def gain(self) -> float:
        """g of the long-term averages: their time constant is ``baseline_s``."""
        return math.exp(-self.detection_s / self.baseline_s)


@dataclass(frozen=True, slots=True)
class NewsOptions:
    """Flash-crowd control of one group of destinations. Raises OptionsError for bounds the wrong way round."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    mode: NewsMode = NewsMode.PRODUCTION
    """What decides when and how far to limit."""
    period_s: Positive = 64.0
    """T: seconds between two decisions, as in Chen & Heidemann's testbed (section 8.4; 60 in simulations). Production
    mode has ``detection_s`` instead."""
    fast_share: Annotated[float, Gt(0), Interval(le=1)] = 0.1
    """p: the part of the flows, the fastest, that AR is the mean of (section 4.3)."""
    tolerance: PartOfOne = 0.1
    """delta of conditions 1 to 3 ("for example, 10 %", section 4.2)."""
    gain_quiet: Share = 0.125
    """g of the high-low filter while there is no alarm (section 4.2)."""
    gain_alarm: Share = 0.875
    """g of the high-low filter while the alarm is set (section 4.2)."""
    step: PartOfOne = 0.2
    """Part of the limit that one move of the scoreboard changes. Chen & Heidemann give no value. While the alarm stays,
    the scoreboard moves down and up in turn: a first limit above the capacity sinks by step^2 in two intervals."""
    table_size: Count = 64
    """N: entries of the hot-spot table (section 4.4). Chen & Heidemann give no value."""
    table_idle_intervals: Count = 2
    """Intervals without a hit after which an entry of the hot-spot table is dropped."""
    identify: bool = True
    """Limit the hot spot only (section 4.4). Otherwise every destination shares one limit (Table III, "with NEWS")."""
    sample_share: Annotated[float, Gt(0), Interval(le=1)] = 0.125
    """Part of the packets towards servers that is sampled while the alarm is set."""
    sample_min: Count = 64
    """Number of samples from which on the hot spot is determined before the next interval ends."""
    bucket_s: Positive = 0.25
    """Bucket size, in seconds of the limit; at least one connection."""
    limit_min: Positive = 1.0
    """No limit is below this, connections per second."""
    limit_max: Positive = 100_000.0
    """No limit is above this, connections per second. Before the first alarm nothing is limited, which is what
    Chen & Heidemann's initial 1,000 per second amounted to (section 7.1). In production mode the limit's two buckets
    can come to more than it for an interval, by a seventh where ``returning_share`` is a half (``split.widest``)."""
    min_requests: Count = 10
    """Admitted requests without a single response flow from which on AR is 0; fewer are no evidence. Only the part of
    the requests counts whose responses are measured (``flow_share``)."""
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
        """Observations in the measurement window: one but in production mode."""
        return self.production.intervals if self.mode.uses_production else 1

    @property
    def response_intervals(self) -> int:
        """Observations in which the responses of a site with few requests are looked for, at most."""
        extra = self.production
        return round(extra.baseline_s / extra.detection_s) if self.mode.uses_production else 1

    @property
    def remember_s(self) -> float:
        """How long an admitted client is remembered; only production mode does."""
        return self.production.remember_s if self.mode.uses_production else 0.0
