"""How far it is, and how long it will take."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.experiment import Point


def duration(seconds: float) -> str:
    """Return a time in words: 45 s, 12 min, 1 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


class Progress:
    """Counts the points of all experiments; corrects the estimate by how long the finished ones took."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._count = len(points)
        self._estimated = sum(point.seconds for point in points)
        self._done = 0
        self._done_estimated = 0.0
        self._taken = 0.0

    def heading(self, name: str, point: Point) -> str:
        """Return the line for the screen at the beginning of a point."""
        return f"[{self._done + 1}/{self._count}] {name} {point.key}; {duration(self.left_s())} left"

    def finished(self, point: Point, seconds: float) -> None:
        """Take note of a point that was measured."""
        self._done += 1
        self._done_estimated += point.seconds
        self._taken += seconds

    def left_s(self) -> float:
        """Return the estimate of the time left, in seconds."""
        slower = self._taken / self._done_estimated if self._done_estimated else 1.0
        return (self._estimated - self._done_estimated) * slower
