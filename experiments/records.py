"""Records of runs: selected by their parameters, grouped, numbered, and laid out in tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from experiments.experiment import Record, Table

Key = TypeVar("Key", bound=Hashable)
Columns = Mapping[str, Callable[[Key, Sequence[Record]], str]]
"""Columns of a table by their headings: each returns its cell of a row from the row's key and runs."""


def set_up(record: Record) -> str:
    """Return what repeated runs have in common: the key without the run's number."""
    return record.key.rpartition(" #")[0] or record.key


def number_of(record: Record) -> int:
    """Return the run's number; 0 for one that is alone."""
    number = record.key.rpartition(" #")[2]
    return int(number) if number.isdecimal() else 0


def matching(records: Sequence[Record], **parameters: Any) -> list[Record]:
    """Return the records with all of these parameters."""
    return [record for record in records if parameters.items() <= record.parameters.items()]


def by_number(records: Sequence[Record], *path: str) -> dict[int, float]:
    """Return a figure by the runs' numbers; `path` leads to it in a result."""

    def figure(record: Record) -> float:
        value: Any = record.result
        for name in path:
            value = value[name]
        return float(value)

    return {number_of(record): figure(record) for record in records}


def grouped(records: Sequence[Record], name: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Group records by a key, in the order of their first occurrence; repeated runs have the same key."""
    by_key: dict[Key, list[Record]] = {}
    for record in records:
        by_key.setdefault(name(record), []).append(record)
    return by_key


def table(columns: Columns[Key], rows: Mapping[Key, Sequence[Record]]) -> Table:
    """Return a table with a row for each group of runs."""
    return Table(list(columns), [[cell(key, runs) for cell in columns.values()] for key, runs in rows.items()])
