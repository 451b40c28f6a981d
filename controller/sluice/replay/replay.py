"""A capture, and what the controller decides from it. Open loop: packets went where live decisions had sent them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sluice.config import Config
from sluice.loops.world import World

from .capture import Segment
from .driver import Driver, Event
from .measured import MeasuredSwitch


@dataclass(frozen=True, slots=True)
class Moment:
    """Something decided, and when."""

    time_s: float
    """Since the epoch, as in the capture."""
    event: Event


class Replay:
    """Runs once. ``world`` is the controller's, as it stands after each decision."""

    def __init__(self, config: Config) -> None:
        self.world = World.of(config)
        self.first_reading_s = 0.0
        """When the switch is first read, since the epoch: a base, which decides nothing; 0 until there is a segment."""
        self._switch = MeasuredSwitch(self.world)
        self._live: Sequence[float] = ()

    @property
    def segments(self) -> int:
        """TCP segments that counted for anything."""
        return self._switch.segments

    def run(
        self, segments: Iterable[Segment], start_s: float | None = None, late_s: Sequence[float] = ()
    ) -> Iterator[Moment]:
        """Every decision, in order.

        ``start_s``: the first reading, since the epoch; left out: the first segment.
        ``late_s``: when the live controller decided, in order; it reads a little late, and much later on a machine that
        has no core to give.
        """
        self._live = late_s
        driver: Driver | None = None
        now = 0.0
        try:
            for segment in segments:
                if driver is None:
                    self.first_reading_s = segment.time_s if start_s is None else start_s
                    driver = Driver(self.world, self._switch.memory, self.first_reading_s)
                # A capture of several interfaces may go back by a few microseconds.
                now = max(now, segment.time_s)
                yield from self._until(driver, now)
                self._switch.take(segment, self._share)
        finally:
            if driver is not None:
                driver.close()

    @property
    def _share(self) -> float:
        return 0.0 if self.world.news is None else self.world.news.sample_share

    def _until(self, driver: Driver, now_s: float) -> Iterator[Moment]:
        # Asked for every packet: `due` first, than which no step is earlier.
        while driver.due <= now_s and (moment_s := self._when(driver)) <= now_s:
            self._switch.settle(moment_s)
            for event in driver.step(moment_s):
                yield Moment(moment_s, event)

    def _when(self, driver: Driver) -> float:
        """When the next step was: when it is due, or as late as it was live."""
        due = driver.due
        if driver.decides:
            place = bisect_left(self._live, due)
            if place < len(self._live) and self._live[place] - due < self._shortest_s / 2:
                return self._live[place]
        return due

    @property
    def _shortest_s(self) -> float:
        """The shortest time between two decisions of one kind."""
        news = self.world.news
        periods = [view.balancer.options.period_s for view in self.world.views.values()]
        return min([*periods, *([] if news is None else [news.config.interval_s])])
