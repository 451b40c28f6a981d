"""The choice of a server for a new connection, by the selector's whole-numbered weights: at random, or evenly."""

from __future__ import annotations

import bisect
import random
from collections.abc import Mapping
from itertools import accumulate


class Choice:
    """Draws servers in proportion to their weights. The switch hashes ports for it, which clients draw at random."""

    def __init__(self, weights: Mapping[int, int]) -> None:
        """Raises ValueError when every weight is 0."""
        self._servers = [server for server, weight in weights.items() if weight > 0]
        self._sums = list(accumulate(weight for weight in weights.values() if weight > 0))
        if not self._sums:
            raise ValueError("no server has a positive weight")

    def draw(self, source: random.Random) -> int:
        """A server."""
        return self.at(source.random())

    def at(self, point: float) -> int:
        """The server that has this point of [0, 1), which the weights divide in the servers' order."""
        return self._servers[bisect.bisect_right(self._sums, point * self._sums[-1])]


class Points:
    """A Weyl sequence in [0, 1): the multiples of the golden ratio modulo 1, as the switch counts them (draw_point)."""

    GOLDEN = 0x9E3779B9

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> float:
        """The next point."""
        self._last = (self._last + self.GOLDEN) % (1 << 32)
        return (self._last >> 16) / (1 << 16)
