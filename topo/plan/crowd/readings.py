"""What a run of a crowd is judged by: the controller's decisions, and readings of link, switch and servers.

A `Sample` is read every second: the bottleneck's and the switch's counts, CPU and memory of switch and controller,
memory of the slow server. A `Row` is a decision of flash-crowd control, of the controller's trace.
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
    """Cumulative, since the filter was set."""

    sent_packets: int
    sent_bytes: int
    dropped_packets: int

    def since(self, earlier: LinkCounts) -> LinkCounts:
        """Return what was counted since an earlier moment."""
        return LinkCounts(*(getattr(self, field.name) - getattr(earlier, field.name) for field in fields(LinkCounts)))

    def loss(self) -> float:
        """Part of the packets offered to the link that it dropped."""
        offered = self.sent_packets + self.dropped_packets
        return self.dropped_packets / offered if offered else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading; everything but memory is cumulative."""

    time_s: float
    """Since the load began."""
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    switch_cpu_s: float
    switch_bytes: int
    controller_cpu_s: float
    controller_bytes: int
    slow_bytes: int
    """What the slow server's cgroup is charged."""
    bystander_refused: int | None
    """SYNs to the bystander that the switch refused, by the controller's latest status; None where it counts those
    of all destinations together."""
    received_packets: int | None = None
    """That came to the switch; None where nobody counted them (older runs, simulated ones)."""

    @property
    def link(self) -> LinkCounts:
        """The bottleneck's counts."""
        return LinkCounts(self.sent_packets, self.sent_bytes, self.dropped_packets)


def write_samples(path: Path, samples: Sequence[Sample]) -> None:
    """Write the readings."""
    path.write_text(
        "".join(f"{text}\n" for text in (rows.header(Sample), *(rows.line(sample, 3) for sample in samples)))
    )


def read_samples(path: Path) -> list[Sample]:
    """Read what `write_samples` wrote, or an older program without the last columns."""
    return list(rows.read(Sample, path.read_text().splitlines()[1:]))


def at(samples: Sequence[Sample], time_s: float) -> Sample:
    """Return the first sample at or after a time, or the last one; ValueError if there is none."""
    if not samples:
        raise ValueError("no samples")
    return next((sample for sample in samples if sample.time_s >= time_s), samples[-1])


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


def _number(text: str) -> float:
    return float(text) if text else math.nan
