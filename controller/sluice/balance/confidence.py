"""How sure it is that servers answer worse than others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby

from .counts import Counts, total
from .metric import smoothed


def standing_out(
    windows: Mapping[int, Counts], *, alpha: float, beta: float, least_z: float, min_syn: int
) -> dict[int, float]:
    """The servers that leave more unanswered than those that do better, by how many standard deviations; the worst
    first.

    Each with ``min_syn`` SYNs is compared with all whose smoothed R is smaller, so that a server hides no other that
    does as badly or less so, however many or few its SYNs are.
    """
    r = {server: smoothed(counts, alpha, beta) for server, counts in windows.items()}
    found: dict[int, float] = {}
    better = Counts()
    for _, alike in groupby(sorted(r, key=lambda server: (r[server], -server)), r.__getitem__):
        servers = list(alike)
        for server in servers:
            z = deviation(windows[server], better)
            if z > least_z and windows[server].syn >= min_syn:
                found[server] = z
        better = total([better, *(windows[server] for server in servers)])
    return dict(reversed(found.items()))


def deviation(mine: Counts, rest: Counts) -> float:
    """Standard deviations by which a server's share of unanswered SYNs is above the rest of the pool's.

    The pooled two-proportion statistic; 0 when the server is not above the rest or either side is empty.
    """
    if mine.syn == 0 or rest.syn == 0:
        return 0.0
    lost_mine, lost_rest = max(0, mine.syn - mine.synack), max(0, rest.syn - rest.synack)
    pooled = (lost_mine + lost_rest) / (mine.syn + rest.syn)
    difference = lost_mine / mine.syn - lost_rest / rest.syn
    variance = pooled * (1 - pooled) * (1 / mine.syn + 1 / rest.syn)
    if difference <= 0:
        return 0.0
    # Everything or nothing lost on both sides leaves no variance, and then no difference either.
    return difference / math.sqrt(variance) if variance > 0 else 0.0
