"""A simulated ablation of production mode's mechanisms against crowds: each mechanism is switched off in turn.

The main measure is the share of the requested bytes that arrive in whole answers within ten seconds, so that refused,
lost and slow requests all count as failed. A count of requests would favour a full link that starves large answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from sluice.config.model import Config
from sluice.news import NewsMode, baseline_detector, identify, modes, news, production, search, window
from sluice.news.baseline_detector import BaselineDetector
from sluice.news.identify import Identification
from sluice.news.knee import Knee
from sluice.news.lasting import Portion
from sluice.news.longmean import LongMean
from sluice.news.modes import MODES, Candidate, ProductionMode
from sluice.news.options import NewsOptions, NewsProductionOptions
from sluice.news.search import CapacitySearch

from experiments.ablation_tables import WHOLE, Ablation, Measured
from experiments.crowd_cases import (
    BESIDE,
    BOTH,
    CASES,
    DURING,
    NOTHING,
    RESTARTED,
    SERVER,
    SLOW_RAMP,
    SMALL,
    SUDDEN,
    TWICE,
    Busy,
    configuration,
    plan,
    values,
)
from experiments.experiment import Experiment, Figure, Point, Record, Report, Values
from experiments.simulated import SECONDS_PER_REQUEST
from experiments.substitutes import Part, substituted
from sim.crowd import CrowdPlan, simulate

SEEDS, QUICK_SEEDS = (1, 2, 3), (1,)
QUICK_CASES = (NOTHING, SUDDEN, SERVER, SMALL)
NEVER = 10**9
"""A number of intervals that no run reaches."""
ADDED = 0.02
"""Step by which AddingSearch raises the limit, as a share of the crowd's first limit."""


class WithoutKnee(Knee):
    """A knee detection that ignores responses, and so reports no degradation of the responses."""

    def add(self, portion: Portion | None, *, degraded: bool) -> None:
        """Ignore the responses of the interval."""


class WithoutLongMean(LongMean):
    """A substitute for the mean of AR over a long time. The mean never has enough values to be valid, so that every
    degradation of responses counts."""

    def fold(self, ar_share: float) -> None:
        """Ignore the value."""


class Unmoved(CapacitySearch):
    """A search that never changes the limit that a crowd's first degradation has set."""

    def healthy(self, extra: NewsProductionOptions, room: float = 1.0, beyond: float = 1.0) -> None:
        """Leave the limit as it is."""

    def strained(self, extra: NewsProductionOptions) -> None:
        """Leave the limit as it is."""

    def trim(self, above: float, room: float) -> None:
        """Leave the limit as it is."""

    def degraded(self, ar_share: float, extra: NewsProductionOptions) -> None:
        """Lower the limit at the first degradation only."""
        if self.ar_share is None:
            super().degraded(ar_share, extra)


class AddingSearch(CapacitySearch):
    """A search by additive increase and multiplicative decrease, from the same first limit as the original search."""

    def healthy(self, extra: NewsProductionOptions, room: float = 1.0, beyond: float = 1.0) -> None:
        """Raise the limit by a share of the first limit."""
        self.full = self.full or self.limit
        self.limit += ADDED * self.full

    def strained(self, extra: NewsProductionOptions) -> None:
        """Lower the limit by a fixed share."""
        self.limit *= 1 - 2 * extra.back_off

    def degraded(self, ar_share: float, extra: NewsProductionOptions) -> None:
        """Lower the limit as the original search does at the first degradation, and by a fixed share at later ones."""
        if self.ar_share is None:
            super().degraded(ar_share, extra)
        else:
            self.strained(extra)


class OneWindow(BaselineDetector):
    """A detector that compares only the last window's AR (the response rate of the fastest flows) with the baseline."""

    def _lastingly_down(self, average: float, width: float) -> bool:
        return self._readings[-1] < average * (1 - max(self._options.tolerance, width))


class WithoutSlowAverages(BaselineDetector):
    """A detector without slow averages. Only the baseline is left, which adapts to a crowd that grows slowly."""

    def _crept(self, offered: float, width: float, seconds: float) -> bool:
        return False


class LearnsAlways(BaselineDetector):
    """A detector whose baseline learns from every window, even during crowds and while a limit is set."""

    def _learns(self) -> bool:
        return True


class OneLimit(ProductionMode):
    """A mode that limits only one hot spot at a time."""

    several = False

    def start(self, candidate: Candidate, spot: Identification) -> bool:
        """Replace the limit of the present hot spot by the limit of a further hot spot."""
        self._crowds = {target: crowd for target, crowd in self._crowds.items() if target == candidate.target}
        return super().start(candidate, spot)


@dataclass(frozen=True, slots=True)
class Variant:
    """Production mode without one of its mechanisms, production mode with a substituted mechanism, or another mode."""

    mode: NewsMode = NewsMode.PRODUCTION
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Production options that switch the mechanism off."""
    identify: bool = True
    """Whether the limit applies to the hot spot only."""
    parts: Sequence[Part] = ()
    """Substitutes for mechanisms that no option switches off: module or class, name and substitute."""
    keeps_usual: bool = True
    """Whether a restarted controller takes over the baselines."""
    cases: Collection[str] = tuple(CASES)
    """Names of the cases in which the mechanism can matter."""


def _no_chance(_: float) -> float:
    return 0.0


def _not_known(_: object) -> None:
    return None


def _one_interval(_: NewsOptions) -> int:
    return 1


PAPER, NONE = "paper mode", "no control"
BY_AR, BY_LASTING = "additive increase, by AR", "additive increase, by what lasts"
_NO_KNEE, _NO_MEAN = (production, "Knee", WithoutKnee), (production, "LongMean", WithoutLongMean)
_ADDING = (production, "CapacitySearch", AddingSearch)
DELETED = Variant()
"""Placeholder for a mechanism that was deleted after this experiment: its rows report earlier runs. A new run with it
simulates the complete mode."""
MECHANISMS: Mapping[str, Variant] = {
    WHOLE: Variant(),
    "knee": Variant(parts=[_NO_KNEE]),
    "long mean": Variant(parts=[_NO_MEAN]),
    "search": Variant(parts=[(production, "CapacitySearch", Unmoved)]),
    "look below": DELETED,
    "wait for recovery": Variant(parts=[(search, "_RECOVERING", inf)]),
    "lasting responses": Variant(parts=[(window, "_lasting", _not_known)]),
    BY_AR: Variant(parts=[_NO_KNEE, _NO_MEAN, _ADDING]),
    BY_LASTING: Variant(parts=[_NO_MEAN, _ADDING]),
    "health bands": Variant(parts=[(baseline_detector, name, 1.0) for name in ("_HEALTHY", "_DEGRADED")]),
    "limit's floor": Variant(options={"limit_floor": 0.0}),
    "lifting": Variant(options={"lift_intervals": NEVER}),
    "split": Variant(options={"remember_s": 0.0}),
    "threshold above noise": Variant(options={"noise": 0.0}),
    "chance of counts": Variant(parts=[(module, "chance", _no_chance) for module in (baseline_detector, identify)]),
    "several windows": Variant(parts=[(modes, "BaselineDetector", OneWindow)]),
    "slow averages": Variant(parts=[(modes, "BaselineDetector", WithoutSlowAverages)]),
    "clean baseline": Variant(parts=[(modes, "BaselineDetector", LearnsAlways)]),
    "longer window of small sites": Variant(
        parts=[(NewsOptions, "response_intervals", property(_one_interval))], cases=(NOTHING, SLOW_RAMP, SMALL)
    ),
    "baseline file": Variant(keeps_usual=False, cases=(RESTARTED, DURING)),
    "hot spot": Variant(identify=False, cases=(NOTHING, SUDDEN, BESIDE, BOTH)),
    "a limit for each crowd": Variant(
        parts=[(news, "MODES", {**MODES, NewsMode.PRODUCTION: OneLimit})], cases=(TWICE, BESIDE, BOTH)
    ),
    PAPER: Variant(NewsMode.PAPER),
    NONE: Variant(NewsMode.STATIC),
}
NOT_WITHOUT = (BY_AR, BY_LASTING, PAPER, NONE)
"""Names of the rows with a substituted mechanism or another mode. Each other row, except WHOLE, omits one mechanism."""


def points(quick: bool) -> Sequence[Point]:
    """Return a point to measure for each seed, each mechanism and each case in which the mechanism can matter."""
    seeds, cases = (QUICK_SEEDS, QUICK_CASES) if quick else (SEEDS, tuple(CASES))
    return [
        Point(
            f"{case}, without {without} #{seed}",
            {"case": case, "without": without, "seed": seed},
            CASES[case].requests * SECONDS_PER_REQUEST,
        )
        for case in cases
        for seed in seeds
        for without, variant in MECHANISMS.items()
        if case in variant.cases
    ]


def planned(parameters: Mapping[str, Any], busy: Busy) -> CrowdPlan:
    """Return the plan of a case in which a mechanism is switched off or replaced."""
    case, variant = CASES[parameters["case"]], MECHANISMS[parameters["without"]]
    config = _with_options(configuration(case), variant)
    return plan(case, config, parameters["seed"], busy, keeps_usual=variant.keeps_usual)


def _with_options(config: Config, variant: Variant) -> Config:
    assert config.news is not None
    extra = replace(config.news.production, **variant.options)
    news_config = replace(config.news, mode=variant.mode, production=extra, identify=variant.identify)
    return config.model_copy(update={"news": news_config})


def measure(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    case, busy = CASES[point.parameters["case"]], Busy()
    with substituted(MECHANISMS[point.parameters["without"]].parts):
        run = simulate(planned(point.parameters, busy))
    return values(case, run, busy)


FIGURES = (
    Measured("bytes", "bytes asked for that are answered within 10 s, %", 1, 1.0, 100.0, more_is_better=True),
    Measured("answered", "requests answered within 10 s, %", 1, 1.0, 100.0, more_is_better=True),
    Measured("mean_s", "mean time to an answer, at most 30 s, s", 2, 0.1),
    Measured("visits", "visits with all requests answered, %", 1, 1.0, 100.0, more_is_better=True),
    Measured("used", "bottleneck used, %", 1, 1.0, 100.0, more_is_better=True),
    Measured("lost", "packets lost at the link, %", 1, 1.0, 100.0),
    Measured("rate", "AR, % of before", 0, 2.0, 100.0, more_is_better=True),
    Measured("alarm_s", "from a crowd's beginning to the alarm, s", 0, 2.0),
    Measured("false_alarms", "false alarms in a run", 1, 0.3),
    Measured("normal_s", "from the last crowd's end to normal service, s", 0, 2.0),
    Measured("lifted_s", "from the last crowd's end to the last limit's, s", 0, 2.0),
)


def _title(name: str) -> str:
    return name if name in NOT_WITHOUT else f"without {name}"


def report(records: Sequence[Record]) -> Report:
    """Report a table of all mechanisms and cases for each figure."""
    ablations = [Ablation(records, list(CASES), figure) for figure in FIGURES]
    return Report(
        tables=[ablation.table({name: _title(name) for name in MECHANISMS}) for ablation in ablations],
        summary={ablation.figure.name: ablation.summary(MECHANISMS) for ablation in ablations},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the shares of bytes and requests answered without each mechanism, as differences from production mode;
    significant differences are coloured."""
    panels = figure.subplots(1, 2, sharey=True)
    names = [name for name in MECHANISMS if name != WHOLE]
    for axes, shown in zip(panels, FIGURES[:2], strict=True):
        Ablation(records, list(CASES), shown).draw(axes, names)
        axes.set_xlabel(f"{shown.title}: difference", fontsize="small")
    panels[0].set_yticks(range(len(names)), [_title(name) for name in names], fontsize="small")


EXPERIMENT = Experiment(
    name="ablation-crowds",
    title="What each mechanism against crowds is worth, simulated",
    source="Beyond Chen & Heidemann",
    about="Production mode without one mechanism at a time, by the same arrivals, at half the testbed's size. "
    "Differences are bold where their interval is above 5 % and a table's least step.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
