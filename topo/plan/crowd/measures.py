"""Computation of Chen & Heidemann's figures from a run's raw records, by pure functions.

Rates, times and bytes are as measured, with time compressed by k; rates divided by k have the published scale. Unless
stated otherwise, figures apply to the window from one interval after the alarm to the end of the run. If no alarm was
raised, or the run has no flash-crowd control, the window begins one interval after the onset.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from topo.plan.crowd.network import BYSTANDER, TARGET
from topo.plan.crowd.readings import Row, Sample, alarms, at, measured
from topo.plan.outcomes import Ending, Outcome
from topo.plan.statistics import mean, percentile

LINEAR_SYNS = 5
"""Number of SYN retransmissions at constant intervals: Linux 6.5 and later repeats a SYN 1, 2, 3, 4 and 5 s after the
first; later intervals double. In earlier versions all intervals double."""

LEAST_APART_S = 0.1
"""Least seconds between two readings from which a rate is computed. After a late reading the next one follows at once;
a rate over so short a time would be inexact."""


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a run; all times in seconds since the load began."""

    period_s: float
    onset_s: float
    end_s: float
    link_bit_per_s: float
    controls: bool
    crowd: bool
    """Whether the run has a crowd. Without a crowd every alarm is false, and the onset is the time at which the load
    changes."""
    outcomes: Sequence[Outcome]
    bulk: Sequence[tuple[float, int]]
    """Bulk transfer by slots of time: beginning of the slot in seconds, and bytes received in the slot."""
    samples: Sequence[Sample]
    rows: Sequence[Row]
    slow_memory_bytes: float = math.nan
    """Memory limit of the slow server, in bytes."""

    def alarm_s(self) -> float | None:
        """Return the time of the crowd's alarm, which is the first alarm after the onset; None if the run has no
        crowd or no such alarm."""
        if not self.crowd:
            return None
        return next((moment for moment in alarms(self.rows) if moment >= self.onset_s), None)

    def false_alarms(self) -> int:
        """Return the number of alarms from the load's begin to the crowd's onset, or to the end of a run without a
        crowd."""
        until = self.onset_s if self.crowd else self.end_s
        return sum(0 <= moment < until for moment in alarms(self.rows))

    def window(self) -> tuple[float, float]:
        """Return begin and end of the window to which the figures apply."""
        alarm = self.alarm_s() if self.controls else None
        return (self.onset_s if alarm is None else alarm) + self.period_s, self.end_s

    def quiet(self) -> tuple[float, float]:
        """Return begin and end of the window before the onset, without the first interval, in which the queues fill."""
        return self.period_s, self.onset_s


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run in a window; NaN for figures that were not measured."""

    detected_after_intervals: float
    false_alarms: int
    rejected_share: float
    """Share of the requests to the target that ended without a connection, among all that ended or were connected."""
    response_loss: float
    """Share of the packets offered to the bottleneck that the bottleneck dropped."""
    ar_kbps: float
    """Mean rate of the fastest tenth of the flows (the published AR)."""
    admitted_per_s: float
    """Connections to the target that were established, per second."""
    offered_per_s: float
    """SYNs to the target per second, including repetitions."""
    bystander_latency_mean_ms: float
    bystander_latency_median_ms: float
    """Mean and median time, in milliseconds, from a finished request's due time to its last byte."""
    bystander_refused: float
    """SYNs to the bystander that the switch refused. For the window after the alarm, the count begins at the onset. NaN
    if destinations share a limit, because the switch then counts their refusals together."""
    bystander_unconnected: int
    """Requests to the bystander that ended without a connection, for any reason (patience, lost SYN-ACKs). Some end
    because the link lost a SYN: the kernel repeats it only after a second, and this second is not compressed."""
    bystander_goodput_kbps: float
    """Goodput of the bulk transfer."""
    bottleneck_used: float
    limit_mean_per_s: float
    finished_per_s: float
    """Complete answers of the target, per second."""
    goodput_kbps: float
    """Goodput of the target, complete answers only."""
    late_p99_ms: float
    """99th percentile of the delay, in milliseconds, between a request's due time and its start by the load
    generator."""
    switch_cpu: float
    controller_cpu: float
    """CPU time of switch and controller in seconds per second."""
    switch_mb: float
    controller_mb: float
    slow_memory_share: float
    """Mean share of the memory limit that the slow server used; Chen & Heidemann report 98 % (section 8.3.2)."""
    switch_packets_per_s: float
    """Highest rate at which the switch received packets between two readings."""


def figures(records: Records, window: tuple[float, float]) -> Figures:
    """Compute the figures of a window."""
    begin, end = window
    seconds = max(1e-9, end - begin)
    target = [outcome for outcome in records.outcomes if outcome.server == TARGET]
    in_window = [outcome for outcome in records.outcomes if begin <= outcome.due_s < end]
    due = [outcome for outcome in in_window if outcome.server == TARGET]
    bystander = [outcome for outcome in in_window if outcome.server == BYSTANDER]
    rejected, connected = _unconnected(due), sum(outcome.connect_s is not None for outcome in due)
    complete = [outcome for outcome in target if outcome.ending is Ending.FINISHED]
    finished = [outcome for outcome in complete if begin <= outcome.due_s + (outcome.done_s or 0) < end]
    connects = [outcome.due_s + outcome.connect_s for outcome in target if outcome.connect_s is not None]
    latencies = [1000 * (outcome.done_s or 0.0) for outcome in bystander if outcome.ending is Ending.FINISHED]
    # A decision measures the interval since the previous decision; its limit applies to the interval until the next
    # one. An interval counts if its middle is in the window, so that decisions may be some milliseconds early or late.
    decisions = measured(records.rows)
    ends = [*(row.time_s for row in decisions[1:]), records.end_s]
    observed = [row for before, row in pairwise(decisions) if begin <= (before.time_s + row.time_s) / 2 < end]
    limited = [row for row, until in zip(decisions, ends, strict=False) if begin <= (row.time_s + until) / 2 < end]
    first, last = at(records.samples, begin), at(records.samples, end)
    before_refusals = at(records.samples, min(begin, records.onset_s) if end > records.onset_s else begin)
    link = last.link.since(first.link)
    sampled = max(1e-9, last.time_s - first.time_s)
    alarm = records.alarm_s()
    return Figures(
        detected_after_intervals=math.nan if alarm is None else (alarm - records.onset_s) / records.period_s,
        false_alarms=records.false_alarms(),
        rejected_share=rejected / (rejected + connected) if rejected + connected else math.nan,
        response_loss=link.loss(),
        ar_kbps=mean([row.ar_bps for row in observed]) / 1000,
        admitted_per_s=sum(begin <= moment < end for moment in connects) / seconds,
        offered_per_s=sum(begin <= moment < end for outcome in target for moment in syn_times(outcome)) / seconds,
        bystander_latency_mean_ms=statistics.fmean(latencies) if latencies else math.nan,
        bystander_latency_median_ms=statistics.median(latencies) if latencies else math.nan,
        bystander_refused=math.nan
        if last.bystander_refused is None
        else last.bystander_refused - (before_refusals.bystander_refused or 0),
        bystander_unconnected=_unconnected(bystander),
        bystander_goodput_kbps=sum(size for moment, size in records.bulk if begin <= moment < end) * 8e-3 / seconds,
        bottleneck_used=link.sent_bytes * 8 / sampled / records.link_bit_per_s,
        limit_mean_per_s=mean([row.limit_per_s for row in limited]),
        finished_per_s=len(finished) / seconds,
        goodput_kbps=sum(outcome.size for outcome in finished) * 8e-3 / seconds,
        late_p99_ms=percentile([1000 * outcome.late_s for outcome in due], 0.99),
        switch_cpu=(last.switch_cpu_s - first.switch_cpu_s) / sampled,
        controller_cpu=(last.controller_cpu_s - first.controller_cpu_s) / sampled,
        switch_mb=last.switch_bytes / 1e6,
        controller_mb=last.controller_bytes / 1e6,
        slow_memory_share=mean([sample.slow_bytes for sample in records.samples if begin <= sample.time_s < end])
        / records.slow_memory_bytes,
        switch_packets_per_s=_busiest_per_s(
            [sample for sample in records.samples if begin <= sample.time_s <= last.time_s]
        ),
    )


def _unconnected(outcomes: Sequence[Outcome]) -> int:
    return sum(outcome.connect_s is None and outcome.ending is not Ending.PENDING for outcome in outcomes)


def _busiest_per_s(samples: Sequence[Sample]) -> float:
    rates = [
        (after.received_packets - before.received_packets) / (after.time_s - before.time_s)
        for before, after in pairwise(samples)
        if before.received_packets is not None
        and after.received_packets is not None
        and after.time_s - before.time_s >= LEAST_APART_S
    ]
    return max(rates, default=math.nan)


def syn_times(outcome: Outcome) -> list[float]:
    """Return the times of a request's SYNs: the first and the kernel's repetitions."""
    times = [outcome.due_s]
    wait = 1.0
    for number in range(1, outcome.retries + 1):
        if number > LINEAR_SYNS:
            wait *= 2
        times.append(times[-1] + wait)
    return times
