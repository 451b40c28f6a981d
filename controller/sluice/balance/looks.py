"""Whom a new connection looks at beside the first server drawn: others by one more draw, and idle servers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeVar

_S = TypeVar("_S")

MOST_LOOKS = 4
"""Servers that a new connection can look at."""

SMALL_POOL = 16
"""Up to so many servers, each has a group of the others to draw from: in a small pool a draw from all is often the same
server. In larger ones all have one group, and a connection in so many takes no second look."""

IDLE_WORD = 32
"""Servers that are sought out while they are idle are told by words of so many, a bit each."""
_LARGE = 0.75
"""Of the largest weight."""
_ALIKE = 1.2
"""Times the smallest weight."""


class Sought(NamedTuple):
    """The servers that a new connection may seek out because they are idle."""

    words: Mapping[int, int]
    before_any: bool
    """They are taken first; else only while the lighter of the two that a connection looks at first is busy."""

    def has(self, server: int) -> bool:
        """Whether a server is one of them."""
        word, place = divmod(server, IDLE_WORD)
        return bool(self.words.get(word, 0) >> place & 1)


NOBODY = Sought({}, before_any=False)


def sought_idle(weights: Mapping[int, int]) -> Sought:
    """Whoever is idle is to be sought out, by the weights of the servers that there are.

    Of unlike servers those are the large ones, in place of busy ones only: an idle small server can take longer than a
    busy large one, and taken first the large ones spend their CPU quota.
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
    """The members of a group that ``looks`` - 1 servers are drawn from at once: of how many places, and which servers.

    Whoever draws a place draws those too that stand at equal distances further on, round the group (systematic
    sampling; W. G. Madow and L. H. Madow, 1944). So each server is drawn as often as its weight says, and no two are
    the same unless one has more places than such a distance. Weights are at least 1.

    In a large pool distances are counted in servers: a decision changes few members, and only one is drawn by weight.
    """
    if len(weights) > SMALL_POOL:
        yield from _neighbours(weights, looks)
        return
    servers, ends = list(weights), list(accumulate(weights.values()))
    size, parts = ends[-1], looks - 1
    steps = [part * size // parts for part in range(parts)]
    cuts = sorted({0, size, *((end - step) % size for end in ends for step in steps)})
    pieces = (
        (end - start, tuple(dict.fromkeys(servers[bisect_right(ends, (start + step) % size)] for step in steps)))
        for start, end in pairwise(cuts)
    )
    for seen, same in groupby(pieces, itemgetter(1)):
        yield sum(places for places, _ in same), seen


def _neighbours(weights: Mapping[_S, int], looks: int) -> Iterator[tuple[int, tuple[_S, ...]]]:
    servers = list(weights)
    steps = [part * len(servers) // (looks - 1) for part in range(looks - 1)]
    for place, server in enumerate(servers):
        yield weights[server], tuple(servers[(place + step) % len(servers)] for step in steps)
