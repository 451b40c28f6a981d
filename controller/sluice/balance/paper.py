"""Paper mode: Ohta & Andou's algorithm, exactly (section 4.1)."""

from __future__ import annotations

from .metric import ratio_of_unanswered
from .policy import Interval, Outcome, Policy
from .step import HOLD, shift, worst


class PaperPolicy(Policy):
    """Moves delta * r_j away from the server j with the largest R, every T seconds; r_j is the ratio of server j."""

    def decide(self, interval: Interval) -> Outcome:
        if interval.hold:
            return Outcome(interval.ratios, HOLD)
        options = self._options
        r = {server: ratio_of_unanswered(counts, options.min_syn) for server, counts in interval.windows.items()}
        source = worst(r, interval.ratios)
        if source is None or len(interval.ratios) == 1:
            return Outcome(interval.ratios, "no worst server")
        return Outcome(shift(interval.ratios, source, options.delta), f"moved {options.delta:g} of server {source}")
