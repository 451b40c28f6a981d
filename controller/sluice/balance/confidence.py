"""How sure it is that servers answer worse than others."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .counts import Counts, total
from .metric import smoothed


def standing_out(
    windows: Mapping[int, Counts], *, alpha: float, beta: float, least_z: float, min_syn: int
) -> dict[int, float]:
    """The servers that leave more unanswered than the rest, by how many standard deviations; the worst first.

    From the largest smoothed R (the lower id of several equal) on, each with ``min_syn`` SYNs is compared with all that
    do not stand out, again and again until none does any more. One whose evidence is weak hides no other.
    """
    order = sorted(windows, key=lambda server: (-smoothed(windows[server], alpha, beta), server))
    left = [i for i in order if windows[i].syn >= min_syn and windows[i].syn > windows[i].synack]
    rest = total(list(windows.values()))
    found: dict[int, float] = {}
    searching = True
    while searching:
        searching = False
        for server in left:
            z = deviation(windows[server], rest - windows[server])
            if z > least_z:
                found[server], rest, searching = z, rest - windows[server], True
        left = [server for server in left if server not in found]
    return {server: found[server] for server in order if server in found}


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
