"""Chen & Heidemann's detector: conditions 1 to 3 on AR and the request rate (sections 4.2 and 4.3, Fig. 7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .filters import HighLowFilter


class Unprotected(StrEnum):
    """Reasons for which a crowd might raise no alarm."""

    UNKNOWN = "how fast responses usually are is not known yet"
    RISEN = "requests were up already when responses were first seen"
    DRIFTED = "responses have slowed down for hours while requests rose"


@dataclass(frozen=True, slots=True)
class Detection:
    """A detector's result for one interval, and the averages with which it compared the measurements."""

    alarm: bool
    ar_average: float | None
    """The average of AR (the rate of the fastest responses) before this observation, in bit/s; None before the
    first."""
    request_average: float | None
    """The average request rate before this observation, in requests per second; None before the first. Production mode
    averages offered requests, the other modes admitted requests (R_p)."""
    slower: bool
    """Whether condition 1 is true: responses are degraded beyond the tolerance."""
    busier: bool
    """Whether condition 2 is true: requests exceed their average beyond the tolerance."""
    recovered: bool
    """Whether condition 3 is true: responses are faster than their average by delta (production mode: close to
    usual)."""
    unprotected: Unprotected | None = None
    """The reason for which a present or coming crowd may be mistaken for usual traffic. None: a crowd raises an alarm,
    or an alarm or a limit is already in force."""


class PaperDetector:
    """The alarm and the two long-term averages of Chen & Heidemann.

    The paper does not state the order of comparison and averaging. Here an observation is compared with the averages of
    the earlier observations; then the averages are updated with the gain of the new alarm state. With the gain of the
    state without alarm, a congested observation would dominate the averages, and condition 3 would reset the alarm at
    the first fluctuation. An interval without evidence on AR changes neither the alarm nor the averages.
    """

    def __init__(self, tolerance: float, gain_quiet: float, gain_alarm: float) -> None:
        self.tolerance = tolerance
        self.alarm = False
        self._ar = HighLowFilter(gain_quiet, gain_alarm)
        self._requests = HighLowFilter(gain_quiet, gain_alarm)

    def configure(self, tolerance: float, gain_quiet: float, gain_alarm: float) -> None:
        """Take over changed parameters; averages and alarm stay."""
        self.tolerance = tolerance
        for average in (self._ar, self._requests):
            average.gain_quiet, average.gain_alarm = gain_quiet, gain_alarm

    def observe(self, ar: float | None, requests: float) -> Detection:
        """Decide on one interval. ``ar`` is AR in bit/s; ``requests`` is R_p, the admitted requests per second."""
        ar_average, request_average = self._ar.average, self._requests.average
        slower = busier = recovered = False
        if ar is not None and ar_average is not None and request_average is not None:
            slower = ar < ar_average * (1 - self.tolerance)
            busier = requests > request_average * (1 + self.tolerance)
            recovered = ar > ar_average * (1 + self.tolerance)
            if not self.alarm and slower and busier:
                self.alarm = True
            elif self.alarm and recovered:
                self.alarm = False
        if ar is not None:
            self._ar.fold(ar, alarm=self.alarm)
            self._requests.fold(requests, alarm=self.alarm)
        return Detection(self.alarm, ar_average, request_average, slower, busier, recovered)
