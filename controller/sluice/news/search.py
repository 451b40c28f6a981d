"""Production mode's search for the capacity, which is the highest limit at which responses stay healthy."""

from __future__ import annotations

from dataclasses import dataclass

from .options import NewsProductionOptions

_NEAR = 0.85
"""If the present limit is at least this part of the limit at which responses degraded or began to last longer, it is
near that limit. The long-term mean of AR (the mean rate of the fastest responses) then moves the present limit."""
_TRIM, _TRIM_MOST = 0.3, 0.03
"""One move by the long-term mean changes the limit by _TRIM times the difference between the mean and its target, but
by at most _TRIM_MOST. The result of the product and _TRIM_MOST are parts of the limit."""
_FREE, _CLOSE = 0.02, 0.02
"""If responses do not last longer, and the long-term mean is less than _CLOSE below its target, the limit rises at
least by _FREE (a part of the limit) times the parameter ``room`` of ``trim``."""
_RECOVERING = 1.1
"""Responses are recovering if AR grew by more than this factor since the last degradation."""


@dataclass(slots=True)
class CapacitySearch:
    """Raises the limit while responses are healthy, and lowers it at the first degradation.

    The search raises the limit as BIC-TCP does (Xu, Harfoush and Rhee, 2004): halfway to ``bad``, the limit at which
    responses last degraded or began to last longer, and beyond that limit in steps that double. So the search
    approaches a known capacity slowly, and finds a new one soon. It lowers the limit to a fixed part below the last
    healthy limit. If no healthy limit is known, it lowers the limit in proportion to the fall of AR. While responses
    recover, the limit stays until the queue that the higher limit caused has drained.
    """

    limit: float
    """The present limit, in connections per second."""
    good: float | None = None
    """The last limit that was binding while responses were healthy. Each degradation since then has lowered it."""
    bad: float | None = None
    """The limit at which responses last degraded or began to last longer; None if higher limits were healthy since."""
    full: float | None = None
    """Like ``bad``, but retained even if higher limits were healthy since. If there has been no such limit, the limit
    that the long-term mean of AR moved first."""
    step: float = 0.0
    """The last step beyond ``bad``, in parts of the limit; the next step is twice as large."""
    ar_share: float | None = None
    """AR in parts of its reference at the last degradation; None if the limit has since moved for another reason."""

    def healthy(self, extra: NewsProductionOptions, room: float = 1.0, beyond: float = 1.0) -> None:
        """Raise the limit, because responses are healthy and the limit binds.

        No step is larger than ``room`` times ``probe_max``. A step beyond the limit at which responses degraded is not
        larger than ``beyond`` times ``probe_max`` either. A step of ``probe_min`` is always possible.
        """
        most = max(extra.probe_min, room * extra.probe_max)
        self.good, self.ar_share = self.limit, None
        if self.bad is not None and self.bad > self.limit * (1 + extra.probe_min):
            self.limit = min((self.limit + self.bad) / 2, self.limit * (1 + most))
            return
        self.bad = None
        self.step = min(max(2 * self.step, extra.probe_min), max(extra.probe_min, min(room, beyond) * extra.probe_max))
        self.limit *= 1 + self.step

    def strained(self, extra: NewsProductionOptions) -> None:
        """Lower the limit, because responses begin to last longer: the link is full, and AR will degrade next."""
        self.bad = self.full = self.limit
        self.step, self.ar_share = 0.0, None
        self.limit = self.good = self.limit * (1 - extra.back_off)

    @property
    def near(self) -> bool:
        """Whether the limit is near the limit at which responses degraded or began to last longer."""
        return self.full is not None and self.limit >= self.full * _NEAR

    def trim(self, above: float, room: float) -> None:
        """Move the limit by the long-term mean of AR. ``above`` is the mean minus its target, in parts of AR's
        reference. ``room`` is the part of the largest step by which the limit can rise before responses would last
        longer; 0: unknown."""
        self.full = self.full or self.limit
        self.good, self.step, self.ar_share = self.limit, 0.0, None
        step = min(max(_TRIM * above, -_TRIM_MOST), _TRIM_MOST)
        if room > 0 and above > -_CLOSE:
            step = max(step, _FREE * room)
        self.limit *= 1 + step

    def degraded(self, ar_share: float, extra: NewsProductionOptions) -> None:
        """Lower the limit, because AR is down to ``ar_share`` of its reference. While AR is recovering, the limit
        stays."""
        before, self.ar_share = self.ar_share, ar_share
        if before is not None and ar_share > before * _RECOVERING:
            return
        self.step = 0.0
        self.full = self.limit
        if self.good is not None:
            self.bad = self.limit
            self.limit = self.good = min(self.limit, self.good) * (1 - extra.back_off)
        else:
            # After several moves down in a row, only the first, highest limit has certainly caused the present queue.
            self.full = self.bad = max(self.bad or 0.0, self.limit)
            self.limit *= min(max(ar_share, 1 - extra.back_off_max), 1 - extra.back_off)
