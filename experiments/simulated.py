"""Common parts of experiments with simulated flash crowds: the simulated runs on Chen & Heidemann's topology, and the
figures of a run as values that JSON can represent."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from experiments.experiment import Axes, Figure, Point, Record, Values
from experiments.intervals import mean_of
from sim.crowd import CrowdPlan
from sim.dumbbell import Dumbbell, plan, simulate_dumbbell
from topo.plan.crowd.measures import Records, figures
from topo.plan.crowd.network import TARGET_ADDRESS
from topo.plan.crowd.readings import measured
from topo.plan.crowd.scenarios import VARIANTS
from topo.plan.outcomes import Ending

AR, OFFERED, ADMITTED = 1, 2, 3
"""Indexes of the columns that are drawn in a run's rows; column 0 is the time."""

SECONDS_PER_REQUEST = 1 / 4000
"""Approximate seconds to simulate a request, to estimate the time left."""
QUICK_TIMES = {"onset_s": 340.0, "end_s": 760.0}
"""Times of the quick form in seconds. The onset is at the same phase of its interval as in Chen & Heidemann, but the
times before and after the onset are shorter."""


def point(key: str, variant: str, *, quick: bool, seed: int = 1, **changes: Any) -> Point:
    """Return a point that simulates a variant on Chen & Heidemann's topology; ``changes`` are fields of Dumbbell."""
    parameters = {"variant": variant, "seed": seed, **(QUICK_TIMES if quick else {}), **changes}
    topology = dumbbell(parameters)
    count = topology.quiet_per_s * topology.onset_s + topology.crowd_per_s * (topology.end_s - topology.onset_s)
    return Point(f"{key}{' quick' if quick else ''} #{seed}", parameters, count * SECONDS_PER_REQUEST)


def dumbbell(parameters: Mapping[str, Any]) -> Dumbbell:
    """Return the simulation that a point's parameters describe: the name of a variant, and fields of Dumbbell."""
    rest = {name: value for name, value in parameters.items() if name != "variant"}
    return replace(Dumbbell(VARIANTS[parameters["variant"]]), **rest)


def planned(point: Point) -> CrowdPlan:
    """Return the plan that a point simulates."""
    return plan(dumbbell(point.parameters))


def measure(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    return values(simulate_dumbbell(dumbbell(point.parameters)))


def values(records: Records) -> Values:
    """Return a run's figures, both before the crowd and from one interval after the alarm on, and a row per
    interval."""
    begin, end = records.window()
    due = [outcome for outcome in records.outcomes if begin <= outcome.due_s < end]
    served = sum(connection.connect_s is not None for connection in due)
    bulk = [
        [round(moment, 1), sum(size for at, size in records.bulk if moment <= at < moment + records.period_s)]
        for moment in (number * records.period_s for number in range(int(end / records.period_s)))
    ]
    return {
        "crowd": {**asdict(figures(records, (begin, end))), "turned_away": 1 - served / max(1, len(due))},
        "quiet": asdict(figures(records, records.quiet())),
        "onset_s": records.onset_s,
        "period_s": records.period_s,
        "hot_spot": _hot_spot(records),
        "finished_share": sum(outcome.ending is Ending.FINISHED for outcome in due) / max(1, len(due)),
        "rows": [
            [row.time_s, row.ar_bps, row.offered_per_s, row.admitted_per_s, row.limit_per_s, int(row.alarm)]
            for row in measured(records.rows)
        ],
        "bulk": bulk if records.bulk else [],
    }


def _hot_spot(records: Records) -> dict[str, int]:
    """Return how many decisions after the onset identified a hot spot during the alarm, and how many identified the
    target."""
    named = [
        decision.hot_spot
        for decision in records.rows
        if decision.time_s >= records.onset_s and decision.alarm and decision.hot_spot
    ]
    return {"named": len(named), "right": named.count(str(int(TARGET_ADDRESS)))}


def text(
    records: Sequence[Record],
    name: str,
    digits: int = 1,
    *,
    scale: float = 1.0,
    window: str = "crowd",
    unit: str = "",
) -> str:
    """Return the mean of a figure over repeated runs as text; if only some runs measured the figure, also their
    number."""
    known = [scale * value for record in records if (value := record.result[window][name]) is not None]
    mean = mean_of(known).text(digits) + (unit if known else "")
    return mean if len(known) in (0, len(records)) else f"{mean} in {len(known)} of {len(records)}"


def percent(records: Sequence[Record], name: str, digits: int = 0) -> str:
    """Return the mean of a share over repeated runs as text, in percent."""
    return text(records, name, digits, scale=100, unit=" %")


def mean(records: Sequence[Record], name: str, window: str = "crowd") -> float:
    """Return the mean of a figure over the runs that measured it; NaN if no run did."""
    return mean_of([value for record in records if (value := record.result[window][name]) is not None]).value


def detections_s(records: Sequence[Record]) -> list[float]:
    """Return for each run the seconds from the crowd's onset to the alarm; infinite for runs without an alarm."""
    intervals = [record.result["crowd"]["detected_after_intervals"] for record in records]
    return [
        math.inf if count is None else count * record.result["period_s"]
        for record, count in zip(records, intervals, strict=True)
    ]


def detection(records: Sequence[Record]) -> str:
    """Return the mean seconds from the crowd's onset to the alarm, and the number of runs without an alarm, as text."""
    known = [detected_s for detected_s in detections_s(records) if math.isfinite(detected_s)]
    never = len(records) - len(known)
    said = [mean_of(known).text(0)] if known else []
    return ", ".join([*said, *([f"never in {never} of {len(records)}"] if never else [])])


def alarm(records: Sequence[Record]) -> str:
    """Return the mean time from the crowd's onset to the alarm as a phrase: `no alarm`, or `alarm after` a time; with
    the number of runs if some had no alarm."""
    known = [detected_s for detected_s in detections_s(records) if math.isfinite(detected_s)]
    if not known:
        return "no alarm"
    said = f"alarm after {mean_of(known).text(0)} s"
    never = len(records) - len(known)
    rest = "other" if never == 1 else "others"
    return f"{said} in {len(known)} of {len(records)} runs, never in the {rest}" if never else said


_COLUMNS: Mapping[str, Callable[[object, Sequence[Record]], str]] = {
    "admitted/s": lambda _, runs: text(runs, "admitted_per_s"),
    "turned away": lambda _, runs: percent(runs, "turned_away"),
    "AR before": lambda _, runs: text(runs, "ar_kbps", window="quiet"),
    "AR before (kbit/s)": lambda _, runs: text(runs, "ar_kbps", window="quiet"),
    "AR (kbit/s)": lambda _, runs: text(runs, "ar_kbps"),
    "loss": lambda _, runs: percent(runs, "response_loss", 1),
    "link used": lambda _, runs: percent(runs, "bottleneck_used"),
    "alarm after (s)": lambda _, runs: detection(runs),
    "false alarms a run": lambda _, runs: f"{mean(runs, 'false_alarms'):.1f}",
}


def columns(*headings: str) -> Mapping[str, Callable[[object, Sequence[Record]], str]]:
    """Return the table columns with these headings, for figures that every simulated crowd has."""
    return {heading: _COLUMNS[heading] for heading in headings}


def column(record: Record, index: int, scale: float = 1.0) -> tuple[list[float], list[float]]:
    """Return the times of a run's intervals, and the values of a column of its rows."""
    rows = record.result["rows"]
    return [row[0] for row in rows], [number(row[index]) * scale for row in rows]


def above_and_below(figure: Figure, upper_label: str, lower_label: str) -> tuple[Axes, Axes]:
    """Return two axes, one above the other, with a common time axis in seconds."""
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.set_ylabel(upper_label)
    lower.set_ylabel(lower_label)
    lower.set_xlabel("s")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    return upper, lower


def number(value: float | None) -> float:
    """Return a number that was stored as JSON, with null as NaN."""
    return math.nan if value is None else value
