"""Who takes long, though it loses no SYN: open connections against new ones.

R counts SYNs that a server did not answer. With a second look at connection set-up hardly any is lost any more, and R
is 0 for a server that needs a hundred times as long as the others. But who needs long has connections open: by Little's
law (*A Proof for the Queuing Formula L = lambda W*, 1961) the mean of those that are open is the rate of new
ones times the time that one takes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log, sqrt

READINGS = 8
"""Of the open connections in a period, the last of them with the decision."""
_GOLDEN = (sqrt(5) - 1) / 2
MEETINGS = tuple((number - 1 + number**2 * _GOLDEN % 1) / READINGS for number in range(1, READINGS))
"""When the others are, in parts of the period: one in each eighth, not evenly. A limit on a server's CPU time is
granted in periods, too, and readings that keep step with them meet it always in the same state."""


@dataclass(frozen=True, slots=True)
class Work:
    """One server over some intervals."""

    open_sum: int
    """Its open connections, summed over the readings."""
    anew: int
    """By how many they rose from one reading to the next, all rises together: at least so many different ones."""
    begun: int
    """Connections that it answered meanwhile. (Beside a whole window's, a new server looked slow for nine periods.)"""

    def time(self, unmet: float = 0.0) -> float:
        """W = L / lambda in readings; with ``unmet`` connections more than were met open."""
        return (self.open_sum + unmet) / max(1, self.begun)


def together(parts: Collection[Work]) -> Work:
    """The sum of several intervals."""
    return Work(sum(one.open_sum for one in parts), sum(one.anew for one in parts), sum(one.begun for one in parts))


class Meetings:
    """Readings of the open connections since the last decision."""

    def __init__(self) -> None:
        self._last: Mapping[int, int] = {}
        self._sums: dict[int, int] = {}
        self._rises: dict[int, int] = {}

    def meet(self, open_now: Mapping[int, int]) -> None:
        """Take in a reading: the open connections by server."""
        for server, number in open_now.items():
            self._sums[server] = self._sums.get(server, 0) + number
            self._rises[server] = self._rises.get(server, 0) + max(0, number - self._last.get(server, 0))
        self._last = dict(open_now)

    def take(self) -> dict[int, tuple[int, int]]:
        """Sums and rises by server since they were last taken; empty without a reading, and all is forgotten then."""
        taken = {server: (number, self._rises[server]) for server, number in self._sums.items()}
        if not taken:
            self._last = {}
        self._sums, self._rises = {}, {}
        return taken


def deviations(different: int, times: float) -> float:
    """How sure it is that connections take ``times`` as long, by so many different ones, as a normal deviate.

    ``sqrt(2 n D)`` with the relative entropy ``D = ln x + 1 / x - 1`` of two exponential distributions whose means are
    a factor of x apart (S. Kullback, *Information Theory and Statistics*, 1959). Of the two it is the one that grows
    with the logarithm of x: requests are not alike, and one that takes a thousand times as long is one request.
    """
    return sqrt(2 * different * (log(times) + 1 / times - 1))


def slow(work: Mapping[int, Work], factor: float, least_z: float) -> dict[int, float]:
    """The servers whose connections surely take more than ``factor`` (> 1) times as long as those of all that do not,
    together, with how many times as long. The slowest is first.

    The others are given one more than they were met with: where hardly any connection is ever met open, no server is
    slow. A server that takes as long by weak evidence (one connection that stays open for hours) hides no other.
    """
    found: dict[int, float] = {}
    pool = together(work.values())
    open_sum, begun = pool.open_sum, pool.begun
    for server in sorted(work, key=lambda server: (-work[server].time(), server)):
        mine = work[server]
        open_sum, begun = open_sum - mine.open_sum, begun - mine.begun
        times = mine.time() / Work(open_sum, 0, begun).time(unmet=1.0) if begun > 0 else 0.0
        if times <= factor:
            break
        if deviations(mine.anew, times) >= least_z:
            found[server] = times
    return found
