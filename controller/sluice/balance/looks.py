"""The servers that the switch compares for a new connection before it selects one of them: a first server, drawn at
random by weight; others from a second draw; and idle servers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

_S = TypeVar("_S")

MOST_LOOKS = 4
"""The largest number of drawn servers that the switch can compare for a new connection."""

SMALL_POOL = 16
"""In pools of up to this many servers, the second draw is from a group that contains all servers except the one drawn
first. A second draw from all servers would often return the first server again. Larger pools have one group of all
servers: there the second draw seldom contains the first server. If it contains no other server, nothing is compared."""

IDLE_WORD = 32
"""Number of bits in a word of the bitmap that marks the servers which new connections take if the server is idle."""
_LARGE = 0.75
"""A server is large if its weight is at least this part of the largest weight."""
_ALIKE = 1.2
"""Servers are alike while the largest weight is at most this many times the smallest."""


class Sought(NamedTuple):
    """The servers that a new connection may take because they are idle."""

    words: Mapping[int, int]
    """The set as a bitmap. The key is the server number // IDLE_WORD; server number % IDLE_WORD is the bit in the
    word."""
    before_any: bool
    """Whether an idle server is taken before any other. Otherwise it is taken only if the less loaded of the first two
    servers drawn is busy."""

    def has(self, server: int) -> bool:
        """Return whether a server is in the set."""
        word, place = divmod(server, IDLE_WORD)
        return bool(self.words.get(word, 0) >> place & 1)


NOBODY = Sought({}, before_any=False)


def sought_idle(weights: Mapping[int, int]) -> Sought:
    """Return the servers of a service that a new connection may take because the server is idle, by the servers'
    weights.

    If the servers are alike, these are all servers. Otherwise they are the large servers, which are then taken only in
    place of busy servers. An idle small server can take longer than a busy large one, and large servers that are always
    taken first use up their CPU quota.
    """
    if not weights:
        return NOBODY
    least, most = min(weights.values()), max(weights.values())
    words: dict[int, int] = {}
    for server, weight in weights.items():
        if weight >= _LARGE * most:
            word, place = divmod(server, IDLE_WORD)
            words[word] = words.get(word, 0) | 1 << place
    return Sought(words, before_any=most <= _ALIKE * least)


def seen_together(weights: Mapping[_S, int], looks: int) -> Iterator[tuple[int, tuple[_S, ...]]]:
    """Yield the members of the group from which the switch draws ``looks`` - 1 servers at once. A member is a
    combination of servers; its weight, which precedes it, is the number of places (defined below) that yield it.

    Each server occupies as many places of a circle as its weight. A draw selects one place at random, and the
    ``looks`` - 2 places at equal distances after it (systematic sampling; W. G. Madow and L. H. Madow, 1944). So each
    server is drawn in proportion to its weight. A server can be drawn twice only if it occupies more places than that
    distance; its combination then contains it once. Weights are at least 1.

    In a large pool the distances are counted in servers, so that a decision changes few members of the group. Only the
    first server of a draw is then drawn in proportion to its weight.
    """
    if len(weights) > SMALL_POOL:
        yield from _neighbours(weights, looks)
        return
    servers, ends = list(weights), list(accumulate(weights.values()))
    size, parts = ends[-1], looks - 1
    steps = [index * size // parts for index in range(parts)]
    cuts = sorted({0, size, *((end - step) % size for end in ends for step in steps)})
    pieces = (
        (end - start, tuple(dict.fromkeys(servers[bisect_right(ends, (start + step) % size)] for step in steps)))
        for start, end in pairwise(cuts)
    )
    for servers_drawn, same in groupby(pieces, itemgetter(1)):
        yield sum(places for places, _ in same), servers_drawn


def _neighbours(weights: Mapping[_S, int], looks: int) -> Iterator[tuple[int, tuple[_S, ...]]]:
    servers = list(weights)
    steps = [index * len(servers) // (looks - 1) for index in range(looks - 1)]
    for place, server in enumerate(servers):
        yield weights[server], tuple(servers[(place + step) % len(servers)] for step in steps)
