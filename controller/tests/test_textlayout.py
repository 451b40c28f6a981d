"""Tests of names, tables and lines that fit a terminal: long text is shortened, but a number never is."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pagestatus import server, service, status
from rich.cells import cell_len
from sluice.views.statustext import news_lines, render
from sluice.views.textlayout import cut, labels, narrow, wrapped

WIDTHS = (40, 60, 80, 95, 120)


@pytest.mark.parametrize(
    ("name", "cells", "shown"),
    [
        ("web", 3, "web"),
        ("service-0001", 9, "servi…001"),
        ("service-0001", 1, "…"),
        ("服務器一號機房", 8, "服務…房"),
        ("", 5, ""),
    ],
)
def test_a_name_is_cut_in_the_middle(name: str, cells: int, shown: str) -> None:
    assert cut(name, cells) == shown
    assert cell_len(cut(name, cells)) <= cells


def test_names_alike_once_cut_get_their_addresses() -> None:
    names = ["a" * 30 + str(number) + "b" * 30 for number in range(2)]
    addresses = ["10.0.2.11:80", "10.0.2.12:80"]
    assert labels([*names, "c"], [*addresses, "10.0.2.13:80"], 20) == [
        "aaaa…bb 10.0.2.11:80",
        "aaaa…bb 10.0.2.12:80",
        "c",
    ]
    assert labels(names, addresses, 12) == addresses, "no room for a name beside them"
    assert labels(names, addresses, 61) == names


@pytest.mark.parametrize("width", range(23, 60))
def test_columns_without_room_follow_below_with_their_names(width: int) -> None:
    head = ["server", *(f"column{number}" for number in range(5))]
    rows = [[f"server-of-a-long-name-{row}", *(f"{row}2345678{column}" for column in range(5))] for row in range(3)]
    lines = narrow([head, *rows], ["10.0.2.11:80"] * 3, width, left=1)
    assert max(map(cell_len, lines)) <= width
    words = " ".join(lines).split()
    for cell in [*head[1:], *(cell for row in rows for cell in row[1:])]:
        assert words.count(cell) == 1
    assert len(lines) % 4 == 0, "every part has a head and all rows"


def test_a_line_is_broken_between_words_and_its_rest_set_in() -> None:
    text = "  SYNs offered 1234567, refused 2345678\nshort"
    assert wrapped(text, 25) == "  SYNs offered 1234567,\n    refused 2345678\nshort"
    assert wrapped(text, None) == text
    assert wrapped("x" * 25, 12) == "xxxxxxxxxx\n  xxxxxxxxxx\n  xxxxx"


def long_status(*names: str) -> dict[str, Any]:
    """Return a status with these servers whose numbers have as many digits as possible."""
    counts = dict.fromkeys(("syn", "synack", "synack_again", "completed", "reset"), 99_999)
    servers = [
        server(
            name,
            address=f"198.51.100.{100 + number}:65535",
            state="draining",
            weight=65535,
            r=12.345,
            r_every_synack=23.456,
            open=34567,
            max_connections=45678,
            **counts,
        )
        for number, name in enumerate(names)
    ]
    more = {"unpinned_share": 0.12345, "moved": 56789, "disowned": 67890, "pinned": 78901, "unpinned_new": 89012}
    return status(service("s" * 63, *servers, refuses=True, **more))


NUMBERS = [
    "1.0000",
    "65535",
    "12.345",
    "23.456",
    "99999",
    "34567",
    "45678",
    "12.35%",
    "56789",
    "67890",
    "78901",
    "89012",
]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "names",
    [
        ("s1", "s2", "s3"),
        tuple("server-" + "x" * 53 + f"{number:03}" for number in range(3)),
        tuple(f"{number}-" + "x" * 61 for number in range(3)),
        tuple("x" * 31 + str(number) + "x" * 31 for number in range(3)),
        tuple("сервер-" + "ю" * 53 + f"{number:03}" for number in range(3)),
        tuple("服" * 30 + str(number) for number in range(3)),
    ],
    ids=["short", "end", "start", "middle", "Cyrillic", "Chinese"],
)
def test_a_status_fits_with_whole_numbers_and_rows_that_differ(names: tuple[str, ...], width: int) -> None:
    text = wrapped(render(long_status(*names), width), width)
    lines = text.splitlines()
    assert max(map(cell_len, lines)) <= width
    words = re.split(r"[\s,()]+", text)
    assert [number for number in NUMBERS if number not in words] == []
    head = next(number for number, line in enumerate(lines) if line.startswith("  server  "))
    rows = [line[: line.index("draining")].split() for line in lines[head + 1 : head + 4]]
    assert len(set(map(tuple, rows))) == 3, "rows look alike"
    for row, name, number in zip(rows, names, range(3), strict=True):
        first, _, last = row[0].partition("…")
        address = f"198.51.100.{100 + number}:65535"
        assert address in row or (name.startswith(first) and name.endswith(last))


@pytest.mark.parametrize("width", WIDTHS)
def test_destinations_of_a_crowd_fit_too(width: int) -> None:
    rows = [
        {
            "name": f"{'a' * 63}, {'b' * 63} (10.0.0.{number})",
            **dict.fromkeys(("offered", "admitted", "refused"), 12345),
        }
        | {"returning": 23456}
        for number in range(2)
    ]
    lines = news_lines({"mode": "production", "sentence": "No crowd.", "destinations": rows}, width)
    assert max(map(len, lines)) <= width
    assert sum("0.1)" in line for line in lines) == sum("0.0)" in line for line in lines) > 0
    assert "23456" in " ".join(lines).split()


@pytest.mark.parametrize(
    ("count", "shown"), [(99_960_000, "100M"), (99_940_000, "99.9M"), (99_999, "99999"), (100_000, "100k")]
)
def test_a_long_count_is_shown_in_five_characters_at_most(count: int, shown: str) -> None:
    counts = dict.fromkeys(("syn", "synack", "synack_again", "completed", "reset"), count)
    rows = render(status(service("web", server("s1", **counts))), 80).splitlines()
    assert shown in next(row for row in rows if " s1 " in row).split()
