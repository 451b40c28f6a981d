"""The choice of a server for a new connection: weighted groups, even draws, and the power of two choices."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from itertools import accumulate

from .connection import Connection
from .table import WRAP

GOLDEN = 0x9E3779B9
"""2^32 times the golden ratio's fraction: a Weyl sequence's step."""
_NOBODY: Mapping[int, Mapping[int, int]] = {}


class Group:
    """Members of a selector: each has as many places as its weight, side by side, in the order written."""

    def __init__(self, weights: Mapping[int, int]) -> None:
        """Raises ValueError when every weight is 0."""
        self.weights = {server: weight for server, weight in weights.items() if weight > 0}
        self._servers, self._sums = list(self.weights), list(accumulate(self.weights.values()))
        if not self._sums:
            raise ValueError("no server has a positive weight")
        self.size = self._sums[-1]

    def at(self, place: int) -> int:
        """The server that has this place; places are counted modulo the group's size."""
        return self._servers[bisect.bisect_right(self._sums, place % self.size)]


class Draws:
    """How a service's servers are drawn: by the weights that R decides, and another server beside the first."""

    def __init__(
        self, weights: Mapping[int, int], others: Mapping[int, Mapping[int, int]] = _NOBODY, shares: int = 0
    ) -> None:
        """``others``: the group that the other server is drawn from, by the first one.

        ``shares``: what the whole pool's weights sum to, if it is drawn from evenly.
        """
        self.first, self.shares = Group(weights), shares
        groups = {id(group): Group(group) for group in others.values()}
        self.others = {server: groups[id(group)] for server, group in others.items()}

    def by_hash(self, connection: Connection) -> tuple[int, int | None]:
        """First and other server, where there is one."""
        first = self.first.at(connection.draw)
        other = self.others.get(first)
        return first, None if other is None else other.at(connection.other_draw)

    def evenly(self, last: int) -> tuple[int, int | None]:
        """First and other server, where there is one, at the two points that follow ``last`` in the sequence."""
        first = self.first.at(self._place(last + GOLDEN, self.shares))
        other = self.others.get(first)
        if other is None:
            return first, None
        left_out = 0 if first in other.weights else self.first.weights[first]
        return first, other.at(self._place(last + 2 * GOLDEN, self.shares - left_out))

    @staticmethod
    def _place(point: int, size: int) -> int:
        return (point % WRAP >> 16) * size >> 16


def lighter(load: int, weight: int, other_load: int, other_weight: int) -> bool:
    """Whether the other server, with one more, has less to do for its weight than the first, by an eighth at least.

    Loads are open connections; below 0 they count as 0.
    """
    work = (max(0, load) + 1) * other_weight
    other_work = (max(0, other_load) + 1) * weight
    return other_work + (other_work >> 3) < work
