"""A replay held against what the live controller wrote down (`sluice run --trace-file`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
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


def lines(trace: str) -> list[dict[str, Any]]:
    """The decisions of a trace. Raises TraceError."""
    found: list[dict[str, Any]] = []
    for number, text in enumerate(trace.splitlines(), 1):
        try:
            one = json.loads(text)
            _ = (one["time"], one["service"], one["period_s"], one["servers"])
        except (ValueError, TypeError, KeyError) as error:
            raise TraceError(f"trace, line {number}: no decision ({error!r}); give the file of --trace-file") from error
        found.append(one)
    if not found:
        raise TraceError("trace, line 1: there is no decision in it")
    return found


def first_reading(trace: str) -> float:
    """When the live controller first read the switch, since the epoch: a period before its first decision.

    A decision is written down a little after its reading; the smallest delay of all is taken for that reading's.
    """
    decisions = lines(trace)
    first = decisions[0]
    period = float(first["period_s"])
    same = [one for one in decisions if one["service"] == first["service"] and one["period_s"] == period]
    return min(float(one["time"]) - number * period for number, one in enumerate(same, 1))


def compare(world: World, moments: Sequence[Moment], trace: str) -> Comparison:
    """Hold each live decision against the replay's of the same time."""
    replayed = [(moment.time_s, moment.event) for moment in moments if isinstance(moment.event, Balanced)]
    ratio_apart, counts_apart, missing, decisions = 0.0, 0, 0, 0
    for one in lines(trace):
        near = [
            (abs(time - one["time"]), event)
            for time, event in replayed
            if event.service.name == one["service"] and abs(time - one["time"]) < one["period_s"] / 2
        ]
        if not near:
            missing += 1
            continue
        _, event = min(near, key=lambda pair: pair[0])
        names = world.names(event.service)
        decisions += 1
        for number, ratio in event.decision.ratios.items():
            server = one["servers"][names[number]]
            ratio_apart = max(ratio_apart, abs(ratio - server["ratio"]))
            counts_apart = max(counts_apart, abs(event.decision.differences[number].syn - server["interval"]["syn"]))
    return Comparison(decisions, missing, ratio_apart, counts_apart)
