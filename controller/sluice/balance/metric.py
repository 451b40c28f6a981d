"""R, the passive measure of how a server answers (Ohta & Andou, equations 2 and 5)."""

from __future__ import annotations

import math

from .counts import Counts


def ratio_of_unanswered(window: Counts, minimum_syn: int = 1) -> float | None:
    """R = (S - A) / A over a window: retransmitted SYNs per answered connection.

    None when fewer than ``minimum_syn`` SYNs were sent (no evidence, which is not R = 0), infinity when none of
    enough SYNs was answered. May be slightly negative: the answer to a SYN at the end of an interval arrives
    in the next one.
    """
    if window.syn < max(1, minimum_syn):
        return None
    if window.synack == 0:
        return math.inf
    return (window.syn - window.synack) / window.synack


def ratio_with_every_synack(window: Counts, minimum_syn: int = 1) -> float | None:
    """R as it would be if repeated SYN-ACKs were counted too, shown beside R to make the difference seen."""
    everything = Counts(syn=window.syn, synack=window.synack + window.synack_again)
    return ratio_of_unanswered(everything, minimum_syn)
