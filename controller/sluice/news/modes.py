"""NEWS's modes as strategies: each has a detector for the alarm and a regulator for the limit.

`News` measures, names the hot spot and publishes; what the modes do unlike each other is here, and only here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from .baseline_detector import BaselineDetector
from .decision import Target
from .detector import Detection, PaperDetector
from .identify import Identification
from .options import NewsMode, NewsOptions
from .production import Health, ProductionRegulator
from .regulator import PaperRegulator
from .requests import Requests
from .scoreboard import Scoreboard
from .usual import Usual
from .verdict import Cause
from .window import Measurement


@dataclass(frozen=True, slots=True)
class Candidate:
    """A destination whose limit may start."""

    target: Target
    rate: float
    """Its currently admitted rate, connections per second."""
    ar: float | None
    """Average response rate of the fast connections, bit/s; None without evidence."""
    ar_average: float | None
    """What it was compared with, bit/s."""


class ControlMode(ABC):
    """Alarm and limit of one group of destinations. The limit is in connections per second; None: there is none."""

    limits = True
    """It sets limits itself."""
    freezes = False
    """Its verdicts hold R's weights still."""
    goes_on = False
    """A new alarm for a target that is limited goes on with its limit in place of a new start."""

    @property
    @abstractmethod
    def alarm(self) -> bool:
        """The alarm signal."""

    @property
    @abstractmethod
    def rate(self) -> float | None:
        """The limit in force."""

    @property
    def scores(self) -> Scoreboard:
        """What moves of the limit were worth (Chen & Heidemann, section 5.2)."""
        return Scoreboard()

    @abstractmethod
    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters."""

    @abstractmethod
    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        """Go on from a limit found in the switch."""

    @abstractmethod
    def drop(self) -> None:
        """Nothing is limited until the next start."""

    @abstractmethod
    def detect(self, measured: Measurement, cause: Cause) -> Detection:
        """One interval's alarm; ``cause`` is the last verdict's."""

    @property
    def learned(self) -> bool:
        """The last interval was healthy: what it shows is usual."""
        return False

    def kept(self, spot: Identification) -> Usual | None:
        """What it knows of usual traffic and can go on from; None while that is nothing, and in modes that cannot."""
        return None

    def restore(self, usual: Usual, spot: Identification) -> None:  # noqa: B027
        """Go on from what an earlier process knew."""

    @abstractmethod
    def start(self, candidate: Candidate, spot: Identification) -> bool:
        """Limit a target; False when it is not certain yet that it is the hot spot."""

    @abstractmethod
    def move(
        self, detection: Detection, measured: Measurement, target: Requests, seconds: float, *, aimed: bool
    ) -> bool:
        """The limit goes on. ``target`` are the target's requests in so many seconds; ``aimed``: the alarm was set
        before this interval, and the limit is on its hot spot. True when the hot spot is to be named anew."""


class PaperMode(ControlMode):
    """As published (Chen & Heidemann, sections 4.3 and 5.2)."""

    def __init__(self, options: NewsOptions) -> None:
        self._detector = PaperDetector(options.tolerance, options.gain_quiet, options.gain_alarm)
        self._limit = PaperRegulator(options)
        self._was_set = False

    @property
    def alarm(self) -> bool:
        return self._detector.alarm

    @property
    def rate(self) -> float | None:
        return self._limit.rate

    @property
    def scores(self) -> Scoreboard:
        return self._limit.scores

    def configure(self, options: NewsOptions) -> None:
        self._detector.configure(options.tolerance, options.gain_quiet, options.gain_alarm)
        self._limit.configure(options)

    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        self._limit.adopt(rate)

    def drop(self) -> None:
        self._limit.drop()

    def detect(self, measured: Measurement, cause: Cause) -> Detection:
        self._was_set = self.alarm
        return self._detector.observe(measured.ar, measured.admitted)

    def start(self, candidate: Candidate, spot: Identification) -> bool:
        self._limit.start(candidate.rate)
        return True

    def move(
        self, detection: Detection, measured: Measurement, target: Requests, seconds: float, *, aimed: bool
    ) -> bool:
        """1 to 1 and 1 to 0 of section 5.2."""
        if self._was_set and not detection.alarm:
            self._limit.release()
        elif self._was_set and aimed:
            self._limit.adjust()
        return False


class StaticMode(PaperMode):
    """Chen & Heidemann's alarm beside limits that the configuration sets."""

    limits = False

    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        """A limit that was found is forgotten."""


class ProductionMode(ControlMode):
    """A baseline that only healthy traffic teaches, and a search for the capacity."""

    freezes = True
    goes_on = True

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self._detector = BaselineDetector(options)
        self._limit = ProductionRegulator(options)

    @property
    def alarm(self) -> bool:
        return self._detector.alarm

    @property
    def rate(self) -> float | None:
        return self._limit.rate

    def configure(self, options: NewsOptions) -> None:
        self._options = options
        self._detector.configure(options)
        self._limit.configure(options)

    def adopt(self, target: Target, rate: float, spot: Identification) -> None:
        # What is usual is not known without a baseline: then this limit stands for it.
        self._limit.adopt(rate, self._usual(target, spot) if self._detector.warm else rate)

    def drop(self) -> None:
        self._limit = ProductionRegulator(self._options)

    def detect(self, measured: Measurement, cause: Cause) -> Detection:
        return self._detector.observe(
            measured.ar,
            measured.offered,
            limiting=self.rate is not None,
            sick=cause in (Cause.SICK, Cause.FLOOD),
            evident=measured.flows * self._options.fast_share >= 1,
        )

    @property
    def learned(self) -> bool:
        return self._detector.learned

    def kept(self, spot: Identification) -> Usual | None:
        averages = self._detector.kept
        return None if averages is None else Usual(*averages, spot.kept)

    def restore(self, usual: Usual, spot: Identification) -> None:
        self._detector.restore(usual.ar, usual.requests)
        spot.restore(usual.destinations)

    def start(self, candidate: Candidate, spot: Identification) -> bool:
        target, rate = candidate.target, candidate.rate
        if target is not None and not spot.known(target) and not spot.up(target, rate):
            return False  # many packets, few requests: the next whole interval tells
        self._limit.start(rate, _share(candidate.ar, candidate.ar_average), self._usual(target, spot))
        return True

    def _usual(self, target: Target, spot: Identification) -> float:
        """A target's usual requests per second."""
        return self._detector.usual if target is None else spot.usual(target)

    def move(
        self, detection: Detection, measured: Measurement, target: Requests, seconds: float, *, aimed: bool
    ) -> bool:
        """The search for the capacity, and its end when the limit is not needed."""
        detector = self._detector
        share = _share(measured.ar, detector.reference)
        degraded = share is not None and detector.degraded
        # What is usual is not known under a limit that was there from the beginning: it is needed while it binds.
        busier = detection.busier or not detector.warm
        health = Health(share, healthy=detector.healthy, degraded=degraded, busier=busier, lasting=measured.lasting)
        self._limit.observe(health, target, seconds)
        return self.rate is None


MODES: dict[NewsMode, type[PaperMode] | type[ProductionMode]] = {
    NewsMode.PAPER: PaperMode,
    NewsMode.STATIC: StaticMode,
    NewsMode.PRODUCTION: ProductionMode,
}


def _share(ar: float | None, average: float | None) -> float | None:
    """AR in parts of its average; None without evidence."""
    return None if ar is None or not average else ar / average
