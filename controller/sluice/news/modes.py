"""The modes of flash-crowd control as strategies: each has a detector for the alarm and a regulator for the limit.

The class `News` measures, determines the hot spot and publishes decisions. All differences between the modes are in
this module.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from .baseline_detector import BaselineDetector
from .decision import Asked, Target
from .detector import Detection, PaperDetector
from .identify import Identification
from .options import NewsMode, NewsOptions
from .production import Health, ProductionRegulator
from .regulator import PaperRegulator
from .scoreboard import Scoreboard
from .usual import Usual
from .verdict import Cause
from .window import Measurement


@dataclass(frozen=True, slots=True)
class Candidate:
    """A destination on which a limit may be started."""

    target: Target
    rate: float
    """The destination's present rate of admitted connections, per second."""
    ar: float | None
    """AR in bit/s; None without evidence."""
    ar_average: float | None
    """The average with which AR was compared, in bit/s."""
    refuted: bool = False
    """Whether the counts of the destination's servers show that its requests are no crowd (``pools.refutes``)."""


class ControlMode(ABC):
    """The alarm and the limits of the destinations behind one switch. Limits are in connections per second."""

    limits: ClassVar[bool] = True
    """Whether the mode sets limits itself. Otherwise only configured limits are in force."""
    freezes: ClassVar[bool] = False
    """Whether the mode's verdicts can keep the weights of services as they are."""
    several: ClassVar[bool] = False
    """Whether each crowd has its own limit, and a new alarm preserves the limits in force."""
    learns_usual: ClassVar[bool] = False
    """Whether the mode learns the usual traffic, as a baseline of the alarm and of each destination's requests. In such
    a mode a destination whose requests do not exceed its usual rate is no hot spot."""

    @abstractmethod
    def __init__(self, options: NewsOptions) -> None:
        """Start without an alarm, a limit or a baseline."""

    @property
    @abstractmethod
    def alarm(self) -> bool:
        """Whether the alarm is set."""

    @property
    @abstractmethod
    def rates(self) -> Mapping[Target, float]:
        """The limits in force in connections per second, by target. The oldest limit is first."""

    @property
    def scores(self) -> Scoreboard:
        """The scores of the directions in which the limit moves (Chen & Heidemann, section 5.2)."""
        return Scoreboard()

    @abstractmethod
    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters."""

    @abstractmethod
    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        """Continue from a limit that is in the switch. A mode without ``several`` adopts only the first limit."""

    @abstractmethod
    def drop(self) -> None:
        """Remove all limits. New limits may be started later."""

    @abstractmethod
    def detect(self, measured: Measurement, cause: Cause, repeated: float) -> Detection:
        """Decide the alarm for one interval. ``cause`` is the cause in the last verdict. ``repeated`` is the number of
        requests per second that clients repeat because a failing server did not answer them."""

    @property
    def learned(self) -> bool:
        """Whether the last interval was healthy, so that usual traffic can be learned from it."""
        return False

    @property
    def fell_back(self) -> bool:
        """Whether the last interval showed that a crowd was learned as usual traffic. The mode then replaces every
        average by the slow average of the same quantity."""
        return False

    def kept(self, spot: Identification) -> Usual | None:
        """Return the usual traffic, to be saved for a later process. None until it is learned, and in modes that do not
        learn."""
        return None

    def restore(self, usual: Usual, spot: Identification) -> None:  # noqa: B027
        """Continue from the usual traffic that an earlier process saved."""

    @abstractmethod
    def start(self, candidate: Candidate, spot: Identification) -> bool:
        """Start a limit on a target. Returns False, and starts no limit, if the requests for the target are no crowd,
        or if it is still uncertain whether they are."""

    @abstractmethod
    def move(self, detection: Detection, measured: Measurement, crowds: Mapping[Target, Asked], *, aimed: bool) -> None:
        """Adapt the limits of ``crowds`` after one interval. ``aimed``: whether the hot spot of the present alarm has a
        limit."""


class PaperMode(ControlMode):
    """The method as published (Chen & Heidemann, sections 4.3 and 5.2)."""

    def __init__(self, options: NewsOptions) -> None:
        self._detector = PaperDetector(options.tolerance, options.gain_quiet, options.gain_alarm)
        self._limit = PaperRegulator(options)
        self._target: Target = None
        self._was_set = False

    @property
    def alarm(self) -> bool:
        return self._detector.alarm

    @property
    def rates(self) -> Mapping[Target, float]:
        return {} if self._limit.rate is None else {self._target: self._limit.rate}

    @property
    def scores(self) -> Scoreboard:
        return self._limit.scores

    def configure(self, options: NewsOptions) -> None:
        self._detector.configure(options.tolerance, options.gain_quiet, options.gain_alarm)
        self._limit.configure(options)

    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        if self._limit.rate is None:
            self._target = target
            self._limit.adopt(rate)

    def drop(self) -> None:
        self._limit.drop()

    def detect(self, measured: Measurement, cause: Cause, repeated: float) -> Detection:
        self._was_set = self.alarm
        return self._detector.observe(measured.ar, measured.admitted)

    def start(self, candidate: Candidate, spot: Identification) -> bool:
        self._target = candidate.target
        self._limit.start(candidate.rate)
        return True

    def move(self, detection: Detection, measured: Measurement, crowds: Mapping[Target, Asked], *, aimed: bool) -> None:
        """Adapt the limit as in section 5.2. While the alarm stays set (1 to 1), the limit moves; when the alarm is
        reset (1 to 0), the last move is credited."""
        if self._was_set and not detection.alarm:
            self._limit.release()
        elif self._was_set and aimed:
            self._limit.adjust()


class StaticMode(PaperMode):
    """Chen & Heidemann's alarm without limits of its own: only the configured limits are in force."""

    limits = False

    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        """Do nothing: this mode ignores a limit that is in the switch."""


class ProductionMode(ControlMode):
    """A baseline learned from healthy traffic alone, and for each limit a search for the capacity."""

    freezes = True
    several = True
    learns_usual = True

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self._detector = BaselineDetector(options)
        self._crowds: dict[Target, ProductionRegulator] = {}
        """The regulator of each target, with its own search. The same response rates control all regulators."""

    @property
    def alarm(self) -> bool:
        return self._detector.alarm

    @property
    def rates(self) -> Mapping[Target, float]:
        return {target: crowd.rate for target, crowd in self._crowds.items() if crowd.rate is not None}

    def configure(self, options: NewsOptions) -> None:
        self._options = options
        self._detector.configure(options)
        for crowd in self._crowds.values():
            crowd.configure(options)

    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        # Without a baseline, the limit itself is used as the usual rate.
        self._crowds[target] = crowd = ProductionRegulator(self._options)
        crowd.adopt(rate, self._usual(target, spot) if self._detector.warm else rate)

    def drop(self) -> None:
        self._crowds.clear()

    def detect(self, measured: Measurement, cause: Cause, repeated: float) -> Detection:
        return self._detector.observe(
            measured.ar,
            max(0.0, measured.offered - repeated),
            limiting=bool(self._crowds),
            sick=cause in (Cause.SICK, Cause.FLOOD),
            evident=measured.flows * self._options.fast_share >= 1,
            seconds=measured.seconds,
        )

    @property
    def learned(self) -> bool:
        return self._detector.learned

    @property
    def fell_back(self) -> bool:
        return self._detector.fell_back

    def kept(self, spot: Identification) -> Usual | None:
        averages = self._detector.kept
        return None if averages is None else Usual(*averages, spot.kept)

    def restore(self, usual: Usual, spot: Identification) -> None:
        self._detector.restore(usual.ar, usual.requests)
        spot.restore(usual.destinations)

    def start(self, candidate: Candidate, spot: Identification) -> bool:
        if candidate.refuted:
            return False
        target, rate = candidate.target, candidate.rate
        if target is not None and not spot.known(target) and not spot.up(target, rate):
            return False  # many packets but few requests: the next complete interval decides
        self._crowds[target] = crowd = ProductionRegulator(self._options)
        crowd.start(rate, _share(candidate.ar, candidate.ar_average), self._usual(target, spot))
        return True

    def _usual(self, target: Target, spot: Identification) -> float:
        """Return a target's usual requests per second."""
        return self._detector.usual if target is None else spot.usual(target)

    def move(self, detection: Detection, measured: Measurement, crowds: Mapping[Target, Asked], *, aimed: bool) -> None:
        """Make one step of each search for the capacity. A search ends when its limit is not needed."""
        detector = self._detector
        share = _share(measured.ar, detector.reference)
        degraded = share is not None and detector.degraded
        # If the limit was in force before there was a baseline, the usual rate is unknown. The limit then counts as
        # needed while it binds.
        busier = detection.busier or not detector.warm
        health = Health(share, healthy=detector.healthy, degraded=degraded, busier=busier, lasting=measured.lasting)
        # The sum of all requests can exceed its usual value because of other targets, and does so as long as any crowd
        # lasts. So the sum decides for a target only if no other target is limited and its usual rate is unknown.
        is_single = len(self._crowds) == 1
        for target, requested in crowds.items():
            crowd = self._crowds[target]
            has_usual = requested.known and detector.warm
            up = requested.up or (busier and is_single and not has_usual)
            crowd.observe(replace(health, busier=up), requested.requests, requested.seconds)
            if crowd.rate is None:
                del self._crowds[target]


MODES: Mapping[NewsMode, type[ControlMode]] = {
    NewsMode.PAPER: PaperMode,
    NewsMode.STATIC: StaticMode,
    NewsMode.PRODUCTION: ProductionMode,
}


def _share(ar: float | None, average: float | None) -> float | None:
    """Return AR in parts of its average; None without evidence."""
    return None if ar is None or not average else ar / average
