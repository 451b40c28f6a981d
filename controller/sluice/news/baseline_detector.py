"""Production mode's detector: a baseline that only healthy traffic teaches, and thresholds above the noise."""

from __future__ import annotations

import math
from collections import deque

from .detector import Detection
from .filters import Average, Baseline
from .options import NewsOptions

_BUSIER_MOST = 0.5
"""However noisy, half as many requests again are more than usual."""

HEALTH_WINDOWS = 2
"""A limit is moved by what was seen over so many measurement windows; then it rests for as long."""

_HEALTHY, _DEGRADED = 0.35, 0.45
"""Of the alarm's tolerance: AR over these windows is healthy down to the one, degraded below the other. To move a limit
by mistake costs less than to raise an alarm. Between the two the link is full, and the limit holds."""

_SPANS = (1, 2, 4)
"""AR is looked at over so many measurement windows. The mean of n windows has 1/sqrt(n) of the noise of one, so that a
degradation too slight for one window to tell shows in several that follow each other."""


class BaselineDetector:
    """The alarm against a baseline that neither limited nor congested intervals touch.

    As the baseline stands still in a crowd, condition 3 (AR above it by delta) would never come true: here the
    alarm resets when AR is back within half the tolerance (at least delta) of the baseline, or when the requests
    are no longer up, for then whatever is slow is no crowd's doing.
    """

    def __init__(self, options: NewsOptions) -> None:
        self.alarm = False
        self.learned = False
        """The last observation went into the baseline."""
        self.healthy = self.degraded = False
        """Over HEALTH_WINDOWS, AR is so close to its baseline that more could be admitted; or it is too low."""
        self._options = options
        self._readings: deque[float] = deque(maxlen=_most_readings(options))
        self._ar = Baseline(options.production.gain)
        self._requests = Baseline(options.production.gain)
        self._found = Baseline(options.production.gain)
        """AR under a limit that was there before anything was learned."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; baseline and alarm stay."""
        self._options = options
        self._readings = deque(self._readings, maxlen=_most_readings(options))
        self._ar.gain = self._requests.gain = self._found.gain = options.production.gain

    @property
    def warm(self) -> bool:
        """Enough was learned to judge by: two windows full."""
        return self._ar.count >= 2 * self._options.production.intervals

    @property
    def kept(self) -> tuple[Average, Average] | None:
        """AR, bit/s, and requests per second as they usually are; None while there is not enough to judge by."""
        ar, requests = self._ar.kept, self._requests.kept
        return (ar, requests) if self.warm and ar and requests else None

    def restore(self, ar: Average, requests: Average) -> None:
        """Go on from what an earlier detector knew."""
        self._ar.restore(ar)
        self._requests.restore(requests)

    @property
    def reference(self) -> float | None:
        """AR by which a limit is moved, bit/s: the baseline; until there is one, AR under the limit that was found."""
        return (self._ar if self.warm else self._found).average

    @property
    def usual(self) -> float:
        """The usual requests per second over all destinations; 0 while nothing is known."""
        return self._requests.average or 0.0

    def observe(
        self, ar: float | None, offered: float, *, limiting: bool, sick: bool, evident: bool = True
    ) -> Detection:
        """Decide on one window: AR in bit/s and offered requests per second.

        Nothing is learned while a limit is in force. Once warm, nothing is while responses are slow under more
        requests than usual, or while a server or a flood is known to be the cause. Nor is anything learned of too few
        flows to have a fastest part (not ``evident``): what an idle network carries is no measure for a busy one.
        """
        options, extra = self._options, self._options.production
        ar_average, request_average = self._ar.average, self._requests.average
        slower = busier = recovered = self.healthy = self.degraded = False
        if request_average is not None:
            busy = self._requests.tolerance(options.tolerance, extra.noise, _BUSIER_MOST)
            busier = offered > request_average * (1 + busy)
        if ar is not None:
            self._readings.append(ar)
            width = self._ar.tolerance(options.tolerance, extra.noise, extra.tolerance_max)
            average = ar if ar_average is None else ar_average
            recovered = ar >= average * (1 - max(options.tolerance, width / 2))
            self._find(ar, limiting=limiting, evident=evident)
            self._examine(self._ar if self.warm else self._found)
            slower = not recovered and self._lastingly_down(average, width)
        if self.warm:
            if not self.alarm and slower and busier:
                self.alarm = True
            elif self.alarm and (recovered or not busier):
                self.alarm = False
        self.learned = False
        if ar is None:
            return Detection(self.alarm, ar_average, request_average, slower, busier, recovered)
        # By the plain tolerance: a crowd that builds up slowly widens the noise, and would be learned as it comes.
        more = request_average is not None and offered > request_average * (1 + options.tolerance)
        congested = more and not (recovered and self.healthy)
        if evident and not limiting and not (self.warm and (self.alarm or congested or sick)):
            self.learned = True
            self._ar.fold(ar)
            self._requests.fold(offered)
        return Detection(self.alarm, ar_average, request_average, slower, busier, recovered)

    @property
    def _found_full(self) -> bool:
        """AR was seen for so long under the limit that was found that its noise is known."""
        extra = self._options.production
        return self._found.count >= max(2 * extra.intervals, round(extra.baseline_s / extra.detection_s))

    def _find(self, ar: float, *, limiting: bool, evident: bool) -> None:
        """Note AR under a limit while there is no baseline, for ``baseline_s``; anew when it is lastingly higher.

        It was that of a queue then, which the limit has drained. With the limit it is forgotten.
        """
        if self.warm or not limiting:
            self._found = Baseline(self._options.production.gain)
        elif evident:
            if self._found_full and self._mean_share(self._found) > 1 + self._margin(self._found, _DEGRADED):
                self._found = Baseline(self._options.production.gain)
            if not self._found_full:
                self._found.fold(ar)

    def _examine(self, reference: Baseline) -> None:
        """Say how AR is beside a reference; neither healthy nor degraded before there is enough of that."""
        if self.warm or self._found_full:
            share = self._mean_share(reference)
            self.healthy = share >= 1 - self._margin(reference, _HEALTHY)
            self.degraded = share < 1 - self._margin(reference, _DEGRADED)

    def _mean_share(self, reference: Baseline) -> float:
        """AR over HEALTH_WINDOWS in parts of a reference."""
        return self._mean(HEALTH_WINDOWS, reference.average or 0.0) / reference.average if reference.average else 1.0

    def _margin(self, reference: Baseline, part: float) -> float:
        """A part of the tolerance around a reference, at least delta."""
        extra = self._options.production
        width = reference.tolerance(self._options.tolerance, extra.noise, extra.tolerance_max)
        return max(self._options.tolerance, part * width)

    def _mean(self, windows: int, default: float) -> float:
        """Mean AR over so many windows that follow each other, the last among them; the default before the first."""
        readings = list(self._readings)[:: -self._options.production.intervals][:windows]
        return sum(readings) / len(readings) if readings else default

    def _lastingly_down(self, average: float, width: float) -> bool:
        """AR is below its average beyond the noise: by ``width`` of it over one window, by less over several."""
        period = self._options.production.intervals
        return any(
            len(self._readings) > (span - 1) * period
            and self._mean(span, average) < average * (1 - max(self._options.tolerance, width / math.sqrt(span)))
            for span in _SPANS
        )


def _most_readings(options: NewsOptions) -> int:
    return (_SPANS[-1] - 1) * options.production.intervals + 1
