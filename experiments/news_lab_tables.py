"""The tables of the lab's flash crowds, beside the numbers of Chen & Heidemann."""

from __future__ import annotations

import math
from collections.abc import Mapping

from experiments.experiment import Table
from experiments.intervals import Mean
from experiments.news_lab_runs import CROWD, QUIET, Runs, SetUps
from workload.crowd.scenarios import HOT_SPOT, NETWORK, NEWS, NONE, PRODUCTION, SCENARIOS, SERVER, VARIANTS

BEFORE = "before the crowd"
WITHOUT = "no control, without the switch"
CURVES = (NONE.name, NEWS.name, HOT_SPOT.name, PRODUCTION.name)
PAPER = {
    (NETWORK.name, BEFORE): "bulk 327",
    (NETWORK.name, NONE.name): "318 / 80 answered / 22 % failed / 60 % / 133; link 100 %; bulk 80",
    (NETWORK.name, "static-30"): "Table I, 0.29 of the crowd: 70 % / no loss / AR 1.06 times before",
    (NETWORK.name, "static-40"): "Table I, 0.38 of the crowd: 57 % / no loss / AR 1.04 times before",
    (NETWORK.name, "static-60"): "Table I, 0.57 of the crowd: 33 % / 2 % / AR 0.95 times before",
    (NETWORK.name, NEWS.name): "459 / 56 / 49 % / under 3 % / 261; alarm 88 s; bulk 318",
    (SERVER.name, NONE.name): "20 % failed / no loss / 158; link 60 %",
    (SERVER.name, NEWS.name): "54 admitted / 260; alarm about 80 s",
}
PAPER_SWEEP = {
    16.0: "2-3.5 % -> 5-6 %, 530; a false alarm, 65 % discarded",
    32.0: "1.5-2 % -> 3.5-5 %, 511",
    64.0: "1-2 % -> 2-4 %, 459; best AR, as at 128 s",
    128.0: "about 1 % -> 2 %, under 400; best AR",
    256.0: "about 1 % -> 2 %, under 400; too slow",
}
PAPER_MEMORY = "3 -> 10-12"
"""MB, whatever T is (section 8.5.2)."""
PAPER_LATENCY_S = {
    BEFORE: (0.22, 0.18),
    NONE.name: (24.44, 9.53),
    NEWS.name: (7.03, 3.15),
    HOT_SPOT.name: (0.42, 0.32),
}
"""Table III: mean and median."""


def percent(mean: Mean, digits: int = 0) -> str:
    """Return a share given in percent."""
    return "-" if math.isnan(mean.value) else f"{mean.text(digits)} %"


def alarm(runs: Runs) -> str:
    """Return the seconds from the onset to the alarm, and in how many runs there was one if not in all."""
    mean, count = runs.alarm_s(), len(runs.records)
    return mean.text(0) if mean.runs in (0, count) else f"{mean.text(0)} in {mean.runs} of {count}"


def false_alarms(runs: Runs) -> int:
    """Return how many there were in all runs."""
    return sum(one.result[CROWD]["false_alarms"] for one in runs.records)


def _crowd_row(title: str, runs: Runs, paper: str, window: str = CROWD) -> list[str]:
    return [
        title,
        *(runs.figure(f"{name}_per_s", window).text(0) for name in ("offered", "admitted", "finished")),
        percent(runs.percent("rejected_share", window)),
        percent(runs.percent("response_loss", window), 1),
        runs.figure("ar_kbps", window).text(0),
        percent(runs.percent("bottleneck_used", window)),
        alarm(runs) if window == CROWD else "-",
        runs.figure("bystander_goodput_kbps", window).text(0),
        paper,
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
        "paper: offered / admitted / rejected / loss / AR",
    ]
    first = next(iter(by_variant.values()))
    rows = [
        _crowd_row(VARIANTS[name].title, runs, PAPER.get((scenario, name), "-")) for name, runs in by_variant.items()
    ]
    if without is not None:
        rows.append(_crowd_row(WITHOUT, without, "-"))
    return Table(heading, [_crowd_row(BEFORE, first, PAPER.get((scenario, BEFORE), "-"), QUIET), *rows])


def _latency_row(title: str, runs: Runs, window: str, paper: tuple[float, float]) -> list[str]:
    median = "bystander_latency_median_ms"
    times = runs.over(runs, median, window, QUIET)
    told = ["-" if math.isnan(one) else f"{one:.2f}" for one in paper]
    of_quiet = paper[1] / PAPER_LATENCY_S[BEFORE][1]
    return [
        title,
        runs.figure("bystander_latency_mean_ms", window).text(2),
        runs.figure(median, window).text(2),
        times.text(1),
        *told,
        "-" if math.isnan(of_quiet) else f"{of_quiet:.1f}",
    ]


def _latency_table(by_variant: Mapping[str, Runs], without: Runs | None) -> Table:
    first = next(iter(by_variant.values()))
    unknown = (math.nan, math.nan)
    rows = [_latency_row(BEFORE, first, QUIET, PAPER_LATENCY_S[BEFORE])]
    rows += [
        _latency_row(VARIANTS[name].title, runs, CROWD, PAPER_LATENCY_S.get(name, unknown))
        for name, runs in by_variant.items()
        if name in CURVES
    ]
    if without is not None:
        rows.append(_latency_row(WITHOUT, without, CROWD, unknown))
    return Table(
        ["bystander's web requests", "mean (s)", "median (s)", "times", "paper: mean", "median", "times"], rows
    )


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
        PAPER_SWEEP.get(period_s, "-"),
        PAPER_MEMORY,
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
        "paper: CPU, offered",
        "memory (MB)",
    ]
    return Table(heading, [_sweep_row(period_s, runs) for period_s, runs in sweep.items()])


def tables(found: SetUps) -> list[Table]:
    """Return a table a scenario, one of the bystander's latency, one of the sweep of T."""
    network, server = found.crowds[NETWORK.name], found.crowds[SERVER.name]
    made: list[Table] = []
    if network:
        made.append(_crowd_table(NETWORK.name, network, found.without))
    if server:
        made.append(_crowd_table(SERVER.name, server, None))
    if network:
        made.append(_latency_table(network, found.without))
    if found.sweep:
        made.append(_sweep_table(found.sweep))
    return made
