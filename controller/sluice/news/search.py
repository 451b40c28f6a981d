"""Production mode's search for the capacity: the highest limit at which responses stay healthy."""

from __future__ import annotations

from dataclasses import dataclass

from .options import NewsProductionOptions

_NEAR = 0.85
"""From this part of the limit at which responses degraded or began to last, the long-term mean of AR moves the
limit."""
_TRIM, _TRIM_MOST = 0.3, 0.03
"""The limit moves by this part of the difference between the mean and its target, and by at most the second part of
itself."""
_FREE, _CLOSE = 0.02, 0.02
"""The limit rises by the first part where responses do not last longer and the mean is below its target by less than
the second."""
_RECOVERING = 1.1
"""Responses are recovering when AR grew by more than this factor while the last limit was in force."""


@dataclass(slots=True)
class CapacitySearch:
    """Raises the limit while responses are healthy, and lowers it at the first degradation.

    Upward it moves as BIC-TCP does (Xu, Harfoush and Rhee, 2004): halfway to the limit at which responses last
    degraded and, beyond that, in steps that double. So a known capacity is approached slowly and a new one found soon.
    Downward it moves to a fixed part below the last healthy limit or, while none is known, in proportion to the fall of
    AR. While responses recover the limit stays, until the queue from under the higher limit has drained.
    """

    limit: float
    """Connections per second."""
    good: float | None = None
    """The last limit under which responses were healthy while it bound, lowered at each degradation since."""
    bad: float | None = None
    """The limit at which responses last degraded."""
    full: float | None = None
    """The limit at which responses last degraded or began to last longer, even after higher limits were healthy."""
    step: float = 0.0
    """The next step beyond ``bad``, in parts of the limit."""
    ar_share: float | None = None
    """AR in parts of its reference at the last degradation; None when responses were healthy since."""

    def healthy(self, extra: NewsProductionOptions, room: float = 1.0, beyond: float = 1.0) -> None:
        """Raise the limit: responses are healthy, and the limit binds. The step is at most the part ``room`` of the
        largest step and, beyond the limit at which responses degraded, the part ``beyond``."""
        most = max(extra.probe_min, room * extra.probe_max)
        self.good, self.ar_share = self.limit, None
        if self.bad is not None and self.bad > self.limit * (1 + extra.probe_min):
            self.limit = min((self.limit + self.bad) / 2, self.limit * (1 + most))
            return
        self.bad = None
        self.step = min(max(2 * self.step, extra.probe_min), max(extra.probe_min, min(room, beyond) * extra.probe_max))
        self.limit *= 1 + self.step

    def strained(self, extra: NewsProductionOptions) -> None:
        """Lower the limit: responses begin to last longer, so the link is full, and AR will degrade next."""
        self.bad = self.full = self.limit
        self.step, self.ar_share = 0.0, None
        self.limit = self.good = self.limit * (1 - extra.back_off)

    @property
    def near(self) -> bool:
        """Whether the limit is near the one at which responses degraded or began to last longer."""
        return self.full is not None and self.limit >= self.full * _NEAR

    def trim(self, above: float, room: float) -> None:
        """Move the limit by the long-term mean of AR, which is ``above`` its target (or below it, negative), in parts
        of AR's reference. ``room`` is the part of the largest step up to where responses would last longer; 0: unknown.
        """
        self.full = self.full or self.limit
        self.good, self.step, self.ar_share = self.limit, 0.0, None
        step = min(max(_TRIM * above, -_TRIM_MOST), _TRIM_MOST)
        if room > 0 and above > -_CLOSE:
            step = max(step, _FREE * room)
        self.limit *= 1 + step

    def degraded(self, ar_share: float, extra: NewsProductionOptions) -> None:
        """Lower the limit, because AR is down to ``ar_share`` of its reference; wait when AR is recovering."""
        before, self.ar_share = self.ar_share, ar_share
        if before is not None and ar_share > before * _RECOVERING:
            return
        self.step = 0.0
        self.full = self.limit
        if self.good is not None:
            self.bad = self.limit
            self.limit = self.good = min(self.limit, self.good) * (1 - extra.back_off)
        else:
            # Of several limits in a row on the way down only the first has certainly caused the present queue.
            self.full = self.bad = max(self.bad or 0.0, self.limit)
            self.limit *= min(max(ar_share, 1 - extra.back_off_max), 1 - extra.back_off)
