"""Fits names, tables and lines of text to a terminal of a given width, by pure functions.

Widths are in terminal cells; a letter of a wide script occupies two cells. A width of None has no limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

GAP = "  "
"""The gap between two columns."""
_HANG = "  "
"""The additional indent of a wrapped line's continuation."""
_LEAST_NAME = 12
"""The smallest width of a shortened name, in cells: room for its first seven and its last four letters."""
_WRAPPING = Console(width=80)
"""A console because Rich's wrapping requires one as an argument; nothing is printed to it."""

Rows = Sequence[Sequence[str]]
"""The head of a table, followed by its rows; the first column contains names."""


def cut(text: str, cells: int) -> str:
    """Cut a text to at most ``cells`` cells. An ellipsis replaces the middle, because names often differ only at one
    end."""
    if cell_len(text) <= cells:
        return text
    tail = cells // 3
    return _first(text, cells - 1 - tail) + "…" + _first(text[::-1], tail)[::-1]


def _first(text: str, cells: int) -> str:
    return set_cell_size(text, cells).rstrip() if cells > 0 else ""


def labels(names: Sequence[str], addresses: Sequence[str], cells: int) -> list[str]:
    """Shorten names to at most ``cells`` cells, so that different names get different labels.

    If two shortened names would be equal, each label contains the address, which is unique and never shortened: the
    address either follows a shortened name or replaces the name.
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
    """Return the lines of a table whose first ``left`` columns are left-aligned."""
    widths = _widths(rows)
    return [
        GAP.join(
            _padded(cell, width, left=column < left)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def width_of(rows: Rows) -> int:
    """Return the width of a table in cells."""
    return _total_width(_widths(rows))


def narrow(rows: Rows, addresses: Sequence[str], width: int | None, left: int) -> list[str]:
    """Return the lines of a table of at most ``width`` cells. Names are shortened; other cells are not.

    Columns that do not fit are printed below the others, with the names repeated. ``addresses``: the addresses of the
    rows (see `labels`).
    """
    if width is None or width_of(rows) <= width:
        return aligned(rows, left)
    names = [row[0] for row in rows[1:]]
    other_widths = _widths([row[1:] for row in rows])
    room = width - _total_width([0, *other_widths])
    shown = labels(names, addresses, room)
    if room < _LEAST_NAME or max(map(cell_len, shown), default=0) > room:
        shown = labels(names, addresses, max(_LEAST_NAME, width // 3))
    first = [rows[0][0], *shown]
    room = width - max(map(cell_len, first))
    lines: list[str] = []
    for columns in _packed(other_widths, room):
        block = [[name, *(row[1 + column] for column in columns)] for name, row in zip(first, rows, strict=True)]
        lines += aligned(block, 1 + sum(column < left - 1 for column in columns))
    return lines


def _packed(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield groups of columns, each with at least one column, such that each group fits ``room`` cells if it can."""
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


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _padded(cell: str, width: int, *, left: bool) -> str:
    space = " " * (width - cell_len(cell))
    return cell + space if left else space + cell


def wrapped(text: str, width: int | None) -> str:
    """Wrap a text's lines between words at ``width`` cells; the continuation of a line is indented further."""
    if width is None:
        return text
    return "\n".join(piece for line in text.split("\n") for piece in _wrapped(line, width))


def _wrapped(line: str, width: int) -> list[str]:
    body = line.lstrip(" ")
    indent = line[: len(line) - len(body)]
    room = width - len(indent) - len(_HANG)
    if cell_len(line) <= width or room < 1:
        return [line]
    first, *continuations = (piece.plain.rstrip(" ") for piece in Text(body).wrap(_WRAPPING, room))
    return [indent + first, *(indent + _HANG + piece for piece in continuations)]
