"""Names, tables and lines of text for a terminal of a given width. Pure.

Widths are in terminal cells: a letter of a wide script takes two. A width of None has no limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

GAP = "  "
"""Between two columns."""
_HANG = "  "
"""How much further in the rest of a wrapped line begins."""
_LEAST_NAME = 12
"""Cells of a cut name, at least: room for five letters at either end."""
_WRAPPING = Console(width=80)
"""Rich's wrapping asks for one; nothing is printed to it."""

Rows = Sequence[Sequence[str]]
"""A table's head, then its rows; names are in the first column."""


def cut(text: str, cells: int) -> str:
    """A text of at most ``cells`` cells; an ellipsis replaces the middle, since names often differ at one end only."""
    if cell_len(text) <= cells:
        return text
    tail = cells // 3
    return _first(text, cells - 1 - tail) + "…" + _first(text[::-1], tail)[::-1]


def _first(text: str, cells: int) -> str:
    return set_cell_size(text, cells).rstrip() if cells > 0 else ""


def labels(names: Sequence[str], addresses: Sequence[str], cells: int) -> list[str]:
    """Names cut to ``cells`` cells, different names to different labels.

    Names that cutting makes alike get their address, which tells rows apart and is never cut: it follows a shorter rest
    of the name, or stands alone.
    """
    short = {name: cut(name, cells) for name in names}
    uses = Counter(short.values())
    return [
        short[name] if uses[short[name]] == 1 else _with_address(name, address, cells)
        for name, address in zip(names, addresses, strict=True)
    ]


def _with_address(name: str, address: str, cells: int) -> str:
    room = cells - cell_len(address) - 1
    return f"{cut(name, room)} {address}" if room > 1 else address


def aligned(rows: Rows, left: int) -> list[str]:
    """Lines of a table, the first ``left`` columns to the left."""
    widths = _widths(rows)
    return [
        GAP.join(
            _padded(cell, width, left=column < left)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def width_of(rows: Rows) -> int:
    """Cells of a table's longest line."""
    return _together(_widths(rows))


def narrow(rows: Rows, addresses: Sequence[str], width: int | None, left: int) -> list[str]:
    """Lines of a table of at most ``width`` cells: names are cut, all else is whole.

    Columns for which there is no room follow below, with the names again. ``addresses`` are the rows' (see `labels`).
    """
    if width is None or width_of(rows) <= width:
        return aligned(rows, left)
    names = [row[0] for row in rows[1:]]
    others = _widths([row[1:] for row in rows])
    room = width - _together([0, *others])
    shown = labels(names, addresses, room)
    if room < _LEAST_NAME or max(map(cell_len, shown), default=0) > room:
        shown = labels(names, addresses, max(_LEAST_NAME, width // 3))
    first = [rows[0][0], *shown]
    room = width - max(map(cell_len, first))
    lines: list[str] = []
    for columns in _packed(others, room):
        part = [[name, *(row[1 + column] for column in columns)] for name, row in zip(first, rows, strict=True)]
        lines += aligned(part, 1 + sum(column < left - 1 for column in columns))
    return lines


def _packed(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Columns in groups that fit, at least one in each."""
    columns: list[int] = []
    used = 0
    for column, width in enumerate(widths):
        if columns and used + len(GAP) + width > room:
            yield columns
            columns, used = [], 0
        columns.append(column)
        used += len(GAP) + width
    yield columns


def _widths(rows: Rows) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(*rows, strict=True)]


def _together(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _padded(cell: str, width: int, *, left: bool) -> str:
    space = " " * (width - cell_len(cell))
    return cell + space if left else space + cell


def wrapped(text: str, width: int | None) -> str:
    """A text whose lines are broken between words at ``width`` cells; the rest of a line is set in further than it."""
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, width))


def _wrapped(line: str, width: int) -> list[str]:
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    room = width - len(indent) - len(_HANG)
    if cell_len(line) <= width or room < 1:
        return [line]
    first, *more = (part.plain.rstrip(" ") for part in Text(body).wrap(_WRAPPING, room))
    return [indent + first, *(indent + _HANG + part for part in more)]
