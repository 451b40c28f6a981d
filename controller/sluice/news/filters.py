"""Long-term averages: Chen & Heidemann's high-low filter, and production mode's baseline with an estimate of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SLOWER = 16
"""The time constant of a baseline's slow average, divided by the time constant of its fast average: 64 s for the fast
average result in 17 minutes for the slow one."""


@dataclass(slots=True)
class HighLowFilter:
    """An exponentially weighted average with two gains (section 4.2): avg = g avg + (1 - g) observed.

    Without an alarm g is small, and the average follows quickly. During an alarm g is large, and the average is steady.
    The first observation initialises the average.
    """

    gain_quiet: float
    gain_alarm: float
    average: float | None = None

    def fold(self, observed: float, *, alarm: bool) -> None:
        """Update the average by one observation, with the gain for the given state of the alarm."""
        gain = self.gain_alarm if alarm else self.gain_quiet
        self.average = observed if self.average is None else gain * self.average + (1 - gain) * observed


@dataclass(frozen=True, slots=True)
class Average:
    """The values of a baseline at one moment."""

    average: float
    deviation: float
    count: int
    """Number of observations."""


@dataclass(slots=True)
class Baseline:
    """An average and the mean absolute deviation around it, in the manner of RFC 6298's round-trip estimator.

    Until the number of observations reaches the time constant (in observations), the average is the plain mean of all
    observations, so that the first observation does not outweigh the rest. A second average follows much more slowly.
    Comparison with the second average shows a crowd that builds up so slowly that the first average follows it.
    """

    gain: float
    average: float | None = None
    deviation: float = 0.0
    count: int = field(default=0)
    """Number of observations."""
    slow: float | None = None
    """An average with SLOWER times the time constant."""

    def fold(self, observed: float) -> None:
        """Update the averages and the deviation by one observation."""
        self.count += 1
        if self.average is None:
            self.average, self.deviation, self.slow = observed, observed / 2, observed
            return
        weight = max(1 - self.gain, 1 / self.count)
        self.deviation += weight * (abs(observed - self.average) - self.deviation)
        self.average += weight * (observed - self.average)
        self.slow = self.average if self.slow is None else self.slow
        self.slow += max((1 - self.gain) / SLOWER, 1 / self.count) * (observed - self.slow)

    def fall_back(self) -> None:
        """Replace the average by the slow average, because the average has recently learned from unusual traffic."""
        self.average = self.slow

    @property
    def kept(self) -> Average | None:
        """The values from which a later process continues; None before the first observation."""
        return None if self.average is None else Average(self.average, self.deviation, self.count)

    def restore(self, earlier: Average) -> None:
        """Continue from the values that an earlier process saved."""
        self.average, self.deviation, self.count = earlier.average, earlier.deviation, earlier.count
        self.slow = earlier.average

    def tolerance(self, least: float, noise: float, most: float) -> float:
        """Return the part of the average by which an observation must differ from the average to count as unusual. It
        is ``noise`` deviations, at least ``least`` and at most ``most``."""
        if not self.average:
            return least
        return min(max(least, noise * self.deviation / self.average), max(least, most))


def chance(usual: float) -> float:
    """Return by how much a count of requests can exceed its usual value ``usual`` by chance: four standard deviations
    of a Poisson distribution."""
    return 4.0 * math.sqrt(usual)
