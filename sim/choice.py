"""The choice of a server for a new connection, by the selector's whole-numbered weights."""

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
        return self._servers[bisect.bisect_right(self._sums, source.random() * self._sums[-1])]
