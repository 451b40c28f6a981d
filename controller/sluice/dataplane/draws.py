"""The choice of a server for a new connection: weighted groups, even draws, and the power of two choices."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from sluice.balance.looks import SMALL_POOL

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
        return self._servers[self._index(place)]

    def together(self, place: int, looks: int) -> tuple[int, ...]:
        """Who has this place, and who those at equal distances behind it, one less than looks; each once. In a large
        pool distances are counted in servers."""
        parts, count = looks - 1, len(self._servers)
        if count > SMALL_POOL:
            seen = [self._servers[(self._index(place) + part * count // parts) % count] for part in range(parts)]
        else:
            seen = [self.at(place + part * self.size // parts) for part in range(parts)]
        return tuple(dict.fromkeys(seen))

    def _index(self, place: int) -> int:
        return bisect.bisect_right(self._sums, place % self.size)


class Draws:
    """How a service's servers are drawn: by the weights that R decides, and others beside the first."""

    def __init__(
        self,
        weights: Mapping[int, int],
        others: Mapping[int, Mapping[int, int]] = _NOBODY,
        shares: int = 0,
        looks: int = 2,
    ) -> None:
        """``others``: the group that the other servers are drawn from, by the first one; ``looks`` less one of them.

        ``shares``: what the whole pool's weights sum to, if it is drawn from evenly.
        """
        self.first, self.shares, self.looks = Group(weights), shares, looks
        groups = {id(group): Group(group) for group in others.values()}
        self.others = {server: groups[id(group)] for server, group in others.items()}

    def by_hash(self, connection: Connection) -> tuple[int, ...]:
        """First server and the others, where there are any."""
        first = self.first.at(connection.draw)
        others = self.others.get(first)
        return (first,) if others is None else (first, *others.together(connection.other_draw, self.looks))

    def evenly(self, last: int) -> tuple[int, ...]:
        """First server and the others, where there are any, at the two points that follow ``last`` in the sequence."""
        first = self.first.at(self._place(last + GOLDEN, self.shares))
        others = self.others.get(first)
        if others is None:
            return (first,)
        left_out = 0 if first in others.weights else self.first.weights[first]
        return first, *others.together(self._place(last + 2 * GOLDEN, self.shares - left_out), self.looks)

    def weight(self, first: int, server: int) -> int:
        """Of a server that was drawn beside, or as, the first."""
        return self.first.weights[server] if server == first else self.others[first].weights[server]

    @staticmethod
    def _place(point: int, size: int) -> int:
        return (point % WRAP >> 16) * size >> 16


def lightest(
    servers: Sequence[int],
    loads: Mapping[int, int],
    weights: Mapping[int, int],
    idle: int | None = None,
    *,
    before_any: bool = False,
    refusing: Collection[int] = (),
) -> int:
    """Which of the servers drawn takes a connection; or the idle one, where the lighter of two is busy or it comes
    ``before_any``. A third and a fourth are looked at only while the lightest so far has a connection open.

    ``refusing``: servers whose last answer to a SYN was a RST. They have no load, and are preferred to none.
    """
    best, *others = servers
    for number, other in enumerate(others):
        if number > 0 and loads[best] <= 0:
            break
        if other not in refusing and lighter(loads[best], weights[best], loads[other], weights[other]):
            best = other
        if number == 0 and idle is not None and (before_any or loads[best] > 0):
            return idle
    return best


def lighter(load: int, weight: int, other_load: int, other_weight: int) -> bool:
    """Whether the other server, with one more, has less to do for its weight than the first, by an eighth at least.

    Loads are open connections; below 0 they count as 0.
    """
    work = (max(0, load) + 1) * other_weight
    other_work = (max(0, other_load) + 1) * weight
    return other_work + (other_work >> 3) < work
