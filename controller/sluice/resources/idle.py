"""Which idle persistent connections to close, and when (Azuma et al., section 2.2).

While a server has room, all stay: the next request saves a handshake. Above a threshold the idle ones go, so that those
who come find a place. The papers do not say which first; here the one that has been idle longest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from sluice.balance.options import Count, NotNegative, Positive, Share

from .pauses import DEFAULT_AGE_S


@dataclass(frozen=True, slots=True)
class IdleOptions:
    """When idle connections of a server are closed; off unless a service asks for it."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    limit: Count | None = None
    """Connections that the server can have (Azuma et al.: 1,000); left out: only what is ``learned``."""
    learned: bool = False
    """A server that leaves SYNs unanswered shows its limit. Where connections wait behind busy workers (Apache
    prefork), that is the workers and the queue together: give ``limit`` there."""
    threshold: Share = 0.8
    """The part of the limit above which idle ones are closed (Azuma et al.: 800)."""
    release: Share = 0.95
    """Closing goes on until the connections are at this part of the threshold, so that it does not flutter."""
    least_age_s: Positive | None = None
    """No connection is closed that has been silent for less, in seconds. A response with a longer pause in it is cut
    off, and its client may not notice: below 10 s `sluice check` warns. Left out: 10 s, until pauses within the
    service's own responses say more or less (ADR 0152)."""
    rate: Positive = 100.0
    """Closings a second, at most."""
    burst_s: NotNegative = 0.25
    """So many seconds' closings may come at once."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A connection whose last payload was the server's, and has been acknowledged."""

    slot: int
    idle_s: float
    """Since that acknowledgement."""


class Closer:
    """Decides for one server, from reading to reading."""

    def __init__(self, options: IdleOptions) -> None:
        self.options = options
        self.limit: float | None = options.limit
        """Connections that the server can have; None: not known, and nothing is closed."""
        self.least_age_s = DEFAULT_AGE_S if options.least_age_s is None else options.least_age_s
        """No connection is closed that has been silent for less, in seconds."""
        self._is_closing = False
        self._allowance = options.rate * options.burst_s
        self._read_s: float | None = None

    def choose(self, now_s: float, connections: int, idle: Iterable[Idle], pending: int = 0) -> list[Idle]:
        """The idle connections to close now, the longest idle first.

        ``connections``: those that the server has open; ``pending``: those of them that were chosen before, and have
        neither ended nor been taken back.
        """
        options = self.options
        past_s = 0.0 if self._read_s is None else max(0.0, now_s - self._read_s)
        self._read_s = now_s
        most = max(1.0, options.rate * options.burst_s)
        self._allowance = min(most, self._allowance + options.rate * past_s)

        if self.limit is None:
            return []
        threshold = options.threshold * self.limit
        goal = options.release * threshold
        self._is_closing = connections > (goal if self._is_closing else threshold)
        if not self._is_closing:
            return []
        surplus = max(0, connections - pending - int(goal))
        number = min(surplus, int(self._allowance))
        old = sorted((one for one in idle if one.idle_s >= self.least_age_s), key=lambda one: -one.idle_s)
        chosen = old[:number]
        self._allowance -= len(chosen)
        return chosen

    def give_back(self, number: int) -> None:
        """So many of those chosen were not closed after all."""
        self._allowance += number
