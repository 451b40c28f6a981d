"""The selection of a server for a new connection: groups by weight, draws by hash or in a Weyl sequence, and the
comparison of the servers drawn (power of two choices)."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from sluice.balance.looks import SMALL_POOL

from .connection import Connection
from .table import WRAP

GOLDEN = 0x9E3779B9
"""2^32 times the golden ratio's fractional part: the step of a Weyl sequence. After any number of steps, its points are
spread evenly."""
_NO_GROUPS: Mapping[int, Mapping[int, int]] = {}


class Group:
    """A selector group: a sequence of numbered places. Each server has as many adjacent places as its weight, in the
    order of ``weights``; a draw selects a place."""

    def __init__(self, weights: Mapping[int, int]) -> None:
        """Create the group. Raises ValueError if every weight is 0."""
        self.weights = {server: weight for server, weight in weights.items() if weight > 0}
        self._servers, self._sums = list(self.weights), list(accumulate(self.weights.values()))
        if not self._sums:
            raise ValueError("no server has a positive weight")
        self.size = self._sums[-1]

    def at(self, place: int) -> int:
        """Return the server at a place. A place beyond the group's size counts modulo that size."""
        return self._servers[self._index(place)]

    def spread(self, place: int, looks: int) -> tuple[int, ...]:
        """Return the servers, each once, at ``looks`` - 1 equally spaced places, starting with ``place``.

        In a pool of more than SMALL_POOL servers, the spacing is counted in servers instead of places.
        """
        draws, count = looks - 1, len(self._servers)
        if count > SMALL_POOL:
            servers = [self._servers[(self._index(place) + number * count // draws) % count] for number in range(draws)]
        else:
            servers = [self.at(place + number * self.size // draws) for number in range(draws)]
        return tuple(dict.fromkeys(servers))

    def _index(self, place: int) -> int:
        return bisect.bisect_right(self._sums, place % self.size)


class Draws:
    """The draws of servers for a new connection: the first by the balancer's weights, the others for comparison with
    the first."""

    def __init__(
        self,
        weights: Mapping[int, int],
        others: Mapping[int, Mapping[int, int]] = _NO_GROUPS,
        shares: int = 0,
        looks: int = 2,
    ) -> None:
        """``others``: for each first server, the weights of the group from which ``looks`` - 1 other servers are drawn.

        ``shares``: the sum of the full pool's weights if servers are drawn in a Weyl sequence (``evenly``); 0 if they
        are drawn by hash.
        """
        self.first, self.shares, self.looks = Group(weights), shares, looks
        groups = {id(group): Group(group) for group in others.values()}
        self.others = {server: groups[id(group)] for server, group in others.items()}

    def by_hash(self, connection: Connection) -> tuple[int, ...]:
        """Return the first server and, if any, the servers to compare with it, by the connection's hashes."""
        first = self.first.at(connection.draw)
        group = self.others.get(first)
        return (first,) if group is None else (first, *group.spread(connection.other_draw, self.looks))

    def evenly(self, last: int) -> tuple[int, ...]:
        """Return the first server and, if any, the servers to compare with it, at the two points after ``last`` in the
        Weyl sequence."""
        first = self.first.at(self._place(last + GOLDEN, self.shares))
        group = self.others.get(first)
        if group is None:
            return (first,)
        own_weight = 0 if first in group.weights else self.first.weights[first]
        return first, *group.spread(self._place(last + 2 * GOLDEN, self.shares - own_weight), self.looks)

    def weight(self, first: int, server: int) -> int:
        """Return a server's weight in the draw whose first server is ``first``."""
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
    """Return which of the drawn servers gets a new connection: the lightest server, or ``idle``.

    ``idle`` (an idle server, if one is known) is selected if the lighter of the first two servers has an open
    connection, or always if ``before_any``. A third and a fourth server are compared only while the lightest server so
    far has an open connection. ``refusing``: servers whose last answer to a SYN was an RST. Their load is low because
    they refuse, so they are not preferred to any other server.
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
    """Return whether the other server is lighter than the first one: the first server's load per weight exceeds the
    other server's by more than an eighth of the latter.

    Loads are open connections, to each of which the new connection is added; loads below 0 count as 0.
    """
    work = (max(0, load) + 1) * other_weight
    other_work = (max(0, other_load) + 1) * weight
    return other_work + (other_work >> 3) < work
