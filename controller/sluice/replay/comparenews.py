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
"""The tolerance for limits, as a share of the live limit: if two limits differ by more, the decisions count as
different. A limit begins as a measured rate, and replay and live controller read the switch at times that differ by
microseconds."""
_REQUIRED = ("unix_s", "ar_bps", "offered_per_s", "admitted_per_s", "alarm", "limit_per_s")
_OPTIONAL = ("late_unix_s", "base_unix_s")
"""Columns that traces of earlier versions lack."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The measurements and the decision at an interval's end; NaN for unknown values."""

    time_s: float
    """Unix time of the interval's end, in seconds."""
    ar_bps: float
    offered_per_s: float
    admitted_per_s: float
    alarm: bool
    limit_per_s: float
    late_s: tuple[float, ...] = ()
    """Unix times of late readings since the previous decision."""
    bases_s: tuple[float, ...] = ()
    """Unix times, since the previous decision, at which intervals ended without a decision."""


@dataclass(frozen=True, slots=True)
class NewsComparison:
    """The result of a comparison. Each difference is the largest of all intervals, as a share of the live value."""

    decisions: int
    """The number of live decisions at an interval's end that the replay also made."""
    missing: int
    """The number of live decisions that the replay did not make, because the capture has no reading at their time."""
    differing_alarms: int
    """The number of intervals with an alarm in either the replay or the live trace, but not in both."""
    differing_limits: int
    """The number of intervals in which only the replay or only the live trace has a limit, or the limits differ by more
    than LARGEST_LIMIT_DIFFERENCE."""
    ar_difference: float
    offered_difference: float
    admitted_difference: float

    @property
    def agrees(self) -> bool:
        """Whether decisions were compared, and replay and live trace have the same alarms and the same limits."""
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
    """Return whether a trace, by its first line, is one of flash-crowd control."""
    return trace.startswith(_REQUIRED[0] + ",")


def intervals(trace: str) -> list[Interval]:
    """Return a trace's intervals, each once. Raises TraceError.

    While the controller searches for the hot spot, it also decides within an interval, with the previous interval's
    measurements; such decisions are left out. An incomplete last line is left out as well.
    """
    distinct: list[Interval] = []
    for interval in _decisions(trace):
        if not distinct or not _measured_alike(interval, distinct[-1]):
            distinct.append(interval)
    return distinct


def live_times(trace: str) -> LiveTimes:
    """Return when the live controller decided, when intervals ended without a decision, and when late readings ended.
    Raises TraceError."""
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

    The trace has no time of that reading. Each decision is some delay later than its regular time, so the result is
    computed from the decision with the smallest delay.
    """
    return min(interval.time_s - number * interval_s for number, interval in enumerate(intervals(trace), 1))


def compare_news(moments: Sequence[Moment], trace: str, interval_s: float) -> NewsComparison:
    """Compare each live interval with the replay's interval that ends nearest to it.

    A live interval without a replayed one that ends within half of ``interval_s`` counts as missing.
    """
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
    """Return whether two decisions use the measurements of the same interval.

    If AR (the mean rate of the fastest responses) is unknown, it is NaN, and the result is False. Decisions within an
    interval are not expected then, because they require an alarm and many sampled packets.
    """
    return first.ar_bps == second.ar_bps and first.offered_per_s == second.offered_per_s


def _difference(live: float, replayed: float) -> float:
    """Return the difference of two values as a share of the live one. The result is 0 for equal or two unknown values,
    and infinity if only one of the values is known, or only the live one is 0."""
    if math.isnan(live) or math.isnan(replayed):
        return 0.0 if math.isnan(live) and math.isnan(replayed) else math.inf
    return abs(replayed - live) / abs(live) if live else (0.0 if not replayed else math.inf)
