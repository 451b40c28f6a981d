"""Labelled runs: a service with four servers, and one thing that goes wrong, or two, or nothing; and their verdict.

What a run is labelled with is what its verdict has to be (`sluice.news.verdict`). `sim/causes.py` simulates these runs,
`topo/causes.py` makes them.
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
"""Requests; a crowd at the servers is too small to fill the link."""
SPOOFED_PER_S = 500.0
LINK_BIT_PER_S, QUEUE_BYTES = 4e6, 50_000.0
"""As Figure 10's; it carries some 135 requests per second."""
ROUND_TRIP_S = 0.04, 0.2
LOSS = 0.05
"""Part of the packets towards the clients, of a lossy link."""
HALF_OPEN = 256
"""Handshakes that a server without SYN cookies holds."""
TURN_S, SLOW_TURN_S = 8e-3, 80e-3
"""Time on the wall of a server for a block of an answer: four can do together 215 requests per second, were they all
asked alike, and one that is slow can do a seventh of what it is asked for."""
CROWDED_TURN_S = 30e-3
WORKERS, BACKLOG = 16, 16
SICK, SICK_NAME = 1, "s2"
"""The place among the servers of the one that fails, and its name."""


class Label(StrEnum):
    """What goes wrong."""

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
"""What the verdict has to be."""
CROWDS = frozenset({Label.NETWORK, Label.SERVERS, Label.BOTH})
"""A limit may be set."""
FLOODS = frozenset({Label.ANSWERED, Label.UNANSWERED})
FAILING = frozenset({Label.SLOW, Label.KILLED, Label.BOTH})
"""One server is to blame: the verdict names it, and weights may move."""


def rates(label: Label, *, onset_s: float, ramp_s: float, end_s: float) -> Crowd:
    """Return how the rate of requests goes."""
    crowd = {Label.NETWORK: CROWD_PER_S, Label.BOTH: CROWD_PER_S, Label.SERVERS: SERVER_CROWD_PER_S}
    return Crowd(QUIET_PER_S, crowd.get(label, QUIET_PER_S), onset_s, ramp_s, end_s)


SETTLED_S = 10.0
"""A verdict has so long: the window is 4 s, and R decides every 10."""


@dataclass(frozen=True, slots=True)
class Said:
    """One decision."""

    time_s: float
    cause: str
    servers: frozenset[str]
    """Those that it names."""
    limited: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """What the controller made of a run."""

    causes: Mapping[str, float]
    """Part of the decisions from SETTLED_S after the onset that had each cause."""
    named: frozenset[str]
    """The servers that most of the decisions with the most frequent cause name."""
    limited: bool
    """A limit was set."""
    moved: bool
    """Weights moved after the onset."""

    @property
    def cause(self) -> str:
        """The most frequent one."""
        return max(self.causes, key=lambda cause: self.causes[cause])


def judged(said: Sequence[Said], moves_s: Iterable[float], onset_s: float) -> Judged:
    """What was decided from SETTLED_S after the onset on; ``moves_s``: when weights moved. Raises ValueError if nothing
    was."""
    settled = [one for one in said if one.time_s >= onset_s + SETTLED_S]
    if not settled:
        raise ValueError(f"the controller has decided nothing from {SETTLED_S:g} s after the onset on")
    held = Counter(one.cause for one in settled)
    ((cause, often),) = held.most_common(1)
    names = Counter(server for one in settled if one.cause == cause for server in one.servers)
    return Judged(
        causes={cause: number / held.total() for cause, number in held.items()},
        named=frozenset(server for server, number in names.items() if number > often / 2),
        limited=any(one.limited for one in said),
        moved=any(time_s >= onset_s for time_s in moves_s),
    )
