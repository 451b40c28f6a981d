"""Series of network-limited runs of NEWS with hot-spot identification, each series a table: `overhead` and `phases`.

`python -m topo.labs.crowds.series overhead` as root: the cost of flash-crowd control in CPU and memory of switch and
controller, for T = 16 to 256 s (Table II).  Time is compressed by k, so both the load and the number of detections per
second are k times Chen & Heidemann's.

`python -m topo.labs.crowds.series phases` as root: results of the published control by the phase of the onset, i.e. the
time in an interval at which the crowd begins. The first limit is the rate admitted in the interval of the alarm, so a
single phase does not characterise the algorithm.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from topo.labs.crowds.programme import COMPRESSION
from topo.labs.crowds.run import Run, conditions, is_done, make_run, read_records
from topo.plan.crowd.measures import Figures, Records, figures
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, Settings
from topo.results import results_directory
from topo.testbed import REPOSITORY
from topo.testbed.interrupts import run_command
from topo.testbed.nodes import switch_kind

PERIODS_S = (16.0, 32.0, 64.0, 128.0, 256.0)
BEFORE_S, AFTER_S = 20.0, 40.0
"""Least seconds (after compression) before and after the onset in runs that measure the overhead."""
PHASES = (0.0, 0.2, 0.4, 0.6, 0.8)
PHASES_BEFORE = 4
"""Intervals before the onset; the controller's averages settle within two intervals."""

Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Series:
    """A series of runs. ``runs`` yields, for a compression k, each run's directory, title, settings, and the function
    that computes the run's row of the table."""

    runs: Callable[[float], Iterator[tuple[str, str, Settings, Callable[[Records], Row]]]]
    table: Callable[[Sequence[Row]], str]
    """Formats the rows as text."""


# -- overhead of the control


def settings_for(period_s: float, k: float) -> Settings:
    """Return the settings of a run with detection interval ``period_s``."""
    interval = period_s / k
    before = math.ceil(BEFORE_S / interval) + 1  # the first interval is not evaluated
    return replace(Settings(), k=k, period_s=period_s, before=before, after=math.ceil(AFTER_S / interval) + 2)


def overhead_row(period_s: float, before: Figures, during: Figures) -> Row:
    """Return the row of one detection interval T: CPU in seconds per second, memory in MB, and requests per second of
    the compressed lab run."""
    costs = {
        f"{process}_{unit}_{when}": round(getattr(figures, f"{process}_{unit}"), digits)
        for unit, digits in (("cpu", 4), ("mb", 1))
        for process in ("controller", "switch")
        for when, figures in (("before", before), ("during", during))
    }
    return {"period_s": period_s, **costs, "offered_per_s": round(during.offered_per_s, 1)}


def overhead_table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    lines = ["    T    controller CPU      switch CPU        controller MB  switch MB      offered"]
    lines += [
        f"{row['period_s']:4.0f} s  {row['controller_cpu_before']:5.1%} -> {row['controller_cpu_during']:5.1%}  "
        f"{row['switch_cpu_before']:5.1%} -> {row['switch_cpu_during']:5.1%}  "
        f"{row['controller_mb_before']:4.0f} -> {row['controller_mb_during']:3.0f}  "
        f"{row['switch_mb_before']:4.0f} -> {row['switch_mb_during']:3.0f}  {row['offered_per_s']:6.0f}/s"
        for row in rows
    ]
    return "\n".join(lines)


def _overhead(k: float) -> Iterator[tuple[str, str, Settings, Callable[[Records], Row]]]:
    for period_s in PERIODS_S:

        def row(records: Records, period_s: float = period_s) -> Row:
            return overhead_row(period_s, figures(records, records.quiet()), figures(records, records.window()))

        yield f"T{period_s:.0f}", f"T = {period_s:.0f} s", settings_for(period_s, k), row


# -- by the phase of the onset


def phase_row(phase: float, records: Records, k: float) -> Row:
    """Return the row of one phase. Limits are divided by the compression ``k``, which gives them the scale of Chen &
    Heidemann's experiments."""
    crowd, quiet = figures(records, records.window()), figures(records, records.quiet())
    limits = [row.limit_per_s for row in records.rows if not math.isnan(row.limit_per_s)]
    return {
        "phase": phase,
        "detected_after_intervals": round(crowd.detected_after_intervals, 3),
        "first_limit_per_s": round(limits[0] / k, 1) if limits else math.nan,
        "mean_limit_per_s": round(crowd.limit_mean_per_s / k, 1),
        "rejected_share": round(crowd.rejected_share, 4),
        "response_loss": round(crowd.response_loss, 4),
        "ar_of_quiet": round(crowd.ar_kbps / quiet.ar_kbps, 3),
        "bottleneck_used": round(crowd.bottleneck_used, 3),
        "latency_of_quiet": round(crowd.bystander_latency_median_ms / quiet.bystander_latency_median_ms, 2),
    }


def phase_table(rows: Sequence[Row]) -> str:
    """Return the rows as text."""
    lines = [
        "phase  alarm after  first limit  mean limit  rejected    loss  AR of quiet  link used  bystander's median"
    ]
    lines += [
        f"{row['phase']:5.1f}  {row['detected_after_intervals']:9.2f} T  {row['first_limit_per_s']:9.0f}/s"
        f"  {row['mean_limit_per_s']:8.0f}/s  {row['rejected_share']:8.0%}  {row['response_loss']:6.1%}"
        f"  {row['ar_of_quiet']:11.0%}  {row['bottleneck_used']:9.0%}  {row['latency_of_quiet']:11.2f} x quiet"
        for row in rows
    ]
    return "\n".join(lines)


def _phases(k: float) -> Iterator[tuple[str, str, Settings, Callable[[Records], Row]]]:
    for phase in PHASES:
        settings = replace(Settings(), k=k, before=PHASES_BEFORE, onset_phase=phase)
        yield f"phase-{phase:.1f}", f"phase {phase:.1f}", settings, lambda records, at=phase: phase_row(at, records, k)


SERIES = {"overhead": Series(_overhead, overhead_table), "phases": Series(_phases, phase_table)}


# -- the command


def make_if_missing(run: Run, kind: str, directory: Path, title: str) -> None:
    """Make a run unless its directory contains complete records."""
    if not is_done(run, kind, directory):
        print(f"{title}: {run.settings.seconds / run.settings.k:.0f} s", flush=True)
        make_run(run, kind, directory, lambda left: None)
    print(f"{title}: {conditions(directory)}", flush=True)


def measure(series: Series, output: Path, kind: str) -> list[Row]:
    """Make all runs that have no complete records, and return the rows of the table."""
    rows: list[Row] = []
    for name, title, settings, row in series.runs(COMPRESSION[kind]):
        directory = output / "runs" / name
        make_if_missing(Run(NETWORK, HOT_SPOT, NETWORK.settle(settings)), kind, directory, title)
        rows.append(row(read_records(directory)))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.labs.crowds.series", description=__doc__)
    parser.add_argument("series", choices=SERIES)
    parser.add_argument("--output", type=Path, help="directory of the results (default: results/SERIES, bmv2: -bmv2)")
    options = parser.parse_args(arguments)
    name, series = options.series, SERIES[options.series]

    def work() -> int:
        kind = switch_kind()
        output = options.output or results_directory(name, kind)
        output.mkdir(parents=True, exist_ok=True)
        rows = measure(series, output, kind)
        finite = [{key: None if math.isnan(value) else value for key, value in row.items()} for row in rows]
        (output / f"{name}.json").write_text(json.dumps(finite, indent=2) + "\n")
        print(series.table(rows))
        return 0

    return run_command(name, work, options.output or REPOSITORY / "results", remaining="complete runs are kept")


if __name__ == "__main__":
    sys.exit(main())
