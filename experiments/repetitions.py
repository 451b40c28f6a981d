"""How often set-ups were run, where not all were run as often."""

from __future__ import annotations

from experiments.experiment import Record


def set_up(record: Record) -> str:
    """Return what repeated runs have in common: the key without the run's number."""
    return record.key.rpartition(" #")[0] or record.key


def number_of(record: Record) -> int:
    """Return the run's number; 0 for one that is alone."""
    number = record.key.rpartition(" #")[2]
    return int(number) if number.isdecimal() else 0
