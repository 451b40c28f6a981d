"""The readings of a run: the controller's decisions, and counters of link, switch and servers.

A `Sample` is read several times in a detection interval: counters of bottleneck and switch, CPU time and memory of
switch and controller, memory of the slow server. A `Row` is a decision of flash-crowd control, read from the
controller's trace.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from topo.plan import rows


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """Cumulative counts of the bottleneck since its token bucket filter (tc's `tbf`) was set up."""

    sent_packets: int
    sent_bytes: int
    dropped_packets: int

    def since(self, earlier: LinkCounts) -> LinkCounts:
        """Return the difference to an earlier reading."""
        return LinkCounts(*(getattr(self, field.name) - getattr(earlier, field.name) for field in fields(LinkCounts)))

    def loss(self) -> float:
        """Return the share of the packets offered to the link that the link dropped."""
        offered = self.sent_packets + self.dropped_packets
        return self.dropped_packets / offered if offered else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A reading; all counts except memory are cumulative."""

    time_s: float
    """Seconds since the load began."""
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    switch_cpu_s: float
    switch_bytes: int
    controller_cpu_s: float
    controller_bytes: int
    slow_bytes: int
    """Memory of the slow server in bytes, as the kernel accounts it to the server's cgroup."""
    bystander_refused: int | None
    """SYNs to the bystander that the switch refused, from the controller's latest status; None if the switch counts the
    refusals of all destinations together."""
    received_packets: int | None = None
    """Packets that the switch received; None if the run did not count them (older runs, simulations)."""

    @property
    def link(self) -> LinkCounts:
        """The bottleneck's counters."""
        return LinkCounts(self.sent_packets, self.sent_bytes, self.dropped_packets)


def write_samples(path: Path, samples: Sequence[Sample]) -> None:
    """Write the readings as CSV."""
    path.write_text(
        "".join(f"{text}\n" for text in (rows.header(Sample), *(rows.line(sample, 3) for sample in samples)))
    )


def read_samples(path: Path) -> list[Sample]:
    """Read a file of `write_samples`. Files of older versions may lack the last columns; their fields then have the
    defaults."""
    return list(rows.read(Sample, path.read_text().splitlines()[1:]))


def at(samples: Sequence[Sample], time_s: float) -> Sample:
    """Return the first sample at or after a time, else the last sample. Raises ValueError if `samples` is empty."""
    if not samples:
        raise ValueError("no samples")
    return next((sample for sample in samples if sample.time_s >= time_s), samples[-1])


@dataclass(frozen=True, slots=True)
class Row:
    """A decision of flash-crowd control. Its time is in seconds: on the clock of time.time() as read from the trace,
    since the load began in a run's `Records`. Rates are in connections/s, except ``ar_bps``, the rate of the fastest
    responses (the published AR), which is in bit/s."""

    time_s: float
    ar_bps: float
    offered_per_s: float
    admitted_per_s: float
    refused_per_s: float
    alarm: bool
    limit_per_s: float
    """The limit in connections/s; NaN if no limit applies."""
    hot_spot: str
    cause: str
    servers: frozenset[str] = frozenset()
    """Servers that the verdict names; empty for older traces without this column."""
    limits: int = 0
    """Number of destinations with a limit in force; 0 for older traces without this column."""


def parse_rows(text: str) -> list[Row]:
    """Read the CSV of `sluice run`, except an incomplete last line."""
    whole = text[: text.rfind("\n") + 1]
    return [
        Row(
            time_s=float(row["unix_s"]),
            ar_bps=_number(row["ar_bps"]),
            offered_per_s=_number(row["offered_per_s"]),
            admitted_per_s=_number(row["admitted_per_s"]),
            refused_per_s=_number(row["refused_per_s"]),
            alarm=row["alarm"] == "1",
            limit_per_s=_number(row["limit_per_s"]),
            hot_spot=row["hot_spot"],
            cause=row["cause"],
            servers=frozenset(row.get("servers", "").split()),
            limits=int(row.get("limits", 0)),
        )
        for row in csv.DictReader(whole.splitlines())
    ]


def read_rows(path: Path) -> list[Row]:
    """Read a trace file; return no rows if it does not exist yet."""
    return parse_rows(path.read_text()) if path.exists() else []


def alarms(rows: Sequence[Row]) -> list[float]:
    """Return the times of the decisions at which an alarm began."""
    times: list[float] = []
    before = False
    for row in rows:
        if row.alarm and not before:
            times.append(row.time_s)
        before = row.alarm
    return times


def measured(rows: Sequence[Row]) -> list[Row]:
    """Return the decisions made at the ends of intervals.

    During its search for the hot spot the controller also decides within an interval, from the measurements of the
    previous interval; these decisions are omitted.
    """
    measurements: list[Row] = []
    for row in rows:
        if not measurements or (row.ar_bps, row.offered_per_s) != (
            measurements[-1].ar_bps,
            measurements[-1].offered_per_s,
        ):
            measurements.append(row)
    return measurements


def _number(text: str) -> float:
    return float(text) if text else math.nan
