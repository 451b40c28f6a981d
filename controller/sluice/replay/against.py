"""A replay held against what the live controller wrote down (`sluice run --trace-file`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.loops.world import World

from .driver import Balanced
from .replay import Moment

RATIO_APART = 0.01
"""Ratios further apart than this are another decision."""


class TraceError(Exception):
    """A trace that cannot be read; the text names the line."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it."""

    decisions: int
    """Live decisions that the replay made too."""
    missing: int
    """Live decisions for which the capture has no reading."""
    ratio_apart: float
    """The largest difference of a ratio."""
    counts_apart: int
    """The largest difference of a server's SYNs in an interval: a reading is not at the same microsecond."""

    @property
    def same(self) -> bool:
        """Whether the same was decided."""
        return self.decisions > 0 and self.ratio_apart <= RATIO_APART

    @property
    def sentence(self) -> str:
        """For people."""
        verdict = "the same decisions" if self.same else "OTHER DECISIONS"
        return (
            f"against the trace: {verdict}; {self.decisions} compared, {self.missing} without a reading in the"
            f" capture; ratios differ by at most {self.ratio_apart:.4f}, SYNs of an interval by {self.counts_apart}"
        )


@dataclass(frozen=True, slots=True)
class Live:
    """A decision as the live controller wrote it down."""

    time_s: float
    """Since the epoch."""
    service: str
    period_s: float
    ratios: Mapping[str, float]
    """By server."""
    syns: Mapping[str, int]
    """By server: those of the interval."""


def decisions(world: World, trace: str) -> list[Live]:
    """Those of a trace. Raises TraceError, also for one without a server that the service has here.

    A last line that was still being written is left out.
    """
    found: list[Live] = []
    for number, text in enumerate(trace[: trace.rfind("\n") + 1].splitlines(), 1):
        try:
            one = _live(json.loads(text))
        except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as error:
            raise TraceError(f"trace, line {number}: no decision ({error!r}); give the file of --trace-file") from error
        service = world.plan.service(one.service)
        absent = [] if service is None else [s.name for s in service.servers if s.name not in one.ratios]
        if absent:
            raise TraceError(
                f"trace, line {number}: {one.service} is without {', '.join(absent)}, which the configuration has;"
                " give the live controller's configuration"
            )
        found.append(one)
    if not found:
        raise TraceError("trace, line 1: there is no decision in it")
    return found


def _live(line: Any) -> Live:
    servers = line["servers"]
    time_s, period_s = float(line["time"]), float(line["period_s"])
    if not math.isfinite(time_s) or not period_s > 0:
        raise ValueError(f"time {time_s}, period {period_s}")
    return Live(
        time_s,
        str(line["service"]),
        period_s,
        {name: float(server["ratio"]) for name, server in servers.items()},
        {name: int(server["interval"]["syn"]) for name, server in servers.items()},
    )


def first_reading(live: Sequence[Live]) -> float:
    """When the live controller first read the switch, since the epoch: a period before its first decision.

    A decision is written down a little after its reading; the smallest delay of all is taken for that reading's.
    """
    first = live[0]
    same = [one for one in live if (one.service, one.period_s) == (first.service, first.period_s)]
    return min(one.time_s - number * one.period_s for number, one in enumerate(same, 1))


def compare(world: World, moments: Sequence[Moment], live: Sequence[Live]) -> Comparison:
    """Hold each live decision against the replay's of the same time."""
    replayed = [(moment.time_s, moment.event) for moment in moments if isinstance(moment.event, Balanced)]
    ratio_apart, counts_apart, missing, compared = 0.0, 0, 0, 0
    for one in live:
        near = [
            (abs(time - one.time_s), event)
            for time, event in replayed
            if event.service.name == one.service and abs(time - one.time_s) < one.period_s / 2
        ]
        if not near:
            missing += 1
            continue
        _, event = min(near, key=lambda pair: pair[0])
        names = world.names(event.service)
        compared += 1
        for number, ratio in event.decision.ratios.items():
            name = names[number]
            ratio_apart = max(ratio_apart, abs(ratio - one.ratios[name]))
            counts_apart = max(counts_apart, abs(event.decision.differences[number].syn - one.syns[name]))
    return Comparison(compared, missing, ratio_apart, counts_apart)
