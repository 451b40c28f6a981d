"""Learns how many connections a server can have from the connections that it refuses.

Azuma et al. take the number from the server's configuration. Here a server is full if it leaves SYNs unanswered while
it answers other SYNs or requests. The number of its open connections then is its limit. A server that answers nothing
is down or unreachable, which shows no limit. A limit grows slowly with time, because the server's capacity may have
increased.
"""

from __future__ import annotations

from sluice.balance import Counts
from sluice.balance.counts import CounterReset

LEAST_LOST, LEAST_SHARE = 3, 0.1
"""Unanswered SYNs count as refusals if, in an interval, they are at least LEAST_LOST and at least the part LEAST_SHARE
of all SYNs. Fewer can be chance losses."""
GROWTH_PER_S = 1.01 ** (1 / 60)
"""Factor by which the limit grows per second while nothing is refused: 1 % per minute."""


class Learner:
    """Learns the limit of one server, each time the switch has been read."""

    def __init__(self, most: float | None = None) -> None:
        self.limit = most
        """The limit in connections, at first ``most``; None: unknown, since the server has refused nothing yet."""
        self._most = most
        self._former = most
        """The limit before the latest refusals. It is restored if the server then answers nothing: the server was
        failing, not full."""
        self._is_silent = False
        """Whether the server has answered nothing since SYNs were last sent to it."""
        self._before: Counts | None = None
        self._read_s = 0.0

    def rebase(self) -> None:
        """Discard the previous reading, so that the next reading only serves as a base for later differences.

        The caller does so after a late reading, which counts SYNs whose answers it does not count.
        """
        self._before = None

    def observe(self, now_s: float, connections: int, counts: Counts, responses: int = 0) -> None:
        """Learn from a reading. ``connections`` is the number of open connections, including those in the handshake;
        ``counts`` are the server's cumulative counts.

        ``responses``: the number of the server's responses since the previous reading, if it is known.
        """
        before, self._before = self._before, counts
        elapsed_s, self._read_s = now_s - self._read_s, now_s
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
            # The server may have stopped answering during the previous interval. Undo what that interval seemed to
            # show.
            self.limit = self._former
        elif refuses and was_silent:
            pass  # the server recovered during this interval, which therefore shows no limit
        elif refuses:
            self._former = self.limit
            capacity = float(max(1, connections - lost))
            self.limit = capacity if self.limit is None else min(self.limit, capacity)
        elif self.limit is not None:
            self.limit = max(self.limit * GROWTH_PER_S ** max(0.0, elapsed_s), float(connections))
        if self.limit is not None and self._most is not None:
            self.limit = min(self.limit, self._most)
        if not refuses:
            self._former = self.limit
