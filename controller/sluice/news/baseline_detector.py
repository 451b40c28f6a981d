"""Production mode's detector: a baseline that only healthy traffic teaches, and thresholds above the noise."""

from __future__ import annotations

import math
from collections import deque

from .detector import Detection, Unprotected
from .filters import SLOWER, Average, Baseline, chance
from .options import NewsOptions

_BUSIER_MOST = 0.5
"""However noisy, half as many requests again are more than usual."""

_FELL = 0.5
"""Requests have fallen back when less than this part is left of the most since responses were first seen."""

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

    A crowd that builds up so slowly that the baseline follows it is seen beside the slow averages, which then are the
    baseline. Where a crowd may be taken for usual traffic all the same, a detection says why (``Unprotected``).

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
        self._intervals = options.production.intervals
        """Of the last window: readings so far apart have none in common."""
        self._readings: deque[float] = deque(maxlen=_most_readings(options))
        self._ar = Baseline(options.production.gain)
        self._requests = Baseline(options.production.gain)
        self._found = Baseline(options.production.gain)
        """AR under a limit that was there before anything was learned."""
        self.fell_back = False
        """The last observation showed that the averages had learned a crowd; they are the slow ones again."""
        self._every = Baseline(options.production.gain)
        """Requests per second in every interval without a limit, also of an idle network."""
        self._risen: tuple[int, float] | None = None
        """Responses were first seen under more requests than usual: in which interval, and the most a second since."""
        self._best = 0.0, 0.0
        """The slow averages of AR and requests when that of AR was at its best."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; baseline and alarm stay."""
        self._options = options
        self._readings = deque(self._readings, maxlen=_most_readings(options))
        for baseline in (self._ar, self._requests, self._found, self._every):
            baseline.gain = options.production.gain

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
        self,
        ar: float | None,
        offered: float,
        *,
        limiting: bool,
        sick: bool,
        evident: bool = True,
        seconds: float = 0.0,
    ) -> Detection:
        """Decide on one window: AR in bit/s and offered requests per second, of so many seconds (0: chance is no
        matter).

        Nothing is learned while a limit is in force. Once warm, nothing is while responses are slow under more
        requests than usual, or while a server or a flood is known to be the cause. Nor is anything learned of too few
        flows to have a fastest part (not ``evident``): what an idle network carries is no measure for a busy one.
        """
        options, extra = self._options, self._options.production
        self._intervals = max(extra.intervals, round(min(seconds, extra.baseline_s) / extra.detection_s))
        self.fell_back = slower = recovered = self.healthy = self.degraded = False
        width = self._ar.tolerance(options.tolerance, extra.noise, extra.tolerance_max)
        if ar is not None:
            self._readings.append(ar)
            self._find(ar, limiting=limiting, evident=evident)
            self._examine(self._ar if self.warm else self._found)
        if self.warm and not (self.alarm or sick or limiting) and self._crept(offered, width, seconds):
            self.fell_back = True
            self._ar.fall_back()
            self._requests.fall_back()
        ar_average, request_average = self._ar.average, self._requests.average
        busier = request_average is not None and self._busier(offered, request_average, seconds)
        if ar is not None:
            average = ar if ar_average is None else ar_average
            recovered = self._recovered(average, width)
            slower = not recovered and self._lastingly_down(average, width)
        if self.warm:
            if not self.alarm and slower and busier:
                self.alarm = True
            elif self.alarm and (recovered or not busier):
                self.alarm = False
        # By the plain tolerance: a crowd that builds up slowly widens the noise, and would be learned as it comes.
        more = request_average is not None and offered > request_average * (1 + options.tolerance)
        congested = more and not (recovered and self.healthy)
        self.learned = (
            ar is not None and evident and not limiting and not (self.warm and (self.alarm or congested or sick))
        )
        if not limiting:
            self._doubt(offered, seconds)
        if ar is not None and self.learned:
            self._ar.fold(ar)
            self._requests.fold(offered)
        unprotected = None if limiting or self.alarm else self._unprotected
        return Detection(self.alarm, ar_average, request_average, slower, busier, recovered, unprotected)

    def _recovered(self, average: float, width: float) -> bool:
        """The newest AR is back within half the tolerance of an average."""
        return self._readings[-1] >= average * (1 - max(self._options.tolerance, width / 2))

    def _busier(self, offered: float, average: float, seconds: float) -> bool:
        """More requests are offered than on an average: beyond its noise and, in so many seconds, beyond chance.

        Of few requests the average itself is what it is by chance, so the slow one has to be exceeded, too.
        """
        options, extra = self._options, self._options.production
        busy = self._requests.tolerance(options.tolerance, extra.noise, _BUSIER_MOST)
        usual = max(average, self._requests.slow or 0.0)
        by_chance = seconds > 0 and offered - usual <= chance(usual / seconds)
        return offered > average * (1 + busy) and not by_chance

    def _crept(self, offered: float, width: float, seconds: float) -> bool:
        """Beside the slow averages responses are slower under more requests: a crowd that the others have learned."""
        ar, requests = self._ar.slow, self._requests.slow
        if ar is None or requests is None or not self._readings or self._recovered(ar, width):
            return False
        return self._lastingly_down(ar, width) and self._busier(offered, requests, seconds)

    def _doubt(self, offered: float, seconds: float) -> None:
        """Note whether responses are first seen while requests are up already, and what a drift would be held against.

        That ends when requests fall back, and responses are to be seen anew, or after the slow averages' time.
        """
        usual, extra = self._every.slow, self._options.production
        known = self._every.count >= 2 * extra.intervals
        if self.learned and self._ar.count == 0 and usual and known and self._busier(offered, usual, seconds):
            self._risen = self._every.count, 0.0
        self._every.fold(offered)
        if self._risen is not None and self._every.average is not None:
            since, top = self._risen
            self._risen = since, max(top, self._every.average)
            if self._every.average < _FELL * top:
                self._ar, self._requests, self._risen = Baseline(extra.gain), Baseline(extra.gain), None
            elif self._every.count - since > SLOWER * extra.baseline_s / extra.detection_s:
                self._risen = None
        if self._ar.slow is not None and self._requests.slow is not None and self._ar.slow > self._best[0]:
            self._best = self._ar.slow, self._requests.slow

    @property
    def _unprotected(self) -> Unprotected | None:
        if not self._full(self._ar):
            return Unprotected.UNKNOWN
        if self._risen is not None:
            return Unprotected.RISEN
        ar, requests = self._best
        slower = (self._ar.average or 0.0) < ar * (1 - self._options.production.tolerance_max)
        busier = (self._requests.average or 0.0) > requests * (1 + _BUSIER_MOST)
        return Unprotected.DRIFTED if slower and busier else None

    def _full(self, baseline: Baseline) -> bool:
        """It was seen for so long that its noise is known."""
        extra = self._options.production
        return baseline.count >= max(2 * extra.intervals, round(extra.baseline_s / extra.detection_s))

    def _find(self, ar: float, *, limiting: bool, evident: bool) -> None:
        """Note AR under a limit while there is no baseline, for ``baseline_s``; anew when it is lastingly higher.

        It was that of a queue then, which the limit has drained. With the limit it is forgotten.
        """
        if self.warm or not limiting:
            self._found = Baseline(self._options.production.gain)
        elif evident:
            if self._full(self._found) and self._mean_share(self._found) > 1 + self._margin(self._found, _DEGRADED):
                self._found = Baseline(self._options.production.gain)
            if not self._full(self._found):
                self._found.fold(ar)

    def _examine(self, reference: Baseline) -> None:
        """Say how AR is beside a reference; neither healthy nor degraded before there is enough of that."""
        if self.warm or self._full(self._found):
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
        readings = list(self._readings)[:: -self._intervals][:windows]
        return sum(readings) / len(readings) if readings else default

    def _lastingly_down(self, average: float, width: float) -> bool:
        """AR is below its average beyond the noise: by ``width`` of it over one window, by less over several."""
        return any(
            len(self._readings) > (span - 1) * self._intervals
            and self._mean(span, average) < average * (1 - max(self._options.tolerance, width / math.sqrt(span)))
            for span in _SPANS
        )


def _most_readings(options: NewsOptions) -> int:
    return (_SPANS[-1] - 1) * max(options.production.intervals, options.response_intervals) + 1
