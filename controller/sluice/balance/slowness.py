"""Slow servers: servers that answer all SYNs, but whose connections stay open long. They have many open connections
compared with their new ones.

R counts SYNs that a server did not answer. When new connections take the less loaded of several servers, hardly any SYN
is lost. R is then 0 even for a server that takes a hundred times as long as the others. But a connection stays open for
as long as the server takes. By Little's law (*A Proof for the Queuing Formula L = lambda W*, 1961) the mean number of
open connections is the rate of new connections times the mean time of a connection.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log, sqrt

READINGS = 8
"""Number of samples of the open connections per period. The last sample is taken with the decision."""
_GOLDEN = (sqrt(5) - 1) / 2
SAMPLE_TIMES = tuple((number - 1 + number**2 * _GOLDEN % 1) / READINGS for number in range(1, READINGS))
"""The times at which the samples before the decision are due, in parts of the period: one in each of the first seven
eighths, at uneven distances. Even distances would alias with the period of a server's CPU quota."""


@dataclass(frozen=True, slots=True)
class Work:
    """The open and the new connections of one server over some intervals."""

    open_sum: int
    """The server's open connections, summed over the samples."""
    anew: int
    """Sum of the increases of the number of open connections from one sample to the next. At least this many different
    connections were open."""
    begun: int
    """Connections that the server answered in exactly these intervals. (When the connections of the balancer's whole
    window were counted here, a new server looked slow for nine periods.)"""

    def time(self, more_open: float = 0.0) -> float:
        """Return W = L / lambda, the mean time for which a connection stays open. The unit is the time between two
        samples. ``more_open`` is added to the sum of open connections."""
        return (self.open_sum + more_open) / max(1, self.begun)


def together(works: Collection[Work]) -> Work:
    """Return the sum of the work of several servers, or of several intervals."""
    return Work(
        sum(work.open_sum for work in works), sum(work.anew for work in works), sum(work.begun for work in works)
    )


class OpenSamples:
    """Sums of the samples of the open connections since the last decision."""

    def __init__(self) -> None:
        self._last: Mapping[int, int] = {}
        self._sums: dict[int, int] = {}
        self._rises: dict[int, int] = {}

    def add(self, open_now: Mapping[int, int]) -> None:
        """Add a sample: the number of open connections by server."""
        for server, number in open_now.items():
            self._sums[server] = self._sums.get(server, 0) + number
            self._rises[server] = self._rises.get(server, 0) + max(0, number - self._last.get(server, 0))
        self._last = dict(open_now)

    def take(self) -> dict[int, tuple[int, int]]:
        """Return each server's sum of samples and sum of increases since the previous call. If no sample was added
        since then, the result is empty, and all connections of the next sample count as new."""
        taken = {server: (number, self._rises[server]) for server, number in self._sums.items()}
        if not taken:
            self._last = {}
        self._sums, self._rises = {}, {}
        return taken


def deviations(different: int, times: float) -> float:
    """Return how strongly ``different`` connections of a server show that it is slow, as a standard normal deviate. The
    server's connections stay open ``times`` times as long as those of other servers.

    It is ``sqrt(2 n D)``: n is ``different``, x is ``times``, and ``D = ln x + 1 / x - 1`` is the relative entropy of
    two exponential distributions whose means differ by a factor of x (S. Kullback, *Information Theory and Statistics*,
    1959). Relative entropy has two directions, of which only this one grows as slowly as the logarithm of x. The slow
    growth suits requests of unlike costs: a request that takes a thousand times as long is still a single request.
    """
    return sqrt(2 * different * (log(times) + 1 / times - 1))


def slow(work: Mapping[int, Work], factor: float, least_z: float) -> dict[int, float]:
    """Return the slow servers: their connections stay open more than ``factor`` (> 1) times as long as those of all
    faster servers together, and the evidence is at least ``least_z`` standard deviations. The slowest server is first;
    the values are how many times as long the connections of each server stay open.

    One connection is added to the sum of the faster servers, so that no server counts as slow while hardly any
    connection is open. A server that exceeds the factor on weak evidence, such as one connection that stays open for
    hours, is skipped, so that it does not hide the next server.
    """
    times_of: dict[int, float] = {}
    pool = together(work.values())
    open_sum, begun = pool.open_sum, pool.begun
    for server in sorted(work, key=lambda server: (-work[server].time(), server)):
        mine = work[server]
        open_sum, begun = open_sum - mine.open_sum, begun - mine.begun
        times = mine.time() / Work(open_sum, 0, begun).time(more_open=1.0) if begun > 0 else 0.0
        if times <= factor:
            break
        if deviations(mine.anew, times) >= least_z:
            times_of[server] = times
    return times_of
