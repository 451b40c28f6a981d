"""A replay held against what the live controller wrote down (`sluice run --trace-file`)."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sluice.balance import Decision
from sluice.loops.world import World

from .driver import Balanced
from .replay import Moment

RATIO_APART = 0.01
"""Ratios further apart than this are another decision."""
_ROUNDED = 2e-6
"""Ratios in a trace are, and so those that came of the same steps are no further apart."""


class TraceError(Exception):
    """A trace that cannot be read; the text names the line."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Where a replay and what was live part."""

    line: int
    """Of the trace."""
    server: str
    """The first that either was decided from other counts of; empty: both had the same of all."""
    live: str
    """What the live controller had seen of it in its window."""
    here: str
    """What the replay had."""

    @property
    def cause(self) -> str:
        """For people."""
        if not self.server:
            return "from the same counts"
        return f"from other counts: of {self.server} {self.live} in the window, here {self.here}"


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
    first: Apart | None = None
    """The first decision with ratios that are not exactly the live ones: those before it were the same step by step."""

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
            + (f"; the first, in line {self.first.line}, {self.first.cause}" if self.first is not None else "")
        )


@dataclass(frozen=True, slots=True)
class Live:
    """A decision as the live controller wrote it down."""

    line: int
    """Of the trace."""
    time_s: float
    """Since the epoch."""
    service: str
    period_s: float
    ratios: Mapping[str, float]
    """By server."""
    syns: Mapping[str, int]
    """By server: those of the interval."""
    seen: Mapping[str, str]
    """By server: all that was seen of it in the window, in words."""


def decisions(world: World, trace: str) -> list[Live]:
    """Those of a trace. Raises TraceError, also for one without a server that the service has here.

    A last line that was still being written is left out.
    """
    found: list[Live] = []
    for number, text in enumerate(trace[: trace.rfind("\n") + 1].splitlines(), 1):
        try:
            one = _live(number, json.loads(text))
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


def _live(number: int, line: Any) -> Live:
    servers = line["servers"]
    time_s, period_s = float(line["time"]), float(line["period_s"])
    if not math.isfinite(time_s) or not period_s > 0:
        raise ValueError(f"time {time_s}, period {period_s}")
    return Live(
        number,
        time_s,
        str(line["service"]),
        period_s,
        {name: float(server["ratio"]) for name, server in servers.items()},
        {name: int(server["interval"]["syn"]) for name, server in servers.items()},
        {name: _in_words(server["window"], server["work"]) for name, server in servers.items()},
    )


def _in_words(window: Mapping[str, int], work: Mapping[str, Any] | None) -> str:
    """What a decision knows of a server, everything that there was any of."""
    known = {**window, **(work or {})}
    return ", ".join(f"{name} {value}" for name, value in known.items() if value) or "nothing"


def first_reading(live: Sequence[Live]) -> float:
    """When the live controller first read the switch, since the epoch: a period before its first decision.

    A decision is written down a little after its reading; the smallest delay of all is taken for that reading's.
    """
    first = live[0]
    same = [one for one in live if (one.service, one.period_s) == (first.service, first.period_s)]
    return min(one.time_s - number * one.period_s for number, one in enumerate(same, 1))


def nearest(times: Sequence[float], time_s: float, within_s: float) -> int | None:
    """Which of several times, in order, is nearest to one; None if it is not less than ``within_s`` away."""
    place = bisect_left(times, time_s)
    near = [i for i in (place - 1, place) if 0 <= i < len(times) and abs(times[i] - time_s) < within_s]
    return min(near, key=lambda i: abs(times[i] - time_s), default=None)


def compare(world: World, moments: Sequence[Moment], live: Sequence[Live]) -> Comparison:
    """Hold each live decision against the replay's of the same time."""
    replayed: dict[str, list[tuple[float, Balanced]]] = {}
    for moment in moments:
        if isinstance(moment.event, Balanced):
            replayed.setdefault(moment.event.service.name, []).append((moment.time_s, moment.event))
    times = {name: [time for time, _ in events] for name, events in replayed.items()}
    ratio_apart, counts_apart, missing, compared = 0.0, 0, 0, 0
    first: Apart | None = None
    for one in live:
        near = nearest(times.get(one.service, ()), one.time_s, one.period_s / 2)
        if near is None:
            missing += 1
            continue
        _, event = replayed[one.service][near]
        names = world.names(event.service)
        compared += 1
        for number, ratio in event.decision.ratios.items():
            name = names[number]
            ratio_apart = max(ratio_apart, abs(ratio - one.ratios[name]))
            counts_apart = max(counts_apart, abs(event.decision.differences[number].syn - one.syns[name]))
            if first is None and abs(ratio - one.ratios[name]) > _ROUNDED:
                first = _apart(names, one, event.decision)
    return Comparison(compared, missing, ratio_apart, counts_apart, first)


def _apart(names: Mapping[int, str], live: Live, decision: Decision) -> Apart:
    for number, name in names.items():
        work = decision.work.get(number)
        here = _in_words(asdict(decision.windows[number]), work and asdict(work))
        if here != live.seen[name]:
            return Apart(live.line, name, live.seen[name], here)
    return Apart(live.line, "", "", "")
