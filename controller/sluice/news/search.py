"""Production mode's search for the capacity: the highest limit at which responses stay healthy."""

from __future__ import annotations

from dataclasses import dataclass

from .options import NewsProductionOptions

_NEAR = 0.85
"""From this part of the limit on at which responses degraded or began to last, AR over a long time moves the limit."""
_TRIM, _TRIM_MOST = 0.3, 0.03
"""It moves by this part of what AR is above or below what it is to be, and by so much at most."""
_FREE, _CLOSE = 0.02, 0.02
"""It moves up by so much where responses last no longer and AR is below what it is to be by less than the second."""
_RECOVERING = 1.1
"""Responses recover when AR grew by this factor while the last limit was in force."""


@dataclass(slots=True)
class CapacitySearch:
    """Probes upward while responses are healthy and backs off at the first degradation.

    The way up is BIC-TCP's (Xu, Harfoush and Rhee, 2004): halfway to the limit at which responses last degraded, and
    once past it in steps that double, so that a known capacity is approached slowly and a new one found soon.
    The way down is a fixed part below the last healthy limit; when none is known yet, in proportion to how far AR
    fell. Responses that recover are waited for: what queued up under the higher limit has to drain first.
    """

    limit: float
    """Connections per second."""
    good: float | None = None
    """The last limit that was healthy while it bound, or what was made of it since."""
    bad: float | None = None
    """The limit at which responses last degraded."""
    full: float | None = None
    """The limit at which they last degraded or began to last, however far above it is now."""
    step: float = 0.0
    """The next step past ``bad``, in parts of the limit."""
    ar_share: float | None = None
    """AR in parts of usual when the limit was last looked at, while it is degraded."""

    def healthy(self, extra: NewsProductionOptions, room: float = 1.0, beyond: float = 1.0) -> None:
        """Responses are healthy and the limit binds: upward, by the parts ``room`` of the largest step at most, and
        ``beyond`` of it past the limit at which responses degraded."""
        most = max(extra.probe_min, room * extra.probe_max)
        self.good, self.ar_share = self.limit, None
        if self.bad is not None and self.bad > self.limit * (1 + extra.probe_min):
            self.limit = min((self.limit + self.bad) / 2, self.limit * (1 + most))
            return
        self.bad = None
        self.step = min(max(2 * self.step, extra.probe_min), max(extra.probe_min, min(room, beyond) * extra.probe_max))
        self.limit *= 1 + self.step

    def strained(self, extra: NewsProductionOptions) -> None:
        """Responses begin to last longer: the link is full. Down, before they are degraded."""
        self.bad = self.full = self.limit
        self.step, self.ar_share = 0.0, None
        self.limit = self.good = self.limit * (1 - extra.back_off)

    @property
    def near(self) -> bool:
        """The limit is near the one at which responses degraded or began to last."""
        return self.full is not None and self.limit >= self.full * _NEAR

    def trim(self, above: float, room: float) -> None:
        """AR over a long time is so far ``above`` (or below) what it is to be, in parts of its reference. ``room``:
        responses last no longer, and so much of the largest step is left to where they would."""
        self.full = self.full or self.limit
        self.good, self.step, self.ar_share = self.limit, 0.0, None
        step = min(max(_TRIM * above, -_TRIM_MOST), _TRIM_MOST)
        if room > 0 and above > -_CLOSE:
            step = max(step, _FREE * room)
        self.limit *= 1 + step

    def degraded(self, ar_share: float, extra: NewsProductionOptions) -> None:
        """Responses are degraded, AR is ``ar_share`` of usual: down, or wait when that is better than before."""
        before, self.ar_share = self.ar_share, ar_share
        if before is not None and ar_share > before * _RECOVERING:
            return
        self.step = 0.0
        self.full = self.limit
        if self.good is not None:
            self.bad = self.limit
            self.limit = self.good = min(self.limit, self.good) * (1 - extra.back_off)
        else:
            # Of limits that follow each other down only the first certainly made the queue that is seen.
            self.full = self.bad = max(self.bad or 0.0, self.limit)
            self.limit *= min(max(ar_share, 1 - extra.back_off_max), 1 - extra.back_off)
