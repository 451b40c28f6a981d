"""The long-term mean of AR (the mean rate of the fastest responses) under a limit, the target of this mean, and the
correction of a reference that is too high."""

from __future__ import annotations

import math

from .baseline_detector import HEALTH_WINDOWS
from .filters import Baseline
from .options import NewsProductionOptions

_LONG = 0.625
"""The mean's time constant, as a part of ``baseline_s``."""
_AIM, _AIM_LEAST = 0.96, 0.9
"""The target of the mean, as a part of AR's reference, and the target's lower bound if the reference is too high. In
simulation the mean is 0.96 at nine tenths of a link's capacity, with a standard deviation of 7 %."""
_SHORT = 0.03
"""How far the mean must be below its target, in parts of AR's reference, to be a sufficient reason to lower a limit."""
_LOWER, _GAIN = 0.85, 0.02
"""Once the limit has been lowered below _LOWER times an earlier limit, the mean should have risen by at least _GAIN.
Otherwise the reference is too high, not the limit."""


class LongMean:
    """The long-term mean of AR, in parts of AR's reference.

    The reference is the mean of AR in quiet times and may be a tenth too high by chance. No limit raises AR to such a
    reference. If only AR's distance to the reference moved the limit, the limit would be lowered without end.
    """

    def __init__(self, options: NewsProductionOptions) -> None:
        self._options = options
        self._aim = _AIM
        self._first = 0.0, 0.0
        """The limit and the mean with which ``blames`` compares later ones: those of its first call, and of each later
        call with a higher limit, or with a mean that has risen enough since the limit was lowered."""
        self._mean = self._fresh()

    def configure(self, options: NewsProductionOptions) -> None:
        """Take over changed parameters. A changed time constant applies from the next ``begin_anew`` on."""
        self._options = options

    def begin_anew(self) -> None:
        """Start a new mean after a queue has drained. The target stays, and so do the limit and the mean with which
        ``blames`` compares later ones."""
        self._mean = self._fresh()

    def fold(self, ar_share: float) -> None:
        """Update the mean by the AR of an interval, in parts of its reference."""
        self._mean.fold(ar_share)

    @property
    def value(self) -> float | None:
        """The mean; None until it contains HEALTH_WINDOWS."""
        enough = self._mean.count >= HEALTH_WINDOWS * self._options.intervals
        return self._mean.average if enough else None

    @property
    def low(self) -> bool:
        """Whether the mean is more than _SHORT below its target, and so confirms a degradation. Also true while the
        mean is unknown."""
        return self.value is None or self.value < self._aim - _SHORT

    @property
    def above(self) -> float | None:
        """The mean minus its target; None while the mean is unknown."""
        return None if self.value is None else self.value - self._aim

    def blames(self, limit: float) -> bool:
        """Return whether a mean below its target is a reason to lower this limit.

        It is no reason while the mean is unknown, or if the limit has already been lowered by 15 % without effect. In
        the second case the target falls to the present mean, but not below _AIM_LEAST.
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
