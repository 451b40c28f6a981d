"""What flash-crowd control costs: CPU and memory of the switch and the controller, for T = 16 to 256 s (Table II).

`python -m topo.labs.crowds.overhead` as root.  One short network-limited run with hot-spot identification for each T.
Time is compressed by k, so both the load and the number of detections per second are k times Chen & Heidemann's.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from topo.labs.crowds import series
from topo.labs.crowds.records import read_records
from topo.labs.crowds.run import Run
from topo.labs.crowds.series import Row, make_if_missing
from topo.plan.crowd.measures import Figures, figures
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK
from topo.plan.crowd.settings import Settings

PERIODS_S = (16.0, 32.0, 64.0, 128.0, 256.0)
BEFORE_S, AFTER_S = 20.0, 40.0
"""At least so long, as it is measured (compressed)."""


def settings_for(period_s: float, k: float) -> Settings:
    """Return the settings of a run with a T."""
    interval = period_s / k
    before = math.ceil(BEFORE_S / interval) + 1  # the first interval is left out
    return replace(Settings(), k=k, period_s=period_s, before=before, after=math.ceil(AFTER_S / interval) + 2)


def row(period_s: float, before: Figures, during: Figures) -> Row:
    """Return a line of the table; CPU in seconds per second, memory in MB, requests as measured."""
    return {
        "period_s": period_s,
        "controller_cpu_before": round(before.controller_cpu, 4),
        "controller_cpu_during": round(during.controller_cpu, 4),
        "switch_cpu_before": round(before.switch_cpu, 4),
        "switch_cpu_during": round(during.switch_cpu, 4),
        "controller_mb_before": round(before.controller_mb, 1),
        "controller_mb_during": round(during.controller_mb, 1),
        "switch_mb_before": round(before.switch_mb, 1),
        "switch_mb_during": round(during.switch_mb, 1),
        "offered_per_s": round(during.offered_per_s, 1),
    }


def table(rows: Sequence[Row]) -> str:
    """Return the rows for a person."""
    lines = ["    T    controller CPU      switch CPU        controller MB  switch MB      offered"]
    lines += [
        f"{one['period_s']:4.0f} s  {one['controller_cpu_before']:5.1%} -> {one['controller_cpu_during']:5.1%}  "
        f"{one['switch_cpu_before']:5.1%} -> {one['switch_cpu_during']:5.1%}  "
        f"{one['controller_mb_before']:4.0f} -> {one['controller_mb_during']:3.0f}  "
        f"{one['switch_mb_before']:4.0f} -> {one['switch_mb_during']:3.0f}  {one['offered_per_s']:6.0f}/s"
        for one in rows
    ]
    return "\n".join(lines)


def measure(output: Path, k: float, kind: str) -> list[Row]:
    """Make the runs that are not there yet and return the table."""
    rows: list[Row] = []
    for period_s in PERIODS_S:
        run = Run(NETWORK, HOT_SPOT, NETWORK.settle(settings_for(period_s, k)))
        directory = output / "runs" / f"T{period_s:.0f}"
        make_if_missing(run, kind, directory, f"T = {period_s:.0f} s")
        records = read_records(directory)
        rows.append(row(period_s, figures(records, records.quiet()), figures(records, records.window())))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    return series.main("overhead", __doc__, measure, table, arguments)


if __name__ == "__main__":
    sys.exit(main())
