"""The controller's trace of flash-crowd control, as a run keeps it."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One decision; time in seconds on time.time(), rates in bit/s and connections/s."""

    time_s: float
    ar_bps: float
    offered_per_s: float
    admitted_per_s: float
    refused_per_s: float
    alarm: bool
    limit_per_s: float
    """NaN while nothing is limited."""
    hot_spot: str
    cause: str
    servers: frozenset[str] = frozenset()
    """Those that the verdict names; of traces from before that was noted, none."""
    limits: int = 0
    """How many there are; of traces from before that was noted, 0."""


def parse_rows(text: str) -> list[Row]:
    """Read the CSV of `sluice run`; a last line that is still being written is left out."""
    whole = text[: text.rfind("\n") + 1]
    return [
        Row(
            time_s=float(one["unix_s"]),
            ar_bps=_number(one["ar_bps"]),
            offered_per_s=_number(one["offered_per_s"]),
            admitted_per_s=_number(one["admitted_per_s"]),
            refused_per_s=_number(one["refused_per_s"]),
            alarm=one["alarm"] == "1",
            limit_per_s=_number(one["limit_per_s"]),
            hot_spot=one["hot_spot"],
            cause=one["cause"],
            servers=frozenset(one.get("servers", "").split()),
            limits=int(one.get("limits", 0)),
        )
        for one in csv.DictReader(whole.splitlines())
    ]


def read_rows(path: Path) -> list[Row]:
    """Read a trace; empty if there is none yet."""
    return parse_rows(path.read_text()) if path.exists() else []


def alarms(rows: Sequence[Row]) -> list[float]:
    """Return when alarms were set."""
    found: list[float] = []
    before = False
    for row in rows:
        if row.alarm and not before:
            found.append(row.time_s)
        before = row.alarm
    return found


def measured(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of whole intervals: while it looks for the hot spot, the controller also decides in between,
    from the interval before."""
    found: list[Row] = []
    for row in rows:
        if not found or (row.ar_bps, row.offered_per_s) != (found[-1].ar_bps, found[-1].offered_per_s):
            found.append(row)
    return found


def mean(values: Sequence[float]) -> float:
    """Return the mean of those that are numbers; NaN if there is none."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _number(text: str) -> float:
    return float(text) if text else math.nan
