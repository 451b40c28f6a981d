"""Whom to limit: the hot spot of the present alarm, from the samples and the requests of each destination."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sluice.addresses import Packed

from .decision import Target
from .filters import Average, Baseline, chance
from .hotspot import HotSpotTable
from .options import NewsOptions
from .requests import Interval
from .window import MeasurementWindow

_FURTHER = 1.5
"""Times its usual requests make a destination a further hot spot."""


class Identification:
    """The hot-spot table and, in production mode, each destination's usual request rate.

    Samples count only while the alarm is set, or when they came with the observation that set it. The leader is
    looked for as long as the alarm is set: when another destination overtakes, the limit moves to it.
    In production mode a destination whose requests are not up, or by chance only, is no hot spot, however many packets
    it gets (an upload, a bulk transfer's acknowledgements). One that nobody counts yet may be; once it is counted, it
    is one only if it alone gets enough to have raised the requests of all by delta, and otherwise none while the alarm
    is set.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self.table = HotSpotTable(options.table_size)
        self._usual: dict[Packed, Baseline] = {}
        self._unasked: set[Packed] = set()
        """Counted since the alarm was set, and found to have few requests."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters. A changed table size starts the table afresh."""
        self._options = options
        if options.table_size != self.table.size:
            self.table = HotSpotTable(options.table_size)
        for usual in self._usual.values():
            usual.gain = options.production.gain

    def clear(self) -> None:
        """There is no alarm: start counting afresh."""
        self.table.clear()
        self._unasked.clear()

    def add(self, time_s: float, destinations: Iterable[Packed]) -> None:
        """Count samples and drop what has been idle too long."""
        self.table.add(time_s, destinations)
        self.table.expire(time_s, self._options.table_idle_intervals * self._options.interval_s)

    def learn(self, interval: Interval) -> None:
        """A healthy interval: what each destination usually gets. One that is no longer counted is forgotten."""
        self._usual = {i: usual for i, usual in self._usual.items() if i in interval.requests}
        for destination, requests in interval.requests.items():
            usual = self._usual.setdefault(destination, Baseline(self._options.production.gain))
            usual.fold(requests.offered / interval.seconds)

    def fall_back(self) -> None:
        """What was learned of late was a crowd."""
        for usual in self._usual.values():
            usual.fall_back()

    @property
    def kept(self) -> dict[Packed, Average]:
        """What each destination usually gets, requests per second."""
        return {i: average for i, usual in self._usual.items() if (average := usual.kept) is not None}

    def restore(self, kept: Mapping[Packed, Average]) -> None:
        """Go on from what an earlier process knew."""
        for destination, average in kept.items():
            usual = self._usual[destination] = Baseline(self._options.production.gain)
            usual.restore(average)

    def usual(self, destination: Packed) -> float:
        """A destination's usual requests per second; 0 when nothing is known."""
        baseline = self._usual.get(destination)
        return (baseline.average or 0.0) if baseline else 0.0

    def leader(self, window: MeasurementWindow, incumbent: Packed | None, *, by_requests: bool) -> Packed | None:
        """Return the destination with the most samples; of equals the incumbent. None without samples.

        ``by_requests`` leaves out destinations whose requests are known not to be up.
        """
        if not by_requests:
            return self.table.hottest(incumbent)
        return self.table.hottest(incumbent, lambda destination: self._eligible(destination, window))

    def _eligible(self, destination: Packed, window: MeasurementWindow) -> bool:
        """Its requests have risen, or may have: nobody counts it yet."""
        if destination in self._unasked:
            return False
        offered, seconds = window.counted(destination)
        if self._risen(destination, offered, seconds):
            return True
        if self.known(destination):
            return False
        if seconds >= self._options.interval_s:
            self._unasked.add(destination)
        return destination not in self._unasked

    def more(self, window: MeasurementWindow, limited: Collection[Target]) -> list[Packed]:
        """Hot spots beside those that are limited, the one with the most packets first.

        Beside a crowd everybody's requests rise a little: a further crowd has half as many again as usual, not by
        chance, and so many more that they alone raise those of all by half of delta. Of the destinations that nobody
        counts one at a time may be one.
        """
        found: list[Packed] = []
        unknown = False
        least = self._options.tolerance / 2 * sum(usual.average or 0.0 for usual in self._usual.values())
        for destination in self.table.ranked():
            if destination in limited or not self._eligible(destination, window):
                continue
            offered, seconds = window.counted(destination)
            most = max(self.usual(destination) * _FURTHER, self.usual(destination) + least) * seconds
            if seconds and offered > most + chance(most):
                found.append(destination)
            elif not seconds and not unknown:
                unknown = True
                found.append(destination)
        return found

    def known(self, destination: Packed) -> bool:
        """Its usual requests are."""
        return destination in self._usual

    def up(self, destination: Packed, rate: float) -> bool:
        """So many requests per second are more than usual for a destination; for a new one, they are a crowd's."""
        tolerance = self._options.tolerance
        if self.known(destination):
            return rate > self.usual(destination) * (1 + tolerance)
        return rate > tolerance * sum(usual.average or 0.0 for usual in self._usual.values())

    def risen(self, destination: Packed, window: MeasurementWindow) -> bool:
        """A destination's requests in the window are up, and not by chance."""
        return self._risen(destination, *window.counted(destination))

    def _risen(self, destination: Packed, offered: int, seconds: float) -> bool:
        """The requests counted for a destination are up, and not by chance."""
        usual = self.usual(destination) * seconds
        return seconds > 0 and self.up(destination, offered / seconds) and offered - usual > chance(usual)

    @property
    def enough(self) -> bool:
        """So many samples that the leader can be named before the interval ends."""
        return self.table.hits >= self._options.sample_min
