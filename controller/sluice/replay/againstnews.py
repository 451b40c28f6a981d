"""A replay of flash-crowd control held against what the live controller wrote down (``news: trace_file:``)."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .against import TraceError, nearest
from .driver import Controlled, LiveTimes
from .replay import Moment

LIMIT_APART = 0.05
"""Limits further apart than this share are another decision: they begin as a measured rate, and a reading is not at the
same microsecond."""
_NEEDED = ("unix_s", "ar_bps", "offered_per_s", "admitted_per_s", "alarm", "limit_per_s")
_NOTED = ("late_unix_s", "base_unix_s")
"""Traces of earlier versions are without."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What an interval's end showed and led to; NaN for what there is not."""

    time_s: float
    """Since the epoch."""
    ar_bps: float
    offered_per_s: float
    admitted_per_s: float
    alarm: bool
    limit_per_s: float
    late_s: tuple[float, ...] = ()
    """Late readings since the decision before, since the epoch."""
    bases_s: tuple[float, ...] = ()
    """Ends of intervals without a decision since the one before, since the epoch."""


@dataclass(frozen=True, slots=True)
class NewsComparison:
    """What came of it. Differences are shares of the live figure, the largest of all intervals."""

    decisions: int
    """Live decisions at an interval's end that the replay made too."""
    missing: int
    """Live decisions for which the capture has no reading."""
    alarms_apart: int
    """Intervals with an alarm here and none there."""
    limits_apart: int
    """Intervals with a limit here and none there, or with another one."""
    ar_apart: float
    offered_apart: float
    admitted_apart: float

    @property
    def same(self) -> bool:
        """Whether the same was decided."""
        return self.decisions > 0 and not self.alarms_apart and not self.limits_apart

    @property
    def sentence(self) -> str:
        """For people."""
        verdict = "the same decisions" if self.same else "OTHER DECISIONS"
        return (
            f"against the trace: {verdict}; {self.decisions} compared, {self.missing} without a reading in the"
            f" capture; alarms differ in {self.alarms_apart}, limits in {self.limits_apart}; at most"
            f" {self.ar_apart:.1%} of AR, {self.offered_apart:.1%} of the requests offered and"
            f" {self.admitted_apart:.1%} of those admitted apart"
        )


def is_news_trace(trace: str) -> bool:
    """Whether it is flash-crowd control's, by its first line."""
    return trace.startswith(_NEEDED[0] + ",")


def intervals(trace: str) -> list[Interval]:
    """What the trace has of whole intervals. Raises TraceError.

    While it looks for the hot spot the controller also decides in between, from the interval before; a last line that
    was still being written is left out.
    """
    found: list[Interval] = []
    for one in _decisions(trace):
        if not found or not _measured_alike(one, found[-1]):
            found.append(one)
    return found


def live_times(trace: str) -> LiveTimes:
    """When the live controller decided, and which readings it noted (``NewsTrace.note``). Raises TraceError."""
    found = _decisions(trace)
    bases = [base_s for one in found for base_s in one.bases_s]
    return LiveTimes(
        news=sorted([*bases, *(one.time_s for one in found)]),
        late=sorted(late_s for one in found for late_s in one.late_s),
    )


def _decisions(trace: str) -> list[Interval]:
    found: list[Interval] = []
    for number, row in enumerate(csv.DictReader(trace[: trace.rfind("\n") + 1].splitlines()), 2):
        try:
            found.append(_interval(row))
        except (KeyError, ValueError, TypeError) as error:
            raise TraceError(f"trace, line {number}: no decision ({error!r}); give news: trace_file:") from error
    if not found:
        raise TraceError("trace, line 2: there is no decision in it")
    return found


def first_news_reading(trace: str, interval_s: float) -> float:
    """When the live controller first read the switch, since the epoch: an interval before its first decision.

    A decision is written down a little after its reading; the smallest delay of all is taken for that reading's.
    """
    return min(one.time_s - number * interval_s for number, one in enumerate(intervals(trace), 1))


def compare_news(moments: Sequence[Moment], trace: str, interval_s: float) -> NewsComparison:
    """Hold each live interval against the replay's of the same time."""
    replayed: list[Interval] = []
    for moment in moments:
        if isinstance(moment.event, Controlled):
            one = _of_decision(moment.time_s, moment.event)
            if not replayed or not _measured_alike(one, replayed[-1]):
                replayed.append(one)
    moments_s = [one.time_s for one in replayed]
    live = intervals(trace)
    found = [(one, nearest(moments_s, one.time_s, interval_s / 2)) for one in live]
    pairs = [(one, replayed[near]) for one, near in found if near is not None]
    return NewsComparison(
        decisions=len(pairs),
        missing=len(live) - len(pairs),
        alarms_apart=sum(one.alarm != other.alarm for one, other in pairs),
        limits_apart=sum(_apart(one.limit_per_s, other.limit_per_s) > LIMIT_APART for one, other in pairs),
        ar_apart=max((_apart(one.ar_bps, other.ar_bps) for one, other in pairs), default=0.0),
        offered_apart=max((_apart(one.offered_per_s, other.offered_per_s) for one, other in pairs), default=0.0),
        admitted_apart=max((_apart(one.admitted_per_s, other.admitted_per_s) for one, other in pairs), default=0.0),
    )


def _interval(row: Mapping[str | None, str | None]) -> Interval:
    if None in row or None in row.values():
        raise ValueError("not as many columns as the first line names")
    time, ar, offered, admitted, alarm, limit = (float(row[name] or "nan") for name in _NEEDED)
    if not math.isfinite(time):
        raise ValueError(f"{_NEEDED[0]} {time}")
    late_s, bases_s = (tuple(map(_finite, (row.get(name) or "").split())) for name in _NOTED)
    return Interval(time, ar, offered, admitted, alarm == 1, limit, late_s, bases_s)


def _finite(text: str) -> float:
    if not math.isfinite(time_s := float(text)):
        raise ValueError(f"a reading at {text}")
    return time_s


def _of_decision(time_s: float, event: Controlled) -> Interval:
    row = event.decision.row()
    ar, offered, admitted, alarm, limit = (float(row[name]) for name in _NEEDED[1:])
    return Interval(time_s, ar, offered, admitted, alarm == 1, limit)


def _measured_alike(one: Interval, other: Interval) -> bool:
    """Whether both are of one interval. Without responses they are not taken for that: nothing is looked for then."""
    return one.ar_bps == other.ar_bps and one.offered_per_s == other.offered_per_s


def _apart(live: float, replayed: float) -> float:
    """How far apart two figures are, in shares of the first; infinite if only one is there."""
    if math.isnan(live) or math.isnan(replayed):
        return 0.0 if math.isnan(live) and math.isnan(replayed) else math.inf
    return abs(replayed - live) / abs(live) if live else (0.0 if not replayed else math.inf)
