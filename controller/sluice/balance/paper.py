"""Ohta & Andou's algorithm, exactly: every T seconds move delta * r_j away from the server with the largest R."""

from __future__ import annotations

from collections.abc import Mapping

from .counts import Counts
from .metric import ratio_of_unanswered
from .options import BalanceOptions
from .ratios import Ratios
from .step import shift, worst


def paper_step(
    ratios: Mapping[int, float], windows: Mapping[int, Counts], options: BalanceOptions
) -> tuple[Ratios, int | None]:
    """One decision over the servers that are not draining; the new ratios and who was relieved."""
    r = {server: ratio_of_unanswered(counts, options.min_syn) for server, counts in windows.items()}
    source = worst(r, ratios)
    if source is None or len(ratios) == 1:
        return dict(ratios), None
    return shift(ratios, source, options.delta), source
