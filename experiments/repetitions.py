"""How often set-ups were run, where not all were run as often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.experiment import Record
from experiments.intervals import repeated


def how_often(set_ups: Iterable[Sequence[Record]]) -> str:
    """Say how often each set-up was run, at the beginning of a sentence."""
    counts = {len(runs) for runs in set_ups}
    if len(counts) == 1:
        return repeated(counts.pop())
    return f"Means over {min(counts)} to {max(counts)} runs, with 95 % intervals where there are several"
