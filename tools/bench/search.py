"""Searches for the largest rate that passes; the trial is a function argument, so this module does no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LOSS = 0.001
"""Share of the frames that may be lost in a passing trial."""
RESOLUTION = 0.04
"""The search ends when the passing and the failing rate differ by less than this share."""
STEP = 1.12
"""Factor by which the rate changes while all trials have passed, or all have failed."""
LOWEST = 500.0
"""Lowest rate tried, in frames per second; a forwarder that fails it is rated 0."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of offering a rate for some time: frames sent and received, and seconds."""

    sent: int
    received: int
    seconds: float

    @property
    def rate(self) -> float:
        """Received frames per second."""
        return self.received / self.seconds if self.seconds else 0.0

    @property
    def whole(self) -> bool:
        """Whether the lost share is within LOSS, so that the trial passes."""
        return self.sent > 0 and self.received >= self.sent * (1 - LOSS)

    @property
    def nearly(self) -> bool:
        """Whether the loss is so small that a hiccup of the machine may have caused it."""
        return self.received >= self.sent * 0.97


def largest_rate(offer: Callable[[float], Trial]) -> float:
    """Search for the largest rate that passes; return the received frames per second at it, 0 when none passes.

    ``offer(0)`` offers as much as the load generator can. A trial with a small loss is repeated once.
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
            # A load generator that cannot offer the requested rate has reached the largest rate that can be measured.
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
    """Return the range of the values as a share of the largest."""
    return 1 - min(values) / max(values) if values and max(values) else 0.0
