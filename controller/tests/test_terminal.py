"""Tests that the commands print only characters of the output's encoding, and lines that fit the terminal."""

from __future__ import annotations

import asyncio
import io
import json
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from configs import web
from sluice.cli.main import main
from test_cli import ENV, SLUICE
from test_livecommands import acall, at_terminal, led

NAME, ESCAPED = "сервер2", "".join(rf"\u{ord(letter):04x}" for letter in "сервер") + "2"
COMMANDS = (
    ("status",),
    ("status", "--json"),
    ("explain", "10.0.1.77", "web"),
    ("drain", NAME),
    ("events",),
    ("undrain", NAME),
    ("events", "--json"),
    ("mode", "web", "production"),
    ("reload", "--dry-run"),
    ("check",),
)


def written(encoding: str, *arguments: str) -> tuple[int, str]:
    """Return exit status and output of a command whose output streams have a strict encoding."""
    output = io.BytesIO()
    with (
        io.TextIOWrapper(output, encoding, "strict", write_through=True) as stream,
        redirect_stdout(stream),
        redirect_stderr(stream),
    ):
        status = main(arguments)
        return status, output.getvalue().decode(encoding)


@asynccontextmanager
async def cyrillic(tmp_path: Path) -> AsyncGenerator[Path]:
    """Run a controller with a server whose name is Cyrillic; yield the path of its configuration."""
    async with led(tmp_path) as (_, path, it):
        path.write_text(path.read_text().replace("name: s2", f"name: {NAME}"))
        await it.controller.reload()
        yield path


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", ESCAPED), ("latin-1", ESCAPED), ("utf-8", NAME)])
async def test_letters_that_the_encoding_lacks_are_escaped(tmp_path: Path, encoding: str, shown: str) -> None:
    async with cyrillic(tmp_path) as path:
        for command in COMMANDS:
            status, text = await asyncio.to_thread(written, encoding, *command, "-c", str(path))
            assert status == 0, text
            if command[0] not in ("mode", "check", "reload"):
                assert (ESCAPED if "--json" in command else shown) in text
        status, text = await asyncio.to_thread(written, encoding, "drain", f"{NAME}x", "-c", str(path))
        assert status == 1
        assert f"{shown}x" in text


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        ({"PYTHONIOENCODING": "ascii"}, ESCAPED),
        ({"PYTHONIOENCODING": "ascii:replace"}, "??????2"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, ESCAPED),
        ({"LC_ALL": "C"}, NAME),
    ],
    ids=["ASCII", "a handler of the environment's", "C", "C in UTF-8 mode"],
)
async def test_the_environment_has_its_say(tmp_path: Path, environment: dict[str, str], shown: str) -> None:
    async with cyrillic(tmp_path) as path:
        process = await asyncio.create_subprocess_exec(
            *SLUICE, "status", "--watch", "0.05", "-c", str(path), stdout=asyncio.subprocess.PIPE, env=ENV | environment
        )
        assert process.stdout is not None
        text = b""
        async with asyncio.timeout(60):
            while text.count(b"neighbours that do not answer") < 2:
                line = await process.stdout.readline()
                assert line, "it has ended"
                text += line
            process.send_signal(signal.SIGINT)
            await process.stdout.read()
            assert await process.wait() == 130
    assert shown in text.decode()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_complaints_are_escaped_too(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "sluice.yaml"
    path.write_text(web().replace("name: s2", f"name: {NAME}").replace("name: s1", f"name: {NAME}"))
    status, text = written(encoding, "check", "-c", str(path))
    assert status == 1
    assert ESCAPED in text


def test_a_path_that_is_not_utf8_is_escaped() -> None:
    status, text = written("utf-8", "check", "-c", "\udcff.yaml")
    assert status == 1
    assert text.startswith(r"\udcff.yaml:0: No such file")


@pytest.mark.parametrize("columns", ["60", "100"])
async def test_columns_of_escaped_names_are_aligned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    async with cyrillic(tmp_path) as path:
        _, text = await asyncio.to_thread(written, "ascii", "status", "-c", str(path))
    rows = [line for line in text.splitlines() if line.startswith(("  server  ", "  s1  ", r"  \u"))]
    assert rows[0].index("state") == rows[1].index(" in ") + 1 == rows[2].index(" in ") + 1
    assert max(map(len, text.splitlines())) <= int(columns)


@pytest.mark.parametrize("columns", ["40", "80"])
async def test_no_line_is_longer_than_a_terminal(tmp_path: Path, columns: str) -> None:
    names = ["a" * 55 + "-the-1st", "a" * 55 + "-the-2nd"]
    async with led(tmp_path) as (_, path, it):
        text = path.read_text()
        for old, new in zip(("s1", "s2"), names, strict=True):
            text = text.replace(f"name: {old}", f"name: {new}")
        path.write_text(text)
        await it.controller.reload()
        for command in (("status",), ("explain", "10.0.1.77", "web"), ("events",), ("drain", names[0])):
            coloured = await asyncio.to_thread(at_terminal, *command, "-c", str(path), COLUMNS=columns)
            shown = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
            assert max(map(len, shown.splitlines())) <= int(columns), shown
            if command == ("status",):
                assert "1st" in shown and "2nd" in shown
        whole = (await acall("status", "-c", str(path))).stdout
        assert all(name in whole for name in names), "without a terminal names are whole"
        assert json.loads((await acall("status", "--json", "-c", str(path))).stdout)["role"] == "primary"
