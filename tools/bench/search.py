"""Searches for the largest rate without loss. A trial is a function argument, so this module does no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LOSS = 0.001
"""The largest share of frames that may be lost in a passing trial."""
RESOLUTION = 0.04
"""The search ends when the highest passing rate and the lowest failing rate differ by less than this share."""
STEP = 1.12
"""The factor by which the rate changes as long as all trials have passed, or all have failed."""
LOWEST = 500.0
"""The lowest rate of a trial, in frames per second; a forwarder that fails at this rate is rated 0."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of sending at a given rate for some time: frames sent and received, and the duration in seconds."""

    sent: int
    received: int
    seconds: float

    @property
    def rate(self) -> float:
        """Received frames per second."""
        return self.received / self.seconds if self.seconds else 0.0

    @property
    def whole(self) -> bool:
        """Whether the share of lost frames is at most LOSS, so that the trial passes."""
        return self.sent > 0 and self.received >= self.sent * (1 - LOSS)

    @property
    def nearly(self) -> bool:
        """Whether the loss is so small that a short disturbance of the machine may have caused it."""
        return self.received >= self.sent * 0.97


def largest_rate(offer: Callable[[float], Trial]) -> float:
    """Search for the largest rate that passes. Returns the received frames per second at that rate, 0 if none passes.

    ``offer(0)`` sends at the load generator's maximal rate. A trial with a small loss is repeated once.
    """
    flood = offer(0.0)
    if flood.whole:
        return flood.rate
    # The search begins at the throughput under overload.
    guess, low, high, best = max(flood.rate, LOWEST), 0.0, 0.0, 0.0
    while not (low and high and high / low <= 1 + RESOLUTION):
        trial = offer(guess)
        if not trial.whole and trial.nearly:
            trial = offer(guess)
        if trial.whole:
            # If the load generator cannot reach the requested rate, its own rate is the largest one that can be
            # measured.
            if trial.rate < guess * (1 - RESOLUTION):
                return max(best, trial.rate)
            low, best = guess, max(best, trial.rate)
        else:
            high = guess
            if high < LOWEST:
                break
        guess = (low + high) / 2 if low and high else (low * STEP if low else high / STEP)
    return best


def spread(values: list[float]) -> float:
    """Return the range of the values as a share of the largest value."""
    return 1 - min(values) / max(values) if values and max(values) else 0.0
