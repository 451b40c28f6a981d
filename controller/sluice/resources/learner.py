"""How many connections a server can have, learned from those that it refuses.

Azuma et al. take the number from the server's configuration. Here a server that leaves SYNs unanswered while it answers
others, or requests, is full; what it had open then is its limit. A server that answers nothing is off, or out of reach:
that is no limit. A limit is forgotten slowly, for a server may have become larger.
"""

from __future__ import annotations

from sluice.balance import Counts
from sluice.balance.counts import CounterReset

LEAST_LOST, LEAST_SHARE = 3, 0.1
"""Unanswered SYNs of an interval from which they are no chance losses: so many, and this part of all."""
GROWTH_PER_S = 1.01 ** (1 / 60)
"""A percent a minute while nothing is refused."""


class Learner:
    """Learns of one server, from reading to reading."""

    def __init__(self, most: float | None = None) -> None:
        self.limit = most
        """Connections; None while nothing was refused."""
        self._most = most
        self._former = most
        """The limit before the refusals that are not yet known to be a living server's."""
        self._is_silent = False
        """It has answered nothing since SYNs were sent to it."""
        self._before: Counts | None = None
        self._read_s = 0.0

    def rebase(self) -> None:
        """The next reading is only a base: this one came late, and counts SYNs whose answers it does not."""
        self._before = None

    def observe(self, now_s: float, connections: int, counts: Counts, responses: int = 0) -> None:
        """``connections``: those open now, with those that wait for an answer; ``counts``: cumulative.

        ``responses``: of the server's since the reading before, as far as they are known.
        """
        before, self._before = self._before, counts
        past_s, self._read_s = now_s - self._read_s, now_s
        if before is None:
            return
        try:
            interval = counts.since(before)
        except CounterReset:
            return
        lost = interval.syn - interval.synack
        refuses = lost >= LEAST_LOST and lost >= LEAST_SHARE * interval.syn
        was_silent = self._is_silent
        if interval.synack > 0 or responses > 0:
            self._is_silent = False
        elif lost > 0:
            self._is_silent = True
        if self._is_silent:
            # It may have fallen silent within the interval before: what that seemed to show is taken back.
            self.limit = self._former
        elif refuses and was_silent:
            pass  # it came back within this interval
        elif refuses:
            self._former = self.limit
            full = float(max(1, connections - lost))
            self.limit = full if self.limit is None else min(self.limit, full)
        elif self.limit is not None:
            self.limit = max(self.limit * GROWTH_PER_S ** max(0.0, past_s), float(connections))
        if self.limit is not None and self._most is not None:
            self.limit = min(self.limit, self._most)
        if not refuses:
            self._former = self.limit
