"""The ring of m differences that equation (5) of Ohta & Andou sums over."""

from __future__ import annotations

from collections import deque

from .counts import Counts, total


class Window:
    """The last m intervals of one server.

    The paper resets the oldest of m counters; here the oldest of m differences falls out. The sum is the
    same, and no packet is lost between a read and a reset.
    """

    def __init__(self, intervals: int) -> None:
        if intervals < 1:
            raise ValueError(f"a window needs at least one interval, not {intervals}")
        self._ring: deque[Counts] = deque(maxlen=intervals)

    def push(self, difference: Counts) -> None:
        """Take in the newest interval."""
        self._ring.append(difference)

    def resize(self, intervals: int) -> None:
        """Keep the newest ``intervals`` differences from now on."""
        self._ring = deque(self._ring, maxlen=intervals)

    def clear(self) -> None:
        """Forget everything measured."""
        self._ring.clear()

    @property
    def total(self) -> Counts:
        """The sum over the window (fewer than m intervals after a start)."""
        return total(list(self._ring))

    @property
    def last(self) -> Counts:
        """The newest interval; zeros before the first."""
        return self._ring[-1] if self._ring else Counts()

    def __len__(self) -> int:
        return len(self._ring)
