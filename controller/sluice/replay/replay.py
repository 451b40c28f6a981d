"""Replays a capture: computes the controller's decisions from the captured packets. The replay is an open loop: its
decisions do not change where the captured packets went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sluice.config.model import Config
from sluice.features import CrowdControl, world_of

from .capture import Segment
from .driver import Driver, Event, LiveTimes
from .switchmodel import SwitchModel


@dataclass(frozen=True, slots=True)
class Moment:
    """A decision, and the time at which it was made."""

    time_s: float
    """The time of the decision as Unix time, by the capture's time stamps."""
    event: Event


class Replay:
    """One replay of a capture, which can run only once. ``world``: the controller's state after the latest decision."""

    def __init__(self, config: Config) -> None:
        self.world = world_of(config)
        self.first_reading_s = 0.0
        """Unix time of the first reading of the switch, which serves only as a base for later readings; 0 before the
        first segment."""
        self._switch = SwitchModel(self.world)

    @property
    def segments(self) -> int:
        """The number of TCP segments from which counts were computed (`SwitchModel.segments`)."""
        return self._switch.segments

    @property
    def at_servers(self) -> bool:
        """Whether any segment was to or from a server's own endpoint."""
        return self._switch.at_servers

    def run(
        self, segments: Iterable[Segment], start_s: float | None = None, live: LiveTimes | None = None
    ) -> Iterator[Moment]:
        """Yield every decision, in order.

        ``start_s``: Unix time of the first reading; default: the first segment's time. ``live``: Unix times of the live
        controller's decisions, at which the replay then decides too: they are slightly later than the regular grid, and
        on a busy machine much later.
        """
        driver: Driver | None = None
        now = 0.0
        try:
            for segment in segments:
                if driver is None:
                    self.first_reading_s = segment.time_s if start_s is None else start_s
                    driver = Driver(self.world, self._switch.memory, self.first_reading_s, live=live)
                # In a capture of several interfaces, times may go back by some microseconds.
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
