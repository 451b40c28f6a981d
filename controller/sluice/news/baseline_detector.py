"""Production mode's detector: it learns a baseline from healthy traffic alone, and its thresholds exceed the noise."""

from __future__ import annotations

import math
from collections import deque

from .detector import Detection, Unprotected
from .filters import SLOWER, Average, Baseline, chance
from .options import NewsOptions

_BUSIER_MOST = 0.5
"""A request rate above its average by more than this part counts as more than usual, however noisy the rate is."""

_FELL = 0.5
"""The request rate has fallen back when it is below this part of the maximum that it had since responses were first
seen."""

HEALTH_WINDOWS = 2
"""Number of measurement windows of AR (the mean rate of the fastest responses) that decide a move of a limit. AR moves
the limit again only after as many windows."""

_HEALTHY, _DEGRADED = 0.35, 0.45
"""Parts of the alarm's tolerance by which the mean AR of HEALTH_WINDOWS may be below its baseline. Up to the first part
AR is healthy, beyond the second it is degraded. Both parts are below 1, because a mistaken move of a limit costs less
than a mistaken alarm. Between the two parts the link is full, and this comparison does not move the limit."""

_SPANS = (1, 2, 4)
"""Numbers of consecutive measurement windows whose mean AR is compared with the average. The mean of n windows has
1/sqrt(n) of the noise of a single window, so it shows degradations that are too slight for a single window."""


class BaselineDetector:
    """The alarm by a baseline that does not learn from limited or congested intervals.

    A crowd may build up so slowly that the baseline follows it. Comparison with slower averages detects such a crowd,
    and the slower averages then replace the baseline. If a crowd may still be mistaken for usual traffic, a detection
    states the reason (``Unprotected``).

    The baseline does not change in a crowd, so Chen & Heidemann's condition 3 (AR above the baseline by delta) would
    never be true. Here the alarm is reset when AR is back within half the tolerance (at least delta) of the baseline.
    It is also reset when the request rate is no longer above usual, because responses are then slow for another reason
    than a crowd.
    """

    def __init__(self, options: NewsOptions) -> None:
        self.alarm = False
        self.learned = False
        """Whether the baseline has learned from the last observation."""
        self.healthy = self.degraded = False
        """Healthy: the mean AR of HEALTH_WINDOWS is so close to its reference that more connections could be admitted.
        Degraded: this mean is below the reference by more than the part _DEGRADED of the alarm's tolerance."""
        self._options = options
        self._intervals = options.production.intervals
        """Number of intervals in the last measurement window. Two readings of AR that are this many intervals apart
        have no interval in common."""
        self._readings: deque[float] = deque(maxlen=_most_readings(options))
        self._ar = Baseline(options.production.gain)
        self._requests = Baseline(options.production.gain)
        self._found = Baseline(options.production.gain)
        """The average of AR under a limit that was already in force before there was a baseline."""
        self.fell_back = False
        """Whether the last observation showed that the averages had learned from a crowd; slow averages then replaced
        them."""
        self._every = Baseline(options.production.gain)
        """The average of requests per second over all intervals without a limit, including those without responses."""
        self._risen: tuple[int, float] | None = None
        """Set if the request rate was already above usual when responses were first seen: the number of that interval,
        and the maximum of the average request rate since then, per second."""
        self._best = 0.0, 0.0
        """The slow averages of AR and of the request rate at the time when AR's slow average was highest."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; baseline and alarm stay."""
        self._options = options
        self._readings = deque(self._readings, maxlen=_most_readings(options))
        for baseline in (self._ar, self._requests, self._found, self._every):
            baseline.gain = options.production.gain

    @property
    def warm(self) -> bool:
        """Whether the baseline contains two windows, so that AR can be compared with it."""
        return self._ar.count >= 2 * self._options.production.intervals

    @property
    def kept(self) -> tuple[Average, Average] | None:
        """The averages of AR in bit/s and of requests per second, to be saved for a later process; None until
        ``warm``."""
        ar, requests = self._ar.kept, self._requests.kept
        return (ar, requests) if self.warm and ar and requests else None

    def restore(self, ar: Average, requests: Average) -> None:
        """Continue from the averages of an earlier process."""
        self._ar.restore(ar)
        self._requests.restore(requests)

    @property
    def reference(self) -> float | None:
        """AR in bit/s with which the effect of a limit is compared. This is the baseline or, until there is one, AR
        under a limit that was already in force."""
        return (self._ar if self.warm else self._found).average

    @property
    def usual(self) -> float:
        """The usual requests per second over all destinations; 0 while they are unknown."""
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
        """Decide by the measurements of one window whether there is an alarm, and learn from a healthy window.

        ``ar`` is in bit/s, None without evidence; ``offered`` are requests per second, counted for ``seconds`` (0:
        variation by chance is not considered). ``sick``: a server or a flood is known to be the cause of slow
        responses. ``evident``: there were enough flows for a mean of the fastest part.

        The baseline learns nothing while a limit is in force, or without evidence: an idle network shows nothing about
        a busy one. Once the baseline is warm, it also learns nothing during an alarm, while ``sick``, or while there
        are more requests than usual and responses are not clearly healthy.
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
        # This comparison uses the tolerance alone, without the noise. A crowd that builds up slowly increases the
        # noise; with it in the tolerance, the baseline would learn from the crowd.
        more = request_average is not None and offered > request_average * (1 + options.tolerance)
        congested = more and not (recovered and self.healthy)
        self.learned = (
            ar is not None and evident and not limiting and not (self.warm and (self.alarm or congested or sick))
        )
        if not limiting:
            self._doubt(offered, seconds)
        if ar is not None and self._learns():
            self._ar.fold(ar)
            self._requests.fold(offered)
        unprotected = None if limiting or self.alarm else self._unprotected
        return Detection(self.alarm, ar_average, request_average, slower, busier, recovered, unprotected)

    def _learns(self) -> bool:
        """Return whether the baseline learns from the window that `observe` processes."""
        return self.learned

    def _recovered(self, average: float, width: float) -> bool:
        """Return whether the newest AR is at most half of ``width`` (the tolerance, a part of the average) or delta
        below an average, whichever is more."""
        return self._readings[-1] >= average * (1 - max(self._options.tolerance, width / 2))

    def _busier(self, offered: float, average: float, seconds: float) -> bool:
        """Return whether more requests are offered than the average. The difference must exceed the noise and, unless
        ``seconds`` is 0, the variation by chance of a count over ``seconds``.

        The average of few requests is itself subject to chance, so the variation by chance is computed around the slow
        average if that is higher.
        """
        options, extra = self._options, self._options.production
        busy = self._requests.tolerance(options.tolerance, extra.noise, _BUSIER_MOST)
        usual = max(average, self._requests.slow or 0.0)
        by_chance = seconds > 0 and offered - usual <= chance(usual / seconds)
        return offered > average * (1 + busy) and not by_chance

    def _crept(self, offered: float, width: float, seconds: float) -> bool:
        """Return whether responses are slower and requests more frequent than their slow averages. The faster averages
        have then learned from a crowd."""
        ar, requests = self._ar.slow, self._requests.slow
        if ar is None or requests is None or not self._readings or self._recovered(ar, width):
            return False
        return self._lastingly_down(ar, width) and self._busier(offered, requests, seconds)

    def _doubt(self, offered: float, seconds: float) -> None:
        """Record the reasons to doubt the baseline: the request rate was already above usual when responses were first
        seen, or responses have slowed down since AR's slow average was highest.

        The first reason lapses after the time constant of the slow averages. It also lapses when the request rate falls
        back, and the baseline then restarts.
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
        """Return whether a baseline contains enough observations for an estimate of its noise."""
        extra = self._options.production
        return baseline.count >= max(2 * extra.intervals, round(extra.baseline_s / extra.detection_s))

    def _find(self, ar: float, *, limiting: bool, evident: bool) -> None:
        """Update the mean AR under a limit, which stands in for a baseline until there is one.

        The mean covers the first ``baseline_s`` seconds under the limit. It starts anew if AR stays above it: the
        servers' queue then was still draining when it was measured. It is reset without a limit, and once there is a
        baseline.
        """
        if self.warm or not limiting:
            self._found = Baseline(self._options.production.gain)
        elif evident:
            if self._full(self._found) and self._mean_share(self._found) > 1 + self._margin(self._found, _DEGRADED):
                self._found = Baseline(self._options.production.gain)
            if not self._full(self._found):
                self._found.fold(ar)

    def _examine(self, reference: Baseline) -> None:
        """Compare AR with a reference. Before the reference has enough observations, AR is neither healthy nor
        degraded."""
        if self.warm or self._full(self._found):
            share = self._mean_share(reference)
            self.healthy = share >= 1 - self._margin(reference, _HEALTHY)
            self.degraded = share < 1 - self._margin(reference, _DEGRADED)

    def _mean_share(self, reference: Baseline) -> float:
        """Return the mean AR of HEALTH_WINDOWS as a fraction of a reference's average; 1 if the reference is empty."""
        return self._mean(HEALTH_WINDOWS, reference.average or 0.0) / reference.average if reference.average else 1.0

    def _margin(self, reference: Baseline, share: float) -> float:
        """Return ``share`` of the tolerance around a reference, at least delta."""
        extra = self._options.production
        width = reference.tolerance(self._options.tolerance, extra.noise, extra.tolerance_max)
        return max(self._options.tolerance, share * width)

    def _mean(self, windows: int, default: float) -> float:
        """Return the mean AR of the last ``windows`` consecutive windows; ``default`` before the first window."""
        readings = list(self._readings)[:: -self._intervals][:windows]
        return sum(readings) / len(readings) if readings else default

    def _lastingly_down(self, average: float, width: float) -> bool:
        """Return whether AR is below an average by more than noise. The required difference is ``width``, a part of the
        average, for one window, and less for the mean of several windows."""
        return any(
            len(self._readings) > (span - 1) * self._intervals
            and self._mean(span, average) < average * (1 - max(self._options.tolerance, width / math.sqrt(span)))
            for span in _SPANS
        )


def _most_readings(options: NewsOptions) -> int:
    return (_SPANS[-1] - 1) * max(options.production.intervals, options.response_intervals) + 1
