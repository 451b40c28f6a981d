"""Compares a replay with the live controller's decision trace (`sluice run --trace-file`)."""

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

LARGEST_RATIO_DIFFERENCE = 0.01
"""The tolerance for ratios: if two ratios differ by more, the decisions count as different."""
_ROUNDING = 2e-6
"""The largest difference between ratios that the trace's rounding explains, if both come from the same steps."""


class TraceError(Exception):
    """A trace cannot be read; the message names the line."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first decision at which a replay and the live controller diverge."""

    line: int
    """The line number in the trace."""
    server: str
    """The first server whose counts differ between replay and live controller; empty if all counts are equal."""
    live: str
    """The server's counts in the live controller's window."""
    replayed: str
    """The server's counts in the replay's window."""

    @property
    def cause(self) -> str:
        """The cause of the divergence, as part of a sentence."""
        if not self.server:
            return "from the same counts"
        return f"from other counts: of {self.server} {self.live} in the window, here {self.replayed}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison."""

    decisions: int
    """The number of live decisions that the replay also made."""
    missing: int
    """The number of live decisions that the replay did not make, because the capture has no reading at their time."""
    ratio_difference: float
    """The largest difference between a ratio in the live decisions and the same ratio in the replay."""
    count_difference: int
    """The largest difference between a live count of a server's SYNs in an interval and the replay's count. Replay and
    live controller read the switch at times that differ by microseconds."""
    first: Divergence | None = None
    """The first decision whose ratios differ from the live ratios by more than rounding; None if there is none."""

    @property
    def agrees(self) -> bool:
        """Whether decisions were compared, and no ratio differs by more than LARGEST_RATIO_DIFFERENCE."""
        return self.decisions > 0 and self.ratio_difference <= LARGEST_RATIO_DIFFERENCE

    @property
    def sentence(self) -> str:
        """The result as a sentence for users."""
        verdict = "the same decisions" if self.agrees else "OTHER DECISIONS"
        return (
            f"against the trace: {verdict}; {self.decisions} compared, {self.missing} without a reading in the"
            f" capture; ratios differ by at most {self.ratio_difference:.4f}, SYNs of an interval by"
            f" {self.count_difference}"
            + (f"; the first, in line {self.first.line}, {self.first.cause}" if self.first is not None else "")
        )


@dataclass(frozen=True, slots=True)
class Live:
    """A decision in the live controller's trace."""

    line: int
    """The line number in the trace."""
    time_s: float
    """Unix time of the decision, in seconds."""
    service: str
    period_s: float
    ratios: Mapping[str, float]
    """Ratios, by the server's name."""
    syns: Mapping[str, int]
    """SYNs of the interval, by the server's name."""
    counts: Mapping[str, str]
    """All counts of the measurement window as text, for exact comparison, by the server's name."""


def decisions(world: World, trace: str) -> list[Live]:
    """Return the decisions of a trace. Raises TraceError, also if the trace lacks a server of the configuration.

    An incomplete last line is left out.
    """
    live_decisions: list[Live] = []
    for number, text in enumerate(trace[: trace.rfind("\n") + 1].splitlines(), 1):
        try:
            decision = _live(number, json.loads(text))
        except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as error:
            raise TraceError(
                f"trace, line {number}: not a decision ({error!r}); give the file of --trace-file"
            ) from error
        service = world.plan.service(decision.service)
        missing = [] if service is None else [s.name for s in service.servers if s.name not in decision.ratios]
        if missing:
            raise TraceError(
                f"trace, line {number}: {decision.service} lacks {', '.join(missing)}, which the configuration has;"
                " give the live controller's configuration"
            )
        live_decisions.append(decision)
    if not live_decisions:
        raise TraceError("trace, line 1: it has no decisions")
    return live_decisions


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
    """Return those counts of a server that are not zero, as text."""
    counts = {**window, **(work or {})}
    return ", ".join(f"{name} {value}" for name, value in counts.items() if value) or "nothing"


def first_reading(live: Sequence[Live]) -> float:
    """Return when the live controller first read the switch (Unix time): a period before its first decision.

    The trace has no time of that reading. Each decision is some delay later than its regular time, so the result is
    computed from the decision with the smallest delay.
    """
    first = live[0]
    of_service = [
        decision for decision in live if (decision.service, decision.period_s) == (first.service, first.period_s)
    ]
    return min(decision.time_s - number * decision.period_s for number, decision in enumerate(of_service, 1))


def nearest(times: Sequence[float], time_s: float, within_s: float) -> int | None:
    """Return the index in the ascending ``times`` of the time nearest to ``time_s``; None if every time differs by
    ``within_s`` or more."""
    place = bisect_left(times, time_s)
    near = [i for i in (place - 1, place) if 0 <= i < len(times) and abs(times[i] - time_s) < within_s]
    return min(near, key=lambda i: abs(times[i] - time_s), default=None)


def compare(world: World, moments: Sequence[Moment], live: Sequence[Live]) -> Comparison:
    """Compare each live decision with the replay's decision for the same service that is nearest in time.

    A live decision without a replayed one within half a period counts as missing.
    """
    replayed: dict[str, list[tuple[float, Balanced]]] = {}
    for moment in moments:
        if isinstance(moment.event, Balanced):
            replayed.setdefault(moment.event.service.name, []).append((moment.time_s, moment.event))
    times = {name: [time for time, _ in events] for name, events in replayed.items()}
    ratio_difference, count_difference, missing, compared = 0.0, 0, 0, 0
    first: Divergence | None = None
    for recorded in live:
        near = nearest(times.get(recorded.service, ()), recorded.time_s, recorded.period_s / 2)
        if near is None:
            missing += 1
            continue
        _, event = replayed[recorded.service][near]
        names = world.names(event.service)
        compared += 1
        for number, ratio in event.decision.ratios.items():
            name = names[number]
            ratio_difference = max(ratio_difference, abs(ratio - recorded.ratios[name]))
            count_difference = max(count_difference, abs(event.decision.differences[number].syn - recorded.syns[name]))
            if first is None and abs(ratio - recorded.ratios[name]) > _ROUNDING:
                first = _divergence(names, recorded, event.decision)
    return Comparison(compared, missing, ratio_difference, count_difference, first)


def _divergence(names: Mapping[int, str], live: Live, decision: Decision) -> Divergence:
    for number, name in names.items():
        work = decision.work.get(number)
        replayed = _in_words(asdict(decision.windows[number]), work and asdict(work))
        if replayed != live.counts[name]:
            return Divergence(live.line, name, live.counts[name], replayed)
    return Divergence(live.line, "", "", "")
