"""Progress of experiments, and an estimate of the time left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.experiment import Point


def duration(seconds: float) -> str:
    """Return a time as text: 45 s, 12 min, 1 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(slots=True)
class _Kind:
    """The points of one kind (computed or measured in a lab), and the seconds for which they occupy the machine."""

    estimated: float = 0.0
    done: float = 0.0
    """Estimated seconds of the points that are finished."""
    taken: float = 0.0

    def left_s(self) -> float:
        slower = self.taken / self.done if self.done else 1.0
        return (self.estimated - self.done) * slower


class Progress:
    """Counts the points of all experiments, and corrects the estimated time left by the times of finished points.

    Computed points and lab points have separate corrections, because the machine's speed changes only the time of
    computed points. A computed point occupies one of the `cores`, a lab point all cores.
    """

    def __init__(self, points: Sequence[Point], cores: int = 1) -> None:
        self._cores = cores
        self._count = len(points)
        self._done = 0
        self._computed, self._placed = _Kind(), _Kind()
        for point in points:
            self._kind(point).estimated += self._share(point, point.seconds)

    def heading(self, name: str, point: Point) -> str:
        """Return the line to print when a point begins."""
        return f"[{self._done + 1}/{self._count}] {name} {point.key}; {duration(self.left_s())} left"

    def ending(self, name: str, point: Point) -> str:
        """Return the line to print when a computed point ends."""
        return f"[{self._done}/{self._count}] {name} {point.key} done; {duration(self.left_s())} left"

    def finished(self, point: Point, seconds: float) -> None:
        """Record that the measurement of a point took `seconds`."""
        self._done += 1
        kind = self._kind(point)
        kind.done += self._share(point, point.seconds)
        kind.taken += self._share(point, seconds)

    def left_s(self) -> float:
        """Return the estimate of the time left, in seconds."""
        return self._computed.left_s() + self._placed.left_s()

    def _kind(self, point: Point) -> _Kind:
        return self._placed if point.group else self._computed

    def _share(self, point: Point, seconds: float) -> float:
        return seconds if point.group else seconds / self._cores
