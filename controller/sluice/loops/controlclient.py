"""The client of the controller's control socket: asynchronous for the web page, blocking for the commands."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from .commands import Refused
from .events import Event
from .watchedtime import WatchedLoop

ANSWER_S = 30.0
"""Seconds to wait for the controller's answer."""
_LINE = 64 << 20
"""The largest answer in bytes. A status of 1,000 servers has half a million bytes."""


async def asked(path: str, request: Mapping[str, Any], timeout_s: float = ANSWER_S) -> Any:
    """Send one command to a running controller and return its result.

    Raises Refused if the controller refuses the command (with the controller's message), if no controller is running,
    or if it does not answer within ``timeout_s`` seconds.
    """
    async with _connection(path, request) as reader:
        return await _answer(path, reader, timeout_s)


async def followed(path: str, timeout_s: float = ANSWER_S) -> AsyncGenerator[list[Event]]:
    """Yield the controller's last events, then each new one, until the controller ends. Raises Refused."""
    async with _connection(path, {"command": "events", "follow": True}) as reader:
        yield await _answer(path, reader, timeout_s)
        while (line := await reader.readline()).endswith(b"\n"):  # the last line may be incomplete
            yield [json.loads(line)]


def ask(path: str, request: Mapping[str, Any], timeout_s: float = ANSWER_S) -> Any:
    """Call ``asked`` and block until its result is available."""
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        return runner.run(asked(path, request, timeout_s))


def follow(path: str) -> Generator[Event]:
    """Yield the events of ``followed`` one by one, and block until the next event arrives."""
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        events = followed(path)
        try:
            while batch := runner.run(_next(events)):
                yield from batch
        finally:
            runner.run(events.aclose())


async def _next(events: AsyncGenerator[list[Event]]) -> list[Event]:
    """Return the next non-empty list of events; an empty list once there are no more events."""
    async for batch in events:
        if batch:
            return batch
    return []


@asynccontextmanager
async def _connection(path: str, request: Mapping[str, Any]) -> AsyncGenerator[asyncio.StreamReader]:
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=_LINE)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise Refused(f"no controller listens on {path}; start one with `sluice run`") from error
    except OSError as error:
        raise Refused(f"{path}: {error}") from error
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        yield reader
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    finally:
        writer.close()


async def _answer(path: str, reader: asyncio.StreamReader, timeout_s: float) -> Any:
    try:
        async with asyncio.timeout(timeout_s):
            line = await reader.readline()
    except TimeoutError as error:
        raise Refused(f"{path}: the controller has not answered for {timeout_s:g} s") from error
    if not line.endswith(b"\n"):
        raise Refused(f"{path}: the controller closed the connection without a whole answer")
    reply = json.loads(line)
    if not reply["ok"]:
        raise Refused(reply["error"])
    return reply["result"]
