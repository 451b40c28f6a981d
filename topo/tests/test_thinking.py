"""Tests of users who think between pages, against servers that end connections at different moments."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from topo.labs.webservers import KINDS, WebServer
from topo.load.client import Pages, ThinkingUsers, fetch_pages
from topo.load.program import command
from topo.testbed import REPOSITORY

BODY = b"a page"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n" + BODY

Serve = Callable[[int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""A function that handles a request of a connection; its first argument is the request's number on the connection, from
0."""


def users(serve: Serve, number: int = 4, seconds: float = 0.6) -> Pages:
    """Run users against a server whose requests ``serve`` handles; return the users' counts."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = 0
        while not writer.is_closing():
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            await serve(asked, reader, writer)
            asked += 1
        writer.close()

    async def both() -> Pages:
        server = await asyncio.start_server(connection, "127.0.0.1", 0)
        async with server:
            address, port = server.sockets[0].getsockname()[:2]
            times: dict[str, Any] = {"seconds": seconds, "think": 0.02, "session": 1000.0}
            to = f"{address}:{port}"
            return await fetch_pages(ThinkingUsers(to, ["127.0.0.1"], number, objects=1, body=BODY.decode(), **times))

    return asyncio.run(both())


async def answer(writer: asyncio.StreamWriter, what: bytes = WHOLE) -> None:
    writer.write(what)
    await writer.drain()


def test_a_kept_connection_is_used_again() -> None:
    async def serve(_asked: int, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(writer)

    outcome = users(serve)
    assert outcome.connections == 4 and outcome.pages > 4 and outcome.lost == []
    assert len(outcome.page_s) == outcome.pages + outcome.unfinished


@pytest.mark.parametrize("resets", [False, True])
def test_a_request_that_crossed_the_connections_end_is_repeated(resets: bool) -> None:
    async def serve(asked: int, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if asked == 0:
            await answer(writer)
        elif resets:
            writer.transport.abort()
        else:
            writer.close()

    outcome = users(serve)
    assert outcome.lost == [] and outcome.pages > 4
    assert sum(outcome.raced.values()) >= outcome.connections - 4 - 4


def test_a_connection_that_ended_while_its_user_thought_is_no_race() -> None:
    async def serve(_asked: int, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(writer)
        writer.close()

    outcome = users(serve)
    assert outcome.lost == [] and outcome.pages > 4
    assert sum(outcome.found_closed.values()) > 0


@pytest.mark.parametrize("said", [b"", WHOLE[:-1], WHOLE[:20], b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"])
def test_what_a_client_may_not_repeat_is_lost(said: bytes) -> None:
    """A page is lost if a new connection ends without an answer or within an answer, or if the status is not 200."""

    async def serve(_asked: int, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(writer, said)
        writer.close()

    assert users(serve).lost


def test_another_page_is_lost() -> None:
    async def serve(_asked: int, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await answer(writer, WHOLE.replace(b"a page", b"a cage"))

    assert "another page" in users(serve).lost[0]


def test_the_program_reports_users_pages() -> None:
    users = ThinkingUsers("127.0.0.1:1", ["127.0.0.1"], users=1, seconds=0.5, think=0.05)
    done = subprocess.run(command(users), capture_output=True, text=True, check=True, cwd=REPOSITORY, timeout=30)
    outcome = json.loads(done.stdout)
    assert "no connection" in outcome["lost"][0] and outcome["connections"] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("keep_s", [0, 5])
def test_a_web_servers_own_program_takes_its_configuration(kind: str, keep_s: int, tmp_path: Path) -> None:
    server = WebServer(kind, 8, keep_s)
    (tmp_path / "files").mkdir()
    for name, text in server.files(tmp_path, "127.0.0.1").items():
        (tmp_path / name).write_text(text)
    done = subprocess.run([*server.command(tmp_path), "-t"], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
