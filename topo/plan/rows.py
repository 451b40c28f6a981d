"""Conversion between dataclass instances and rows of a CSV file with a column for each field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

Row = TypeVar("Row")


def header(kind: type[Any]) -> str:
    """Return the line with the columns' names."""
    return ",".join(field.name for field in fields(kind))


def line(row: Any, digits: int) -> str:
    """Return an instance as a row. None becomes an empty column; a float has ``digits`` digits after the decimal
    point."""
    values = (getattr(row, field.name) for field in fields(row))
    return ",".join(
        "" if value is None else f"{value:.{digits}f}" if isinstance(value, float) else str(value) for value in values
    )


def read(kind: type[Row], lines: Iterable[str]) -> Iterator[Row]:
    """Read rows of numbers, texts and enums. The last columns may be missing if their fields have defaults.

    Raises ValueError, or TypeError, for a line that is not such a row.
    """
    readers = _readers(kind)
    for text in lines:
        columns = text.split(",")
        if len(columns) > len(readers):
            raise ValueError(f"{len(columns)} columns, of at most {len(readers)}")
        yield kind(*(reader(column) for reader, column in zip(readers, columns, strict=False)))


@cache
def _readers(kind: type[Any]) -> list[Callable[[str], Any]]:
    hints = get_type_hints(kind)
    return [_reader(hints[field.name]) for field in fields(kind)]


def _reader(hint: Any) -> Callable[[str], Any]:
    kinds = get_args(hint)
    if NoneType not in kinds:
        return hint
    (kind,) = (option for option in kinds if option is not NoneType)
    return lambda text: kind(text) if text else None
