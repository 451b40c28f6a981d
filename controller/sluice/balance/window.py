"""The ring of m differences, which equation 5 of Ohta & Andou sums."""

from __future__ import annotations

from collections import deque

from .counts import Counts, total


class Window:
    """The counts of the last m intervals of one server.

    Ohta & Andou reset the oldest of m counters. Here the oldest of m differences is dropped. The sum is the same, and
    no packet is lost that arrives between the reading and the reset of a counter.
    """

    def __init__(self, intervals: int) -> None:
        """Create a window of ``intervals`` intervals. Raises ValueError for less than one interval."""
        if intervals < 1:
            raise ValueError(f"a window needs at least one interval, not {intervals}")
        self._ring: deque[Counts] = deque(maxlen=intervals)
        self._total = Counts()

    def push(self, difference: Counts) -> None:
        """Add the counts of the newest interval, and drop those of the oldest if the window is full."""
        if len(self._ring) == self._ring.maxlen:
            self._total -= self._ring[0]
        self._ring.append(difference)
        self._total += difference

    def resize(self, intervals: int) -> None:
        """Change the length of the window to ``intervals``; the newest differences stay."""
        self._ring = deque(self._ring, maxlen=intervals)
        self._total = total(self._ring)

    def clear(self) -> None:
        """Drop all intervals."""
        self._ring.clear()
        self._total = Counts()

    @property
    def total(self) -> Counts:
        """The sum over the window, which has fewer than m intervals after a start. It is updated with each interval, so
        reading it costs nothing."""
        return self._total
