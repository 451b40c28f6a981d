"""Tests of `sluice top`: order of the rows, keys, and the command at a terminal."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from pagestatus import server, service, status
from rich.console import Console
from sluice.cli.topview import SORTS, Choice, details, named, ordered, pressed, table
from sluice.page.rates import Rates, Sample
from test_cli import ENV, SLUICE
from test_livecommands import led

STATUS = status(
    service("web", server("s1", r=0.5, open=3), server("s2", r="inf", open=9), server("s3", state="ejected")),
    service("mail", server("m1", r=None, open=5)),
)
SAMPLE = Sample(2.0, STATUS)
RATES = Rates(SAMPLE, None)


def test_servers_are_sorted_and_the_chosen_one_stays_chosen() -> None:
    choice, _ = ordered(Choice(), SAMPLE, RATES)
    assert choice.rows == ("web/s1", "web/s2", "web/s3", "mail/m1")
    choice, _ = pressed(choice, "j")
    assert choice.chosen == "web/s2"
    for sort, rows in (
        ("R", ("web/s2", "web/s1", "web/s3", "mail/m1")),
        ("open", ("web/s2", "mail/m1", "web/s1", "web/s3")),
        ("state", ("web/s3", "web/s1", "web/s2", "mail/m1")),
    ):
        again, _ = ordered(replace(choice, sort=sort), SAMPLE, RATES)
        assert (again.rows, again.chosen) == (rows, "web/s2")


def test_keys() -> None:
    choice, rows = ordered(Choice(), SAMPLE, RATES)
    for _ in range(9):
        choice, _ = pressed(choice, "\x1b[B")
    assert pressed(choice, "d")[1] == {"command": "drain", "server": "mail/m1"}
    assert pressed(choice, "u")[1] == {"command": "undrain", "server": "mail/m1"}
    assert pressed(choice, "x") == (choice, None)
    assert pressed(Choice(), "d") == (Choice(), None), "there is none to drain"
    sorts = [choice.sort]
    for _ in SORTS:
        choice, _ = pressed(choice, "s")
        sorts.append(choice.sort)
    assert sorts == [*SORTS, SORTS[0]]
    assert "web: All servers answer." in details(rows[0]).plain


def test_as_many_rows_as_fit_with_the_chosen_one() -> None:
    choice, rows = ordered(Choice(), SAMPLE, RATES)
    console = Console(file=io.StringIO(), width=100)
    with console.capture() as captured:
        console.print(table(replace(choice, at=3), rows, RATES, 2))
    lines = captured.get().splitlines()
    assert [line.split()[0] for line in lines] == ["server▾", "web/s3", "mail/m1"]


LONG = status(
    *(
        service(
            "a-service-with-a-name-of-35-letters" + end,
            *(
                server(
                    f"s{number}",
                    address=f"198.51.100.{100 + 10 * row + number}:65535",
                    state="draining",
                    r="inf",
                    open=1_234_567,
                    ratio=0.375,
                )
                for number in range(2)
            ),
        )
        for row, end in enumerate(("", "-x", "-" + "y" * 28 + "0" + "z" * 28, "-" + "y" * 28 + "1" + "z" * 28))
    )
)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("width", [40, 60, 80, 95, 120])
def test_rows_fit_differ_and_have_whole_numbers(width: int, sort: str) -> None:
    sample = Sample(2.0, LONG)
    rates = Rates(sample, Sample(1.0, LONG))
    choice, rows = ordered(Choice(sort=sort), sample, rates)
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as captured:
        console.print(table(choice, rows, rates, len(rows), width))
    lines = [line.rstrip() for line in captured.get().splitlines()]
    assert max(map(len, lines)) <= width
    head, *shown = lines[: 1 + len(rows)]
    columns = {
        "state": "draining",
        "ratio": "0.375",
        "R": "inf",
        "open": "1,234,567",
        **dict.fromkeys(("SYN/s", "failures/s", "RST/s"), "0"),
    }
    titles = head.replace("▾", "").split()
    assert set(titles) >= {"server", sort}
    values = [columns[title] for title in titles[1:]]
    names = [" ".join(row.split()[: -len(values)]) if values else row for row in shown]
    assert len(set(names)) == len(rows), "rows look alike"
    assert [row.split()[len(name.split()) :] for row, name in zip(shown, names, strict=True)] == [values] * len(rows)
    left_out = [title for title in columns if title not in titles]
    assert " ".join(lines[1 + len(rows) :]) == (f"no room for {', '.join(left_out)}" if left_out else "")
    if width >= 95:
        assert left_out == []


def test_the_chosen_server_is_named_in_full() -> None:
    _, rows = ordered(Choice(), Sample(2.0, LONG), RATES)
    assert named(rows[3]) == "a-service-with-a-name-of-35-letters-x/s1 (198.51.100.111:65535)"


def test_without_a_terminal_it_says_what_else_there_is() -> None:
    done = subprocess.run(
        [*SLUICE, "top"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False, env=ENV
    )
    assert (done.returncode, done.stderr) == (
        1,
        "sluice: top needs a terminal; without one use `sluice status --watch`\n",
    )


def test_at_a_dumb_terminal_too() -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [*SLUICE, "top"],
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        env=ENV | {"TERM": "dumb"},
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (
        1,
        "sluice: top needs a terminal that it can draw on, not TERM=dumb; use `sluice status --watch`\n",
    )


@pytest.mark.parametrize(
    ("environment", "name", "shown"),
    [
        ({}, "s2", "s2"),
        ({"COLUMNS": "40", "LINES": "12"}, "s2", "s2"),
        ({"PYTHONIOENCODING": "ascii"}, "ж2", r"\u04362"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "ж2", r"\u04362"),
        ({"PYTHONIOENCODING": "latin-1"}, "é2", "é2"),
    ],
    ids=["100 columns", "40 columns", "ASCII", "C", "Latin-1"],
)
async def test_a_drain_at_a_terminal(tmp_path: Path, environment: dict[str, str], name: str, shown: str) -> None:
    async with led(tmp_path) as (_, path, it):
        path.write_text(path.read_text().replace("name: s2", f"name: {name}"))
        await it.controller.reload()
        ours, theirs = pty.openpty()
        env = ENV | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"} | environment
        process = await asyncio.create_subprocess_exec(
            *SLUICE, "top", "-c", str(path), stdin=theirs, stdout=theirs, env=env
        )
        os.close(theirs)

        def said(words: str) -> None:
            text, deadline = "", time.monotonic() + 60
            while words not in text:
                assert time.monotonic() < deadline, f"{words!r} is not in {text!r}"
                text += os.read(ours, 1 << 16).decode(environment.get("PYTHONIOENCODING", "utf-8"), errors="replace")

        try:
            await asyncio.to_thread(said, "q ends")
            os.write(ours, b"j")
            await asyncio.to_thread(said, f"chosen: web/{shown} (10.0.3.2:80)")
            os.write(ours, b"d")
            await asyncio.to_thread(said, f"web/{shown} drains: no new")
            assert it.controller.world.drained == {2}
            os.write(ours, b"q")
            async with asyncio.timeout(60):
                assert await process.wait() == 0
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            os.close(ours)
