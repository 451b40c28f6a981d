"""Functions that select, group and number the records of runs, and form tables of records."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from experiments.experiment import Record, Table

Key = TypeVar("Key", bound=Hashable)
Columns = Mapping[str, Callable[[Key, Sequence[Record]], str]]
"""Columns of a table by heading: a function returns the column's cell in a row from the row's key and runs."""


def set_up(record: Record) -> str:
    """Return the name of the record's set-up, which repeated runs have in common: the key without the run's number."""
    return record.key.rpartition(" #")[0] or record.key


def number_of(record: Record) -> int:
    """Return the run's number, which is at the end of its key; 0 for a key without a number."""
    number = record.key.rpartition(" #")[2]
    return int(number) if number.isdecimal() else 0


def matching(records: Sequence[Record], **parameters: Any) -> list[Record]:
    """Return the records that have all of the given parameters."""
    return [record for record in records if parameters.items() <= record.parameters.items()]


def by_number(records: Sequence[Record], *path: str) -> dict[int, float]:
    """Return a figure of each run by the run's number; `path` lists the keys that lead to the figure in a result."""

    def figure(record: Record) -> float:
        value: Any = record.result
        for name in path:
            value = value[name]
        return float(value)

    return {number_of(record): figure(record) for record in records}


def grouped(records: Sequence[Record], name: Callable[[Record], Key]) -> dict[Key, list[Record]]:
    """Group records by the key that `name` returns, in the order of the keys' first occurrences."""
    by_key: dict[Key, list[Record]] = {}
    for record in records:
        by_key.setdefault(name(record), []).append(record)
    return by_key


def table(columns: Columns[Key], rows: Mapping[Key, Sequence[Record]]) -> Table:
    """Return a table with a row for each group of runs, and with the cells that `columns` returns."""
    return Table(list(columns), [[cell(key, runs) for cell in columns.values()] for key, runs in rows.items()])
