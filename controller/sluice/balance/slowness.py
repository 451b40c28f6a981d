"""Who takes long, though it loses no SYN: open connections against new ones.

R counts SYNs that a server did not answer. With a second look at connection set-up hardly any is lost any more, and R
is 0 for a server that needs a hundred times as long as the others. But who needs long has connections open: by Little's
law (*A Proof for the Queuing Formula L = lambda W*, 1961) the mean of those that are open is the rate of new
ones times the time that one takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Work:
    """One server over the window."""

    open_sum: int
    """Its open connections, summed over the readings."""
    begun: int
    """Connections that it answered in the window."""

    def time(self, unmet: float = 0.0) -> float:
        """W = L / lambda in periods; with ``unmet`` connections more than were met open."""
        return (self.open_sum + unmet) / max(1, self.begun)


def slow(work: Mapping[int, Work], factor: float, least_open: int) -> dict[int, float]:
    """The servers whose connections take more than ``factor`` times as long as those of all that are not slow together,
    with how many times as long. The slowest is first.

    Each has been met with ``least_open`` open connections at least. The others are given one more than they were met
    with: where hardly any connection is ever met open, nobody is slow.
    """
    found: dict[int, float] = {}
    open_sum, begun = sum(one.open_sum for one in work.values()), sum(one.begun for one in work.values())
    candidates = (server for server, one in work.items() if one.open_sum >= least_open)
    for server in sorted(candidates, key=lambda server: (-work[server].time(), server)):
        open_sum, begun = open_sum - work[server].open_sum, begun - work[server].begun
        times = work[server].time() / Work(open_sum, begun).time(unmet=1.0) if begun > 0 else 0.0
        if times <= factor:
            break
        found[server] = times
    return found
