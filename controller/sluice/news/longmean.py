"""AR's mean over a long time under a limit, what it is to be, and what to do about a reference that is too high."""

from __future__ import annotations

import math

from .baseline_detector import HEALTH_WINDOWS
from .filters import Baseline
from .options import NewsProductionOptions

_LONG = 0.625
"""The mean's time, in parts of ``baseline_s``."""
_AIM, _AIM_LEAST = 0.96, 0.9
"""What the mean is to be, in parts of AR's reference: at nine tenths of a link it is the first, in simulation, and its
scatter of a fifth a window is 7 % there. The second where the reference is too high."""
_SHORT = 0.03
"""It may be so much below before a limit goes down that nothing else says is too high."""
_LOWER, _GAIN = 0.85, 0.02
"""A limit lower by the first that brought no more than the second was not too high: the reference is."""


class LongMean:
    """Of AR in parts of its reference.

    The reference is a mean of quiet times, and may be a tenth too high by chance. A limit that follows it down ends at
    nothing, for no limit brings AR up to it.
    """

    def __init__(self, options: NewsProductionOptions) -> None:
        self._options = options
        self._aim = _AIM
        self._first = 0.0, 0.0
        """The limit, and the mean, at which that was too low."""
        self._mean = self._fresh()

    def configure(self, options: NewsProductionOptions) -> None:
        """Take over changed parameters; the mean has its new time from the next beginning on."""
        self._options = options

    def begin_anew(self) -> None:
        """A queue drains: the mean is of what comes after it. What a higher limit had shown stays."""
        self._mean = self._fresh()

    def fold(self, ar_share: float) -> None:
        """Take in an interval."""
        self._mean.fold(ar_share)

    @property
    def value(self) -> float | None:
        """The mean, once it holds enough."""
        enough = self._mean.count >= HEALTH_WINDOWS * self._options.intervals
        return self._mean.average if enough else None

    @property
    def low(self) -> bool:
        """It bears a degradation out, or is not known; otherwise the degradation is scatter."""
        return self.value is None or self.value < self._aim - _SHORT

    @property
    def above(self) -> float | None:
        """How far the mean is above what it is to be, or below."""
        return None if self.value is None else self.value - self._aim

    def blames(self, limit: float) -> bool:
        """Whether a mean that is below what it is to be speaks for a lower limit than this one.

        Not where this one is lower already by 15 % in vain. Then the mean is to be what it is.
        """
        mean = self.value
        if mean is None:
            return False
        first, before = self._first
        if limit > first or (limit < _LOWER * first and mean >= before + _GAIN):
            self._first = limit, mean
        elif limit < _LOWER * first:
            self._aim = max(_AIM_LEAST, min(self._aim, mean))
            return False
        return True

    def _fresh(self) -> Baseline:
        return Baseline(math.exp(-self._options.detection_s / (_LONG * self._options.baseline_s)))
