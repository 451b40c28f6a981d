"""Compares a replay of flash-crowd control with the live controller's trace (``news: trace_file:``)."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .compare import TraceError, nearest
from .driver import Controlled, LiveTimes
from .replay import Moment

LARGEST_LIMIT_DIFFERENCE = 0.05
"""Limits that differ by more than this share count as another decision. They begin as a measured rate, and the two
readings differ by microseconds."""
_REQUIRED = ("unix_s", "ar_bps", "offered_per_s", "admitted_per_s", "alarm", "limit_per_s")
_OPTIONAL = ("late_unix_s", "base_unix_s")
"""Columns that traces of earlier versions lack."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The measurements and the decision at an interval's end; NaN for unknown values."""

    time_s: float
    """Unix time."""
    ar_bps: float
    offered_per_s: float
    admitted_per_s: float
    alarm: bool
    limit_per_s: float
    late_s: tuple[float, ...] = ()
    """Unix times of late readings since the previous decision."""
    bases_s: tuple[float, ...] = ()
    """Unix times of interval ends without a decision since the previous one."""


@dataclass(frozen=True, slots=True)
class NewsComparison:
    """The result of a comparison. Differences are shares of the live value, the largest of all intervals."""

    decisions: int
    """The number of live decisions at an interval's end that the replay made, too."""
    missing: int
    """The number of live decisions for which the capture has no reading."""
    differing_alarms: int
    """The number of intervals with an alarm in only one of the two."""
    differing_limits: int
    """The number of intervals with a limit in only one of the two, or with different limits."""
    ar_difference: float
    offered_difference: float
    admitted_difference: float

    @property
    def agrees(self) -> bool:
        """Whether the replay made the same decisions."""
        return self.decisions > 0 and not self.differing_alarms and not self.differing_limits

    @property
    def sentence(self) -> str:
        """The result as a sentence for users."""
        verdict = "the same decisions" if self.agrees else "OTHER DECISIONS"
        return (
            f"against the trace: {verdict}; {self.decisions} compared, {self.missing} without a reading in the"
            f" capture; alarms differ in {self.differing_alarms}, limits in {self.differing_limits}; at most"
            f" {self.ar_difference:.1%} of AR, {self.offered_difference:.1%} of the requests offered and"
            f" {self.admitted_difference:.1%} of those admitted apart"
        )


def is_news_trace(trace: str) -> bool:
    """Return whether a trace is flash-crowd control's, by its first line."""
    return trace.startswith(_REQUIRED[0] + ",")


def intervals(trace: str) -> list[Interval]:
    """Return a trace's intervals, each once. Raises TraceError.

    While it searches for the hot spot, the controller also decides within an interval, on the previous interval's
    measurements. An incomplete last line is left out.
    """
    distinct: list[Interval] = []
    for interval in _decisions(trace):
        if not distinct or not _measured_alike(interval, distinct[-1]):
            distinct.append(interval)
    return distinct


def live_times(trace: str) -> LiveTimes:
    """Return when the live controller decided, and the readings that it noted (``NewsTrace.note``). Raises
    TraceError."""
    decided = _decisions(trace)
    bases = [base_s for interval in decided for base_s in interval.bases_s]
    return LiveTimes(
        news=sorted([*bases, *(interval.time_s for interval in decided)]),
        late=sorted(late_s for interval in decided for late_s in interval.late_s),
    )


def _decisions(trace: str) -> list[Interval]:
    decided: list[Interval] = []
    for number, row in enumerate(csv.DictReader(trace[: trace.rfind("\n") + 1].splitlines()), 2):
        try:
            decided.append(_interval(row))
        except (KeyError, ValueError, TypeError) as error:
            raise TraceError(
                f"trace, line {number}: not a decision ({error!r}); give the file of news: trace_file:"
            ) from error
    if not decided:
        raise TraceError("trace, line 2: it has no decisions")
    return decided


def first_news_reading(trace: str, interval_s: float) -> float:
    """Return when the live controller first read the switch (Unix time): an interval before its first decision.

    A decision is traced a little after its reading. The smallest delay of all decisions is taken for the first one's.
    """
    return min(interval.time_s - number * interval_s for number, interval in enumerate(intervals(trace), 1))


def compare_news(moments: Sequence[Moment], trace: str, interval_s: float) -> NewsComparison:
    """Compare each live interval with the replay's at the same time."""
    replayed: list[Interval] = []
    for moment in moments:
        if isinstance(moment.event, Controlled):
            interval = _of_decision(moment.time_s, moment.event)
            if not replayed or not _measured_alike(interval, replayed[-1]):
                replayed.append(interval)
    moments_s = [interval.time_s for interval in replayed]
    live = intervals(trace)
    matches = [(interval, nearest(moments_s, interval.time_s, interval_s / 2)) for interval in live]
    pairs = [(interval, replayed[index]) for interval, index in matches if index is not None]
    return NewsComparison(
        decisions=len(pairs),
        missing=len(live) - len(pairs),
        differing_alarms=sum(a.alarm != b.alarm for a, b in pairs),
        differing_limits=sum(_difference(a.limit_per_s, b.limit_per_s) > LARGEST_LIMIT_DIFFERENCE for a, b in pairs),
        ar_difference=max((_difference(a.ar_bps, b.ar_bps) for a, b in pairs), default=0.0),
        offered_difference=max((_difference(a.offered_per_s, b.offered_per_s) for a, b in pairs), default=0.0),
        admitted_difference=max((_difference(a.admitted_per_s, b.admitted_per_s) for a, b in pairs), default=0.0),
    )


def _interval(row: Mapping[str | None, str | None]) -> Interval:
    if None in row or None in row.values():
        raise ValueError("not as many columns as the first line names")
    time, ar, offered, admitted, alarm, limit = (float(row[name] or "nan") for name in _REQUIRED)
    if not math.isfinite(time):
        raise ValueError(f"{_REQUIRED[0]} {time}")
    late_s, bases_s = (tuple(map(_finite, (row.get(name) or "").split())) for name in _OPTIONAL)
    return Interval(time, ar, offered, admitted, alarm == 1, limit, late_s, bases_s)


def _finite(text: str) -> float:
    if not math.isfinite(time_s := float(text)):
        raise ValueError(f"a reading at {text}")
    return time_s


def _of_decision(time_s: float, event: Controlled) -> Interval:
    row = event.decision.row()
    ar, offered, admitted, alarm, limit = (float(row[name]) for name in _REQUIRED[1:])
    return Interval(time_s, ar, offered, admitted, alarm == 1, limit)


def _measured_alike(first: Interval, second: Interval) -> bool:
    """Return whether two decisions are from one interval's measurements.

    Without responses AR is NaN, and so they are not: the controller then does not search for a hot spot.
    """
    return first.ar_bps == second.ar_bps and first.offered_per_s == second.offered_per_s


def _difference(live: float, replayed: float) -> float:
    """Return the difference of two values as a share of the first; infinity if only one is known."""
    if math.isnan(live) or math.isnan(replayed):
        return 0.0 if math.isnan(live) and math.isnan(replayed) else math.inf
    return abs(replayed - live) / abs(live) if live else (0.0 if not replayed else math.inf)
