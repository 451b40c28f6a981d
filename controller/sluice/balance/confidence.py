"""Statistical evidence that servers leave more SYNs unanswered than other servers do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import groupby

from .counts import Counts, total


def standing_out(windows: Mapping[int, Counts], *, least_z: float, min_syn: int) -> dict[int, float]:
    """Return the servers that leave a larger share of their SYNs unanswered than other servers do, the worst first. A
    server's value is the difference between these shares in standard deviations; only servers whose value is above
    ``least_z`` are returned.

    Each server with at least ``min_syn`` SYNs is compared with the sum of all servers that have a smaller share. So the
    losses of a worse server do not hide a bad one, however many SYNs either has.
    """
    share = {server: unanswered(counts) for server, counts in windows.items()}
    evidence: dict[int, float] = {}
    better = Counts()
    for _, same_share in groupby(sorted(share, key=lambda server: (share[server], -server)), share.__getitem__):
        servers = list(same_share)
        for server in servers:
            z = deviation(windows[server], better)
            if z > least_z and windows[server].syn >= min_syn:
                evidence[server] = z
        better = total([better, *(windows[server] for server in servers)])
    return dict(reversed(evidence.items()))


def unanswered(counts: Counts) -> float:
    """Return the share of a server's SYNs without a SYN-ACK, 0 to 1; 0 without SYNs."""
    return max(0, counts.syn - counts.synack) / counts.syn if counts.syn else 0.0


def deviation(mine: Counts, rest: Counts) -> float:
    """Return by how many standard deviations a server's share of unanswered SYNs is above the share of the ``rest``.

    This is the pooled two-proportion z statistic. It is 0 if the server's share is not larger, or if the server or the
    rest has no SYNs.
    """
    if mine.syn == 0 or rest.syn == 0:
        return 0.0
    lost_mine, lost_rest = max(0, mine.syn - mine.synack), max(0, rest.syn - rest.synack)
    pooled = (lost_mine + lost_rest) / (mine.syn + rest.syn)
    difference = unanswered(mine) - unanswered(rest)
    variance = pooled * (1 - pooled) * (1 / mine.syn + 1 / rest.syn)
    if difference <= 0:
        return 0.0
    # The variance is 0 only if both the server and the rest lost all SYNs or none. Then there is no difference.
    return difference / math.sqrt(variance) if variance > 0 else 0.0
