"""The tables of the report on the lab's flash crowds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from experiments.experiment import Table
from experiments.intervals import Mean
from experiments.news_lab_runs import CROWD, QUIET, Runs, SetUps
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, PRODUCTION, SCENARIOS, SERVER, VARIANTS

BEFORE = "before the crowd"
WITHOUT = "no control, without the switch"
CURVES = (NONE.name, NEWS.name, HOT_SPOT.name, PRODUCTION.name)


def percent(mean: Mean, digits: int = 0) -> str:
    """Return a share as a text in percent."""
    return "-" if math.isnan(mean.value) else f"{mean.text(digits)} %"


def alarm(runs: Runs) -> str:
    """Return the mean seconds from the onset to the alarm as text; if only some runs had an alarm, also their
    number."""
    mean, count = runs.alarm_s(), len(runs.records)
    return mean.text(0) if mean.runs in (0, count) else f"{mean.text(0)} in {mean.runs} of {count}"


def false_alarms(runs: Runs) -> int:
    """Return the number of false alarms in all runs."""
    return sum(record.result[CROWD]["false_alarms"] for record in runs.records)


_Cell = Callable[[Runs, str], str]


def _figure(name: str) -> _Cell:
    return lambda runs, window: runs.figure(name, window).text(0)


CROWD_COLUMNS: Mapping[str, _Cell] = {
    "offered/s": _figure("offered_per_s"),
    "connected/s": _figure("admitted_per_s"),
    "answered/s": _figure("finished_per_s"),
    "rejected": lambda runs, window: percent(runs.percent("rejected_share", window)),
    "loss": lambda runs, window: percent(runs.percent("response_loss", window), 1),
    "AR (kbit/s)": _figure("ar_kbps"),
    "link used": lambda runs, window: percent(runs.percent("bottleneck_used", window)),
    "alarm after (s)": lambda runs, window: alarm(runs) if window == CROWD else "-",
    "bulk (kbit/s)": _figure("bystander_goodput_kbps"),
}


def _rows(columns: Mapping[str, _Cell], shown: Sequence[tuple[str, Runs, str]]) -> list[list[str]]:
    """Return a table row for each entry of `shown`, which consists of a title, the runs, and the runs' window."""
    return [[title, *(cell(runs, window) for cell in columns.values())] for title, runs, window in shown]


def _compared(before: Runs, by_variant: Mapping[str, Runs], without: Runs | None) -> list[tuple[str, Runs, str]]:
    """Return the entries of the rows: before the crowd, every variant in the crowd, and the lab without the switch."""
    shown = [(VARIANTS[name].title, runs, CROWD) for name, runs in by_variant.items()]
    return [(BEFORE, before, QUIET), *shown, *([] if without is None else [(WITHOUT, without, CROWD)])]


def _crowd_table(scenario: str, by_variant: Mapping[str, Runs], without: Runs | None) -> Table:
    heading = [SCENARIOS[scenario].title.partition(":")[0], *CROWD_COLUMNS]
    return Table(heading, _rows(CROWD_COLUMNS, _compared(next(iter(by_variant.values())), by_variant, without)))


_MEDIAN = "bystander_latency_median_ms"
LATENCY_COLUMNS: Mapping[str, _Cell] = {
    "mean (s)": lambda runs, window: runs.figure("bystander_latency_mean_ms", window).text(2),
    "median (s)": lambda runs, window: runs.figure(_MEDIAN, window).text(2),
    "times": lambda runs, window: runs.over(runs, _MEDIAN, window, QUIET).text(1),
}


def _latency_table(by_variant: Mapping[str, Runs], without: Runs | None) -> Table:
    curves = {name: runs for name, runs in by_variant.items() if name in CURVES}
    shown = _compared(next(iter(by_variant.values())), curves, without)
    return Table(["bystander's web requests", *LATENCY_COLUMNS], _rows(LATENCY_COLUMNS, shown))


def _both(name: str, digits: int = 0, scale: float = 1.0, unit: str = "") -> _Cell:
    """Return a column whose cells show a figure before and during the crowd."""
    return lambda runs, _: " -> ".join(
        f"{runs.figure(name, window, scale).text(digits)}{unit}" for window in (QUIET, CROWD)
    )


SWEEP_COLUMNS: Mapping[str, _Cell] = {
    "alarm after (s)": lambda runs, _: alarm(runs),
    "false alarms": lambda runs, _: str(false_alarms(runs)),
    "connected/s": _figure("admitted_per_s"),
    "AR (kbit/s)": _figure("ar_kbps"),
    "rejected": CROWD_COLUMNS["rejected"],
    "offered/s": _figure("offered_per_s"),
    "controller's CPU": _both("controller_cpu", 1, 100.0, " %"),
    "switch's CPU": _both("switch_cpu", 1, 100.0, " %"),
    "controller's memory (MB)": _both("controller_mb"),
    "switch's memory (MB)": _both("switch_mb"),
}


def swept(sweep: Mapping[float, Runs]) -> str:
    """Return the title of the variant whose detection interval T was varied."""
    return VARIANTS[next(iter(sweep.values())).parameters["variant"]].title


def _sweep_table(sweep: Mapping[float, Runs]) -> Table:
    shown = [(f"{period_s:g}", runs, CROWD) for period_s, runs in sweep.items()]
    return Table([f"{swept(sweep)}: T (s)", *SWEEP_COLUMNS], _rows(SWEEP_COLUMNS, shown))


def tables(setups: SetUps) -> list[Table]:
    """Return a table for each scenario, a table of the bystander's latency, and a table of the runs that vary T."""
    network, server = setups.crowds[NETWORK.name], setups.crowds[SERVER.name]
    made: list[Table] = []
    if network:
        made.append(_crowd_table(NETWORK.name, network, setups.without))
    if server:
        made.append(_crowd_table(SERVER.name, server, None))
    if network:
        made.append(_latency_table(network, setups.without))
    if setups.sweep:
        made.append(_sweep_table(setups.sweep))
    return made
