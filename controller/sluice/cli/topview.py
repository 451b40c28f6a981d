"""The content of ``sluice top``: the order of servers, the table, and the effect of keys, by pure functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from sluice.page import view
from sluice.page.rates import Rates, Sample
from sluice.views.textlayout import GAP, labels

Row = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The status of a service, and the status of one of its servers."""

_NUMBERS: dict[str, Callable[[Row, Rates], float | None]] = {
    "ratio": lambda row, rates: float(row[1]["ratio"]),
    "R": lambda row, rates: None if row[1]["r"] is None else float(row[1]["r"]),
    "open": lambda row, rates: float(row[1]["open"]),
    "SYN/s": lambda row, rates: rates.server(row[0]["name"], row[1], "syn"),
    "failures/s": lambda row, rates: rates.failures(row[0]["name"], row[1]),
    "RST/s": lambda row, rates: rates.server(row[0]["name"], row[1], "reset"),
}
SORTS = ("server", "state", *_NUMBERS)
"""The columns that the key ``s`` selects in turn; numeric columns are sorted in descending order."""
_NAME_CELLS = 21
"""The smallest width of the names' column in terminal cells: room for 255.255.255.255:65535, because an address
replaces names that would be cut to equal texts."""
KEYS = "q ends  s sorts  ↑↓ or k j choose  d drains  u undrains  i details"


@dataclass(frozen=True, slots=True)
class Choice:
    """The user's choices."""

    sort: str = "server"
    at: int = 0
    """The index of the chosen row."""
    details: bool = False
    reply: str = ""
    """The controller's reply to the last drain or undrain; the key ``s`` clears it."""
    rows: tuple[str, ...] = field(default=())
    """The rows' server names, in order."""

    @property
    def chosen(self) -> str | None:
        """The chosen server, as SERVICE/SERVER; None if there is no row."""
        return self.rows[self.at] if self.at < len(self.rows) else None


def ordered(choice: Choice, sample: Sample, rates: Rates) -> tuple[Choice, list[Row]]:
    """Return all servers in the chosen order, and the choices with the same server chosen at its new row."""
    rows: list[Row] = [
        (service, server) for service in sample.status.get("services", ()) for server in service["servers"]
    ]
    if choice.sort == "state":
        rows.sort(key=lambda row: row[1]["state"] == "in")
    elif (number := _NUMBERS.get(choice.sort)) is not None:
        rows.sort(key=lambda row: -1.0 if (value := number(row, rates)) is None else value, reverse=True)
    names = tuple(map(_name, rows))
    at = names.index(choice.chosen) if choice.chosen in names else min(choice.at, max(0, len(names) - 1))
    return replace(choice, rows=names, at=at), rows


def pressed(choice: Choice, key: str) -> tuple[Choice, dict[str, Any] | None]:
    """Return the choices after a key, and the request to send to the controller because of the key, if any."""
    match key:
        case "s":
            return replace(choice, sort=SORTS[(SORTS.index(choice.sort) + 1) % len(SORTS)], reply=""), None
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


def named(row: Row) -> str:
    """Return the full name of a row's server: SERVICE/SERVER and the address."""
    return f"{_name(row)} ({row[1]['address']})"


def _name(row: Row) -> str:
    return f"{row[0]['name']}/{row[1]['name']}"


def table(
    choice: Choice,
    rows: list[Row],
    rates: Rates,
    height: int,
    width: int = 100,
    *,
    writable: Callable[[str], str] = str,
) -> Table:
    """Return a table of at most ``height`` rows, including the chosen row, and at most ``width`` terminal cells.

    Names are shortened (see `textlayout.labels`), numbers are not; a caption lists the columns that do not fit.
    ``writable`` escapes characters of a name that the terminal's encoding lacks.
    """
    values = [_values(row, rates) | {"server": writable(_name(row))} for row in rows]
    heads = {title: f"{title}▾" if title == choice.sort else title for title in SORTS}
    widths = {title: max(cell_len(text) for text in (heads[title], *(row[title] for row in values))) for title in SORTS}
    omitted = _omitted(widths, choice.sort, width)
    titles = [title for title in SORTS if title not in omitted]
    room = width - sum(len(GAP) + widths[title] for title in titles[1:])
    names = labels([row["server"] for row in values], [row[1]["address"] for row in rows], room)
    caption = f"no room for {', '.join(omitted)}" if omitted else None
    shown = Table(box=None, header_style="bold", pad_edge=False, caption=caption, caption_justify="left")
    for title in titles:
        shown.add_column(heads[title], justify="left" if title in ("server", "state") else "right", no_wrap=True)
    first = max(0, min(choice.at - height // 2, len(rows) - height))
    for number, row in enumerate(values[first : first + height], first):
        style = "reverse" if number == choice.at else "" if row["state"] == "in" else "yellow"
        shown.add_row(names[number], *(row[title] for title in titles[1:]), style=style)
    return shown


def _values(row: Row, rates: Rates) -> dict[str, str]:
    numbers = {
        title: view.quantity(of(row, rates), 3 if title in ("ratio", "R") else 1) for title, of in _NUMBERS.items()
    }
    return {"state": str(row[1]["state"])} | numbers


def _omitted(widths: Mapping[str, int], sort: str, width: int) -> list[str]:
    """Return the columns to omit so that the column of names has its least width, in the order of SORTS. Columns are
    omitted from the last one backwards; the sorting column is never omitted."""
    names = min(_NAME_CELLS, widths["server"])
    needed = names + sum(len(GAP) + cells for title, cells in widths.items() if title != "server")
    omitted: list[str] = []
    for title in reversed(SORTS[1:]):
        if needed > width and title != sort:
            needed -= len(GAP) + widths[title]
            omitted.insert(0, title)
    return omitted


def details(row: Row) -> Text:
    """Return a text with the sentence of the server's service, and all single values in the server's status."""
    service, server = row
    values = [f"{key} {value}" for key, value in server.items() if not isinstance(value, dict)]
    return Text("\n".join([f"{service['name']}: {service['sentence']}", ", ".join(values)]))
