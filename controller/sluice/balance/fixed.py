"""Fixed mode: the configured capacities are the ratios."""

from __future__ import annotations

from .policy import Interval, Outcome, Policy


class FixedPolicy(Policy):
    """Splits connections in proportion to the capacities, whatever is measured."""

    learns = False

    def decide(self, interval: Interval) -> Outcome:
        return Outcome(interval.fair, "fixed")
