"""Production mode's detector: a baseline that only healthy traffic teaches, and thresholds above the noise."""

from __future__ import annotations

from .detector import Detection
from .filters import Baseline
from .options import NewsOptions

_BUSIER_MOST = 0.5
"""However noisy, half as many requests again are more than usual."""


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
        self._options = options
        self._ar = Baseline(options.production.gain)
        self._requests = Baseline(options.production.gain)

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters; baseline and alarm stay."""
        self._options = options
        self._ar.gain = self._requests.gain = options.production.gain

    @property
    def warm(self) -> bool:
        """Enough was learned to judge by: two windows full."""
        return self._ar.count >= 2 * self._options.production.intervals

    @property
    def usual(self) -> float:
        """The usual requests per second over all destinations; 0 while nothing is known."""
        return self._requests.average or 0.0

    def observe(
        self, ar: float | None, offered: float, *, limiting: bool, sick: bool, evident: bool = True
    ) -> Detection:
        """Decide on one window: AR in bit/s and offered requests per second.

        Nothing is learned while a limit is in force, while responses are slow under more requests than usual, or
        while a server or a flood is known to be the cause; except to become warm, without which nothing can be
        judged. Nor is anything learned of too few flows to have a fastest part (not ``evident``): what an idle
        network carries is no measure for a busy one.
        """
        options, extra = self._options, self._options.production
        ar_average, request_average = self._ar.average, self._requests.average
        slower = busier = recovered = False
        if request_average is not None:
            busy = self._requests.tolerance(options.tolerance, extra.noise, _BUSIER_MOST)
            busier = offered > request_average * (1 + busy)
        if ar is not None:
            width = self._ar.tolerance(options.tolerance, extra.noise, extra.tolerance_max)
            slower = ar_average is not None and ar < ar_average * (1 - width)
            recovered = ar_average is None or ar >= ar_average * (1 - max(options.tolerance, width / 2))
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
        congested = more and not recovered
        if evident and (not self.warm or not (limiting or self.alarm or congested or sick)):
            self.learned = True
            self._ar.fold(ar)
            self._requests.fold(offered)
        return Detection(self.alarm, ar_average, request_average, slower, busier, recovered)
