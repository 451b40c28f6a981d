"""A capture, and what the controller decides from it. Open loop: packets went where live decisions had sent them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sluice.config.model import Config
from sluice.features import CrowdControl, world_of

from .capture import Segment
from .driver import Driver, Event, LiveTimes
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
        self.world = world_of(config)
        self.first_reading_s = 0.0
        """When the switch is first read, since the epoch: a base, which decides nothing; 0 until there is a segment."""
        self._switch = MeasuredSwitch(self.world)

    @property
    def segments(self) -> int:
        """TCP segments that counted for anything."""
        return self._switch.segments

    @property
    def at_servers(self) -> bool:
        """Whether one of them was to or from a server."""
        return self._switch.at_servers

    def run(
        self, segments: Iterable[Segment], start_s: float | None = None, live: LiveTimes | None = None
    ) -> Iterator[Moment]:
        """Every decision, in order.

        ``start_s``: the first reading, since the epoch; left out: the first segment.
        ``live``: when the live controller decided, since the epoch; it reads a little late, and much later on a machine
        that has no core to give.
        """
        driver: Driver | None = None
        now = 0.0
        try:
            for segment in segments:
                if driver is None:
                    self.first_reading_s = segment.time_s if start_s is None else start_s
                    driver = Driver(self.world, self._switch.memory, self.first_reading_s, live=live)
                # A capture of several interfaces may go back by a few microseconds.
                now = max(now, segment.time_s)
                yield from self._until(driver, now)
                self._switch.take(segment, self._share)
        finally:
            if driver is not None:
                driver.close()

    @property
    def _share(self) -> float:
        view = self.world[CrowdControl].view
        return 0.0 if view is None else view.sample_share

    def _until(self, driver: Driver, now_s: float) -> Iterator[Moment]:
        while (moment_s := driver.due) <= now_s:
            self._switch.settle(moment_s)
            for event in driver.step(moment_s):
                yield Moment(moment_s, event)
