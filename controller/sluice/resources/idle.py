"""Selects the idle persistent connections to close, and the time to close them (Azuma et al., section 2.2).

While a server has room, all connections stay, because each then saves the handshake of the next request. Above a
threshold, idle connections are closed so that new clients can connect. The papers do not state an order; here the
connection that has been idle longest is closed first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from sluice.balance.options import Count, NotNegative, Positive, Share

from .pauses import DEFAULT_AGE_S


@dataclass(frozen=True, slots=True)
class IdleOptions:
    """The conditions under which idle connections of a server are closed. Without this section none is closed."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    limit: Count | None = None
    """Connections that the server can have open (Azuma et al.: 1,000). Left out: only the ``learned`` limit applies."""
    learned: bool = False
    """Learn the limit from a server that leaves SYNs unanswered. If connections queue for busy workers (Apache
    prefork), the learned limit includes the queue: set ``limit`` for such a server."""
    threshold: Share = 0.8
    """The share of the limit above which idle connections are closed (Azuma et al.: 800 of 1,000)."""
    release: Share = 0.95
    """Closing continues until the connections are down to this share of the threshold, which prevents flapping."""
    least_age_s: Positive | None = None
    """The least time that a connection must be silent before it is closed, in seconds. A response with a longer pause
    is cut off, and its client may not notice: below 10 s `sluice check` warns. Left out: 10 s at first, later learned
    from the pauses within the service's responses (ADR 0152)."""
    rate: Positive = 100.0
    """The most connections closed per second."""
    burst_s: NotNegative = 0.25
    """Connections may be closed in bursts of as many as ``rate`` permits in this many seconds."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A connection whose last payload was sent by the server and has been acknowledged by the client."""

    slot: int
    idle_s: float
    """Seconds since the acknowledgement."""


class Closer:
    """Selects the connections of one server to close, each time the switch has been read."""

    def __init__(self, options: IdleOptions) -> None:
        self.options = options
        self.limit: float | None = options.limit
        """Number of connections that the server can have open; None: unknown, and none is closed."""
        self.least_age_s = DEFAULT_AGE_S if options.least_age_s is None else options.least_age_s
        """The least time in seconds that a connection must be silent before it is closed."""
        self._is_closing = False
        self._allowance = options.rate * options.burst_s
        self._read_s: float | None = None

    def choose(self, now_s: float, connections: int, idle: Iterable[Idle], pending: int = 0) -> list[Idle]:
        """Return the idle connections to close now; the connection that has been idle longest is first.

        ``connections``: the number of the server's open connections. ``pending``: the number of those that were chosen
        before and have neither ended nor turned out to be busy.
        """
        options = self.options
        elapsed_s = 0.0 if self._read_s is None else max(0.0, now_s - self._read_s)
        self._read_s = now_s
        largest = max(1.0, options.rate * options.burst_s)
        self._allowance = min(largest, self._allowance + options.rate * elapsed_s)

        if self.limit is None:
            return []
        threshold = options.threshold * self.limit
        goal = options.release * threshold
        self._is_closing = connections > (goal if self._is_closing else threshold)
        if not self._is_closing:
            return []
        surplus = max(0, connections - pending - int(goal))
        allowed = min(surplus, int(self._allowance))
        candidates = sorted(
            (connection for connection in idle if connection.idle_s >= self.least_age_s),
            key=lambda connection: -connection.idle_s,
        )
        chosen = candidates[:allowed]
        self._allowance -= len(chosen)
        return chosen

    def give_back(self, number: int) -> None:
        """Return the allowance of ``number`` chosen connections to the rate limit, because they were not closed."""
        self._allowance += number
