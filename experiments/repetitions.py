"""How often set-ups were run, where not all were run as often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.experiment import Record
from experiments.intervals import repeated


def set_up(record: Record) -> str:
    """Return what repeated runs have in common: the key without the run's number."""
    return record.key.rpartition(" #")[0] or record.key


def how_often(set_ups: Iterable[Sequence[Record]]) -> str:
    """Say how often each set-up was run, at the beginning of a sentence."""
    counts = [len(runs) for runs in set_ups]
    return repeated(max(counts, default=0), min(counts, default=0))
