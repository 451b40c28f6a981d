"""Labelled runs: a service with four servers and at most two failures, and the correct verdict on the cause.

A run's label determines the verdict that the controller should return (`sluice.news.verdict`). `sim/causes.py`
simulates these runs, `topo/labs/causes.py` makes them in the lab.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sluice.news import Cause

from topo.plan.synthesis import Crowd

SERVICE, SERVERS = "web", 4
QUIET_PER_S, CROWD_PER_S, SERVER_CROWD_PER_S = 40.0, 200.0, 120.0
"""Requests per second without a crowd, during a crowd that fills the link, and during a crowd that overloads the
servers. The latter crowd is too small to fill the link."""
SPOOFED_PER_S = 500.0
LINK_BIT_PER_S, QUEUE_BYTES = 4e6, 50_000.0
"""Rate and queue of the link in Chen & Heidemann's Figure 10, which carries the answers to some 135 requests per
second."""
ROUND_TRIP_S = 0.04, 0.2
LOSS = 0.05
"""Share of the packets towards the clients that a lossy link drops."""
HALF_OPEN = 256
"""Largest number of half-open connections of a server that uses no SYN cookies."""
TURN_S, SLOW_TURN_S = 8e-3, 80e-3
"""Seconds that a healthy server, and a slow server, needs for a block of an answer. Four healthy servers with equal
shares answer up to 215 requests per second. A slow server answers only some 5 requests per second: about half of the 10
that it receives of QUIET_PER_S."""
CROWDED_TURN_S = 30e-3
WORKERS, BACKLOG = 16, 16
SICK, SICK_NAME = 1, "s2"
"""Index and name of the server that fails."""


class Label(StrEnum):
    """What disturbs a run: a crowd, a SYN flood, a failing server, a lossy link, a crowd with a failing server, or
    nothing."""

    NONE = "none"
    NETWORK = "crowd at the network"
    SERVERS = "crowd at the servers"
    ANSWERED = "SYN flood, answered"
    UNANSWERED = "SYN flood, unanswered"
    SLOW = "slow server"
    KILLED = "killed server"
    LOSSY = "lossy link"
    BOTH = "crowd at the network, and a killed server"


CAUSES = {
    Label.NONE: Cause.NORMAL,
    Label.NETWORK: Cause.CROWD,
    Label.SERVERS: Cause.CROWD,
    Label.ANSWERED: Cause.FLOOD,
    Label.UNANSWERED: Cause.FLOOD,
    Label.SLOW: Cause.SICK,
    Label.KILLED: Cause.SICK,
    Label.LOSSY: Cause.NORMAL,
    Label.BOTH: Cause.CROWD,
}
"""The correct verdict for each label."""
CROWDS = frozenset({Label.NETWORK, Label.SERVERS, Label.BOTH})
"""Labels for which the controller may set a limit."""
FLOODS = frozenset({Label.ANSWERED, Label.UNANSWERED})
FAILING = frozenset({Label.SLOW, Label.KILLED, Label.BOTH})
"""Labels with a failing server: the verdict must name the server, and weights may change."""


def rates(label: Label, *, onset_s: float, ramp_s: float, end_s: float) -> Crowd:
    """Return the rate of the clients' requests over time; the SYNs of a flood are not included."""
    crowd = {Label.NETWORK: CROWD_PER_S, Label.BOTH: CROWD_PER_S, Label.SERVERS: SERVER_CROWD_PER_S}
    return Crowd(QUIET_PER_S, crowd.get(label, QUIET_PER_S), onset_s, ramp_s, end_s)


SETTLED_S = 10.0
"""Seconds after the onset within which a verdict may still be wrong: a verdict rests on the measurements of the last
4 s, and balancing by R decides every 10 s."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of the controller."""

    time_s: float
    cause: str
    servers: frozenset[str]
    """The servers that the decision names."""
    limited: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """Summary of the controller's decisions in a run."""

    causes: Mapping[str, float]
    """Share of the decisions with each cause, from SETTLED_S after the onset on."""
    named: frozenset[str]
    """The servers that are named by most of the decisions with the most frequent cause."""
    limited: bool
    """Whether the controller set a limit."""
    moved: bool
    """Whether weights changed after the onset."""

    @property
    def cause(self) -> str:
        """The most frequent cause."""
        return max(self.causes, key=lambda cause: self.causes[cause])


def judged(decisions: Sequence[Decision], moves_s: Iterable[float], onset_s: float) -> Judged:
    """Summarise the decisions of a run; ``moves_s``: times at which weights changed.

    Causes and names are those of the decisions from SETTLED_S after the onset on. Raises ValueError if there is no such
    decision.
    """
    settled = [decision for decision in decisions if decision.time_s >= onset_s + SETTLED_S]
    if not settled:
        raise ValueError(f"the controller has decided nothing from {SETTLED_S:g} s after the onset on")
    counts = Counter(decision.cause for decision in settled)
    ((cause, often),) = counts.most_common(1)
    names = Counter(server for decision in settled if decision.cause == cause for server in decision.servers)
    return Judged(
        causes={cause: number / counts.total() for cause, number in counts.items()},
        named=frozenset(server for server, number in names.items() if number > often / 2),
        limited=any(decision.limited for decision in decisions),
        moved=any(time_s >= onset_s for time_s in moves_s),
    )
