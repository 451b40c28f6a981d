"""Long-term averages: Chen & Heidemann's high-low filter, and production mode's baseline with its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SLOWER = 16
"""The time constant of a baseline's slow average is this many times the baseline's (of 64 s: 17 min)."""


@dataclass(slots=True)
class HighLowFilter:
    """Two exponentially weighted averages in one (section 4.2): avg = g avg + (1 - g) observed.

    g is small without an alarm (quick to follow) and large with one (steady). The first value initialises.
    """

    gain_quiet: float
    gain_alarm: float
    average: float | None = None

    def fold(self, observed: float, *, alarm: bool) -> None:
        """Take in one observation with the gain of the given alarm state."""
        gain = self.gain_alarm if alarm else self.gain_quiet
        self.average = observed if self.average is None else gain * self.average + (1 - gain) * observed


@dataclass(frozen=True, slots=True)
class Average:
    """A baseline at one moment."""

    average: float
    deviation: float
    count: int
    """Number of observations."""


@dataclass(slots=True)
class Baseline:
    """An average and the mean absolute deviation around it, in the manner of RFC 6298's round-trip estimator.

    Until it has as many observations as its time constant it is their plain mean, so that the first does not outweigh
    the rest. A second average follows much more slowly: comparison with it shows a crowd that builds up so slowly that
    the first average follows it.
    """

    gain: float
    average: float | None = None
    deviation: float = 0.0
    count: int = field(default=0)
    """Number of observations."""
    slow: float | None = None
    """The average with SLOWER times the time constant."""

    def fold(self, observed: float) -> None:
        """Take in one observation."""
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
        """Continue from the slow average: what the average has learned recently was no usual traffic."""
        self.average = self.slow

    @property
    def kept(self) -> Average | None:
        """The values that a later process continues from; None before the first observation."""
        return None if self.average is None else Average(self.average, self.deviation, self.count)

    def restore(self, earlier: Average) -> None:
        """Continue from the values of an earlier process."""
        self.average, self.deviation, self.count = earlier.average, earlier.deviation, earlier.count
        self.slow = earlier.average

    def tolerance(self, least: float, noise: float, most: float) -> float:
        """Return the part of the average by which an observation must differ from it: ``noise`` deviations, bounded by
        ``least`` and ``most``."""
        if not self.average:
            return least
        return min(max(least, noise * self.deviation / self.average), max(least, most))


def chance(usual: float) -> float:
    """Return by how much a count of requests can exceed its usual value by chance: four standard deviations of a
    Poisson distribution."""
    return 4.0 * math.sqrt(usual)
