"""The largest rate that passes, and other arithmetic on measurements. Pure: a trial is a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

LOSS = 0.001
"""At most this share of the frames may be lost."""
RESOLUTION = 0.04
"""The search ends when what passes and what does not lie this close."""
STEP = 1.12
"""How far the search moves as long as it has seen only one side."""
LOWEST = 500.0
"""Frames per second; what does not carry these carries nothing."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of offering a rate for some time."""

    sent: int
    received: int
    seconds: float

    @property
    def rate(self) -> float:
        """Frames per second that came out."""
        return self.received / self.seconds if self.seconds else 0.0

    @property
    def whole(self) -> bool:
        """Whether nearly all that went in came out."""
        return self.sent > 0 and self.received >= self.sent * (1 - LOSS)

    @property
    def nearly(self) -> bool:
        """Whether so little was lost that a hiccup of the machine may have done it."""
        return self.received >= self.sent * 0.97


def largest_rate(offer: Callable[[float], Trial]) -> float:
    """Search for the largest rate that passes; frames per second that came out at it, 0 when none does.

    ``offer(0)`` offers as much as the load can. A trial that loses a little gets a second chance.
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
            # A load that cannot keep up with what is asked of it has offered less: that is then the most.
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
    """How far the values lie apart, as a share of the largest."""
    return 1 - min(values) / max(values) if values and max(values) else 0.0
