"""R, the passive measurement of how well a server answers (Ohta & Andou, equations 2 and 5)."""

from __future__ import annotations

import math

from .counts import Counts


def ratio_of_unanswered(window: Counts, minimum_syn: int = 1) -> float | None:
    """Return R = (S - A) / A over a window with S SYNs and A answered connections: retransmitted SYNs per answered
    connection.

    Returns None if fewer than ``minimum_syn`` SYNs were sent: no evidence is not R = 0. Returns infinity if enough SYNs
    were sent and none was answered. R can be slightly negative, because the answer to a SYN at the end of an interval
    arrives in the next interval.
    """
    if window.syn < max(1, minimum_syn):
        return None
    if window.synack == 0:
        return math.inf
    return (window.syn - window.synack) / window.synack


def ratio_with_every_synack(window: Counts, minimum_syn: int = 1) -> float | None:
    """Return R as it would be if repeated SYN-ACKs were counted in addition to first ones. The status shows this value
    beside R."""
    every_synack = Counts(syn=window.syn, synack=window.synack + window.synack_again)
    return ratio_of_unanswered(every_synack, minimum_syn)
