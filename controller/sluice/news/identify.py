"""Whom to limit: the hot spot of the present alarm, from the samples and the requests of each destination."""

from __future__ import annotations

from collections.abc import Iterable

from .filters import Baseline
from .hotspot import HotSpotTable
from .options import NewsMode, NewsOptions
from .requests import Interval
from .window import MeasurementWindow


class Identification:
    """The hot-spot table and, in production mode, each destination's usual request rate.

    Samples count only while the alarm is set, or when they came with the observation that set it. The leader is
    looked for as long as the alarm is set: when another destination overtakes, the limit moves to it.
    In production mode a destination whose requests are not up is no hot spot, however many packets it gets (an
    upload, a bulk transfer's acknowledgements); one that nobody counts yet may be.
    """

    def __init__(self, options: NewsOptions) -> None:
        self._options = options
        self.table = HotSpotTable(options.table_size)
        self._usual: dict[int, Baseline] = {}

    def configure(self, options: NewsOptions) -> None:
        """Take over changed parameters. A changed table size starts the table afresh."""
        self._options = options
        if options.table_size != self.table.size:
            self.table = HotSpotTable(options.table_size)
        for usual in self._usual.values():
            usual.gain = options.production.gain

    def add(self, time_s: float, destinations: Iterable[int]) -> None:
        """Count samples and drop what has been idle too long."""
        self.table.add(time_s, destinations)
        self.table.expire(time_s, self._options.table_idle_intervals * self._options.interval_s)

    def learn(self, interval: Interval) -> None:
        """A healthy interval: what each destination usually gets. One that is no longer counted is forgotten."""
        self._usual = {i: usual for i, usual in self._usual.items() if i in interval.requests}
        for destination, requests in interval.requests.items():
            usual = self._usual.setdefault(destination, Baseline(self._options.production.gain))
            usual.fold(requests.offered / interval.seconds)

    def usual(self, destination: int) -> float:
        """A destination's usual requests per second; 0 when nothing is known."""
        baseline = self._usual.get(destination)
        return (baseline.average or 0.0) if baseline else 0.0

    def leader(self, window: MeasurementWindow, incumbent: int | None) -> int | None:
        """The hot spot as far as is known; of equals the incumbent."""
        if self._options.mode is not NewsMode.PRODUCTION:
            return self.table.hottest(incumbent)
        seconds = window.seconds

        def up(destination: int) -> bool:
            offered = window.requests(destination).offered / seconds
            return destination not in self._usual or offered > self.usual(destination) * (1 + self._options.tolerance)

        return self.table.hottest(incumbent, up)

    @property
    def enough(self) -> bool:
        """So many samples that the leader can be named before the interval ends."""
        return self.table.hits >= self._options.sample_min
