"""Fixed mode: the ratios are in proportion to the configured capacities."""

from __future__ import annotations

from .policy import Interval, Outcome, Policy


class FixedPolicy(Policy):
    """Splits connections in proportion to the capacities, independently of all measurements."""

    learns = False

    def decide(self, interval: Interval) -> Outcome:
        return Outcome(interval.fair, "fixed")
