"""``sluice top`` as text: which servers stand where, and what a key changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rich.table import Table
from rich.text import Text

from .page import view
from .page.rates import Rates, Sample

Row = tuple[Mapping[str, Any], Mapping[str, Any]]
"""A service of a status, and one of its servers."""

_NUMBERS: dict[str, Callable[[Row, Rates], float | None]] = {
    "ratio": lambda row, rates: float(row[1]["ratio"]),
    "R": lambda row, rates: None if row[1]["r"] is None else float(row[1]["r"]),
    "open": lambda row, rates: float(row[1]["open"]),
    "SYN/s": lambda row, rates: rates.server(row[0]["name"], row[1], "syn"),
    "failures/s": lambda row, rates: rates.failures(row[0]["name"], row[1]),
    "RST/s": lambda row, rates: rates.server(row[0]["name"], row[1], "reset"),
}
SORTS = ("server", "state", *_NUMBERS)
"""What ``s`` goes through; numbers are sorted downwards."""
KEYS = "q ends  s sorts  ↑↓ or k j choose  d drains  u undrains  i details"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person has chosen."""

    sort: str = "server"
    at: int = 0
    """The chosen row."""
    details: bool = False
    said: str = ""
    """What the last command answered."""
    rows: tuple[str, ...] = field(default=())
    """The rows' names, in their order."""

    @property
    def chosen(self) -> str | None:
        """The chosen server as SERVICE/SERVER."""
        return self.rows[self.at] if self.at < len(self.rows) else None


def ordered(choice: Choice, sample: Sample, rates: Rates) -> tuple[Choice, list[Row]]:
    """All servers in the order that was chosen; the chosen one stays chosen."""
    rows: list[Row] = [(one, server) for one in sample.status.get("services", ()) for server in one["servers"]]
    if choice.sort == "state":
        rows.sort(key=lambda row: row[1]["state"] == "in")
    elif (number := _NUMBERS.get(choice.sort)) is not None:
        rows.sort(key=lambda row: -1.0 if (value := number(row, rates)) is None else value, reverse=True)
    names = tuple(f"{one['name']}/{server['name']}" for one, server in rows)
    at = names.index(choice.chosen) if choice.chosen in names else min(choice.at, max(0, len(names) - 1))
    return replace(choice, rows=names, at=at), rows


def pressed(choice: Choice, key: str) -> tuple[Choice, dict[str, Any] | None]:
    """What a key changes, and what it asks of the controller."""
    match key:
        case "s":
            return replace(choice, sort=SORTS[(SORTS.index(choice.sort) + 1) % len(SORTS)], said=""), None
        case "j" | "\x1b[B":
            return replace(choice, at=min(choice.at + 1, max(0, len(choice.rows) - 1))), None
        case "k" | "\x1b[A":
            return replace(choice, at=max(0, choice.at - 1)), None
        case "i":
            return replace(choice, details=not choice.details), None
        case "d" | "u" if choice.chosen is not None:
            return choice, {"command": "drain" if key == "d" else "undrain", "server": choice.chosen}
        case _:
            return choice, None


def table(choice: Choice, rows: list[Row], rates: Rates, height: int) -> Table:
    """As many rows as fit, the chosen one among them."""
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for title in SORTS:
        mark = "▾" if title == choice.sort else ""
        shown.add_column(f"{title}{mark}", justify="left" if title in ("server", "state") else "right", no_wrap=True)
    first = max(0, min(choice.at - height // 2, len(rows) - height))
    for number, row in enumerate(rows[first : first + height], first):
        values = [view.quantity(of(row, rates), 3 if title in ("ratio", "R") else 1) for title, of in _NUMBERS.items()]
        state = str(row[1]["state"])
        style = "reverse" if number == choice.at else "" if state == "in" else "yellow"
        shown.add_row(choice.rows[number], state, *values, style=style)
    return shown


def details(row: Row) -> Text:
    """All that a status has of a server, and its service's sentence."""
    one, server = row
    told = [f"{key} {value}" for key, value in server.items() if not isinstance(value, dict)]
    return Text("\n".join([f"{one['name']}: {one['sentence']}", ", ".join(told)]))
