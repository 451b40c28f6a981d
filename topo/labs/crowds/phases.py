"""What the published control makes of a crowd, by when in an interval the crowd begins.

`python -m topo.labs.crowds.phases` as root.  One network-limited run of NEWS with hot-spot identification for each
phase: the first limit is what was admitted in the interval of the alarm, so one phase is no figure of the algorithm.
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
from topo.plan.crowd.measures import Records, figures
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK
from topo.plan.crowd.settings import Settings

PHASES = (0.0, 0.2, 0.4, 0.6, 0.8)
BEFORE = 4
"""Intervals before the onset: the averages follow within two."""


def row(phase: float, records: Records, k: float) -> Row:
    """Return a line of the table; rates and times in Chen & Heidemann's scale."""
    crowd, quiet = figures(records, records.window()), figures(records, records.quiet())
    limits = [one.limit_per_s for one in records.rows if not math.isnan(one.limit_per_s)]
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


def table(rows: Sequence[Row]) -> str:
    """Return the rows for a person."""
    lines = [
        "phase  alarm after  first limit  mean limit  rejected    loss  AR of quiet  link used  bystander's median"
    ]
    lines += [
        f"{one['phase']:5.1f}  {one['detected_after_intervals']:9.2f} T  {one['first_limit_per_s']:9.0f}/s"
        f"  {one['mean_limit_per_s']:8.0f}/s  {one['rejected_share']:8.0%}  {one['response_loss']:6.1%}"
        f"  {one['ar_of_quiet']:11.0%}  {one['bottleneck_used']:9.0%}  {one['latency_of_quiet']:11.2f} x quiet"
        for one in rows
    ]
    return "\n".join(lines)


def measure(output: Path, k: float, kind: str) -> list[Row]:
    """Make the runs that are not there yet and return the table."""
    rows: list[Row] = []
    for phase in PHASES:
        run = Run(NETWORK, HOT_SPOT, NETWORK.settle(replace(Settings(), k=k, before=BEFORE, onset_phase=phase)))
        directory = output / "runs" / f"phase-{phase:.1f}"
        make_if_missing(run, kind, directory, f"phase {phase:.1f}")
        rows.append(row(phase, read_records(directory), k))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    return series.main("phases", __doc__, measure, table, arguments)


if __name__ == "__main__":
    sys.exit(main())
