"""The tables of the lab's flash crowds."""

from __future__ import annotations

import math
from collections.abc import Mapping

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
    """Return the seconds from the onset to the alarm, and in how many runs there was an alarm unless in all."""
    mean, count = runs.alarm_s(), len(runs.records)
    return mean.text(0) if mean.runs in (0, count) else f"{mean.text(0)} in {mean.runs} of {count}"


def false_alarms(runs: Runs) -> int:
    """Return the number of false alarms in all runs."""
    return sum(record.result[CROWD]["false_alarms"] for record in runs.records)


def _crowd_row(title: str, runs: Runs, window: str = CROWD) -> list[str]:
    return [
        title,
        *(runs.figure(f"{name}_per_s", window).text(0) for name in ("offered", "admitted", "finished")),
        percent(runs.percent("rejected_share", window)),
        percent(runs.percent("response_loss", window), 1),
        runs.figure("ar_kbps", window).text(0),
        percent(runs.percent("bottleneck_used", window)),
        alarm(runs) if window == CROWD else "-",
        runs.figure("bystander_goodput_kbps", window).text(0),
    ]


def _crowd_table(scenario: str, by_variant: Mapping[str, Runs], without: Runs | None) -> Table:
    heading = [
        SCENARIOS[scenario].title.partition(":")[0],
        "offered/s",
        "connected/s",
        "answered/s",
        "rejected",
        "loss",
        "AR (kbit/s)",
        "link used",
        "alarm after (s)",
        "bulk (kbit/s)",
    ]
    first = next(iter(by_variant.values()))
    rows = [_crowd_row(VARIANTS[name].title, runs) for name, runs in by_variant.items()]
    if without is not None:
        rows.append(_crowd_row(WITHOUT, without))
    return Table(heading, [_crowd_row(BEFORE, first, QUIET), *rows])


def _latency_row(title: str, runs: Runs, window: str) -> list[str]:
    median = "bystander_latency_median_ms"
    times = runs.over(runs, median, window, QUIET)
    return [
        title,
        runs.figure("bystander_latency_mean_ms", window).text(2),
        runs.figure(median, window).text(2),
        times.text(1),
    ]


def _latency_table(by_variant: Mapping[str, Runs], without: Runs | None) -> Table:
    first = next(iter(by_variant.values()))
    rows = [_latency_row(BEFORE, first, QUIET)]
    rows += [_latency_row(VARIANTS[name].title, runs, CROWD) for name, runs in by_variant.items() if name in CURVES]
    if without is not None:
        rows.append(_latency_row(WITHOUT, without, CROWD))
    return Table(["bystander's web requests", "mean (s)", "median (s)", "times"], rows)


def _sweep_row(period_s: float, runs: Runs) -> list[str]:
    def both(name: str, digits: int, scale: float = 1.0, unit: str = "") -> str:
        return " -> ".join(f"{runs.figure(name, window, scale).text(digits)}{unit}" for window in (QUIET, CROWD))

    return [
        f"{period_s:g}",
        alarm(runs),
        str(false_alarms(runs)),
        runs.figure("admitted_per_s").text(0),
        runs.figure("ar_kbps").text(0),
        percent(runs.percent("rejected_share")),
        runs.figure("offered_per_s").text(0),
        both("controller_cpu", 1, 100.0, " %"),
        both("switch_cpu", 1, 100.0, " %"),
        both("controller_mb", 0),
        both("switch_mb", 0),
    ]


def swept(sweep: Mapping[float, Runs]) -> str:
    """Return the title of the variant that T was swept with."""
    return VARIANTS[next(iter(sweep.values())).parameters["variant"]].title


def _sweep_table(sweep: Mapping[float, Runs]) -> Table:
    heading = [
        f"{swept(sweep)}: T (s)",
        "alarm after (s)",
        "false alarms",
        "connected/s",
        "AR (kbit/s)",
        "rejected",
        "offered/s",
        "controller's CPU",
        "switch's CPU",
        "controller's memory (MB)",
        "switch's memory (MB)",
    ]
    return Table(heading, [_sweep_row(period_s, runs) for period_s, runs in sweep.items()])


def tables(setups: SetUps) -> list[Table]:
    """Return a table for each scenario, one of the bystander's latency, and one of the sweep of T."""
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
