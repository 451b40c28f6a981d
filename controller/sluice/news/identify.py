"""Identifies the hot spots of the present alarm by sampled packets and by the requests for each destination."""

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
"""During a crowd, another destination is a further hot spot if its requests are at least this many times the usual."""


class Identification:
    """The hot-spot table and, in production mode, each destination's usual request rate.

    Samples count only while the alarm is set, or in the observation that sets it. The destination with the most samples
    is determined as long as the alarm is set. If another destination overtakes it, the limit moves to that destination;
    production mode leaves the first limit in force, and can start another limit.

    In production mode a destination whose requests do not exceed its usual rate beyond chance is no hot spot. It may
    receive many packets for another reason, such as an upload or acknowledgements of a bulk transfer. A destination
    that the switch does not count yet may be a hot spot. Once it is counted, it is a hot spot only if its requests
    alone raise those of all destinations by delta. Otherwise it is no hot spot until the alarm is reset.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self.table = HotSpotTable(options.table_size)
        self._usual: dict[Packed, Baseline] = {}
        self._unasked: set[Packed] = set()
        """Destinations without a usual rate whose requests, counted since the alarm was set, turned out to be few."""

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters. If the table size has changed, the table starts empty."""
        self._options = options
        if options.table_size != self.table.size:
            self.table = HotSpotTable(options.table_size)
        for usual in self._usual.values():
            usual.gain = options.production.gain

    def clear(self) -> None:
        """Drop all samples, and forget which destinations had few requests, because there is no alarm."""
        self.table.clear()
        self._unasked.clear()

    def add(self, time_s: float, destinations: Iterable[Packed]) -> None:
        """Count samples, and drop destinations that had no sample for ``table_idle_intervals`` intervals."""
        self.table.add(time_s, destinations)
        self.table.expire(time_s, self._options.table_idle_intervals * self._options.interval_s)

    def learn(self, interval: Interval) -> None:
        """Learn each destination's usual request rate from a healthy interval, and forget destinations that the switch
        no longer counts."""
        self._usual = {i: usual for i, usual in self._usual.items() if i in interval.requests}
        for destination, requests in interval.requests.items():
            usual = self._usual.setdefault(destination, Baseline(self._options.production.gain))
            usual.fold(requests.offered / interval.seconds)

    def fall_back(self) -> None:
        """Replace the usual rates by their slow averages, because what was learned recently was a crowd."""
        for usual in self._usual.values():
            usual.fall_back()

    @property
    def kept(self) -> dict[Packed, Average]:
        """Each destination's usual requests per second, to be saved for a later process."""
        return {i: average for i, usual in self._usual.items() if (average := usual.kept) is not None}

    def restore(self, earlier: Mapping[Packed, Average]) -> None:
        """Continue from the averages that an earlier process saved."""
        for destination, average in earlier.items():
            usual = self._usual[destination] = Baseline(self._options.production.gain)
            usual.restore(average)

    def usual(self, destination: Packed) -> float:
        """Return a destination's usual requests per second; 0 if they are unknown."""
        baseline = self._usual.get(destination)
        return (baseline.average or 0.0) if baseline else 0.0

    def leader(self, window: MeasurementWindow, incumbent: Packed | None, *, by_requests: bool) -> Packed | None:
        """Return the destination with the most samples. If several have equally many, this is the ``incumbent`` or, if
        it is not among them, the lowest address. Returns None if no destination has samples, or if all are excluded.

        ``by_requests`` excludes destinations whose requests are known not to exceed their usual rate.
        """
        if not by_requests:
            return self.table.hottest(incumbent)
        return self.table.hottest(incumbent, lambda destination: self._eligible(destination, window))

    def _eligible(self, destination: Packed, window: MeasurementWindow) -> bool:
        """Return whether a destination's requests exceed its usual rate, or may exceed it because the switch does not
        count them yet."""
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
        """Return the hot spots in addition to the ``limited`` ones, in descending order of samples.

        During a crowd the requests for all destinations rise a little. So a further hot spot must have at least
        _FURTHER times its usual requests, beyond chance. In addition, its own rise must raise the requests for all
        destinations by half of delta. Of the destinations that the switch does not count yet, only the one with the
        most samples is returned.
        """
        spots: list[Packed] = []
        unknown = False
        least = self._options.tolerance / 2 * sum(usual.average or 0.0 for usual in self._usual.values())
        for destination in self.table.ranked():
            if destination in limited or not self._eligible(destination, window):
                continue
            offered, seconds = window.counted(destination)
            most = max(self.usual(destination) * _FURTHER, self.usual(destination) + least) * seconds
            if seconds and offered > most + chance(most):
                spots.append(destination)
            elif not seconds and not unknown:
                unknown = True
                spots.append(destination)
        return spots

    def known(self, destination: Packed) -> bool:
        """Return whether a destination's usual request rate has been learned."""
        return destination in self._usual

    def up(self, destination: Packed, rate: float) -> bool:
        """Return whether ``rate`` requests per second are more than usual for a destination. If its usual rate is
        unknown, return whether these requests alone raise those of all destinations by delta."""
        tolerance = self._options.tolerance
        if self.known(destination):
            return rate > self.usual(destination) * (1 + tolerance)
        return rate > tolerance * sum(usual.average or 0.0 for usual in self._usual.values())

    def risen(self, destination: Packed, window: MeasurementWindow) -> bool:
        """Return whether a destination's requests in the window exceed its usual rate beyond chance."""
        return self._risen(destination, *window.counted(destination))

    def _risen(self, destination: Packed, offered: int, seconds: float) -> bool:
        """Return whether ``offered`` requests in ``seconds`` are more than usual for a destination, beyond chance."""
        usual = self.usual(destination) * seconds
        return seconds > 0 and self.up(destination, offered / seconds) and offered - usual > chance(usual)

    @property
    def enough(self) -> bool:
        """Whether there are enough samples to determine the hot spot before the interval ends."""
        return self.table.hits >= self._options.sample_min
