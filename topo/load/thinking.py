"""Users who fetch a page, think, and fetch the next on the same connection, as long as that is there.

    python -m topo.load.thinking --to 203.0.113.80:80 --source 10.101.0.1 --users 20 --seconds 30 --think 3

A page is several objects, one after another.  After some pages a user leaves and comes back: its connection is
closed, the next is new.  Thinking is exponential, so that the hazard of a request is the same at every moment.

As RFC 9110, section 9.2.2, lets a client: a GET that was sent on a used connection is sent again on a new one if that
ended without a byte of an answer.  Anything else that goes wrong is a page lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

PATH = "/page"


class Lost(Exception):
    """An answer that is wrong, or none where the client may not ask again."""


class Ended(Exception):
    """The connection ended before a byte of the answer."""


@dataclass(slots=True)
class Outcome:
    """What became of all users' pages and connections."""

    pages: int = 0
    """Fetched whole since the measurement began."""
    page_s: list[float] = field(default_factory=list[float])
    """Time of each, and so far of those that were not there at the end."""
    unfinished: int = 0
    lost: list[str] = field(default_factory=list[str])
    connections: int = 0
    found_closed: dict[str, int] = field(default_factory=dict[str, int])
    """Connections that had ended when they were wanted again, by the user's address."""
    raced: dict[str, int] = field(default_factory=dict[str, int])
    """Those that ended when a request was under way."""
    connect_s: dict[str, float] = field(default_factory=dict[str, float])
    """Sum of the times to connect."""
    connected: dict[str, int] = field(default_factory=dict[str, int])


class Prompt(asyncio.StreamReaderProtocol):
    """Closes as soon as the other side does, as browsers do: a server that lingers until then is not kept."""

    def eof_received(self) -> bool:
        """Let the transport close."""
        super().eof_received()
        return False


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(host: str, port: int, source: str) -> Streams:
    """Connect from an address. Raises OSError."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    transport, protocol = await loop.create_connection(
        lambda: Prompt(reader, loop=loop), host, port, local_addr=(source, 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class User:
    """One user."""

    def __init__(self, options: argparse.Namespace, source: str, outcome: Outcome, number: int) -> None:
        self._options = options
        self._source = source
        self._outcome = outcome
        self._random = random.Random(options.seed * 100_003 + number)
        self._streams: Streams | None = None
        self._began: float | None = None

    async def run(self, measured: float, end: float) -> None:
        """Until the end; pages that begin before `measured` are not counted."""
        try:
            await asyncio.sleep(self._think())
            while True:
                pages = max(1, round(self._random.expovariate(1 / self._options.session)))
                for _ in range(pages):
                    await self._page(measured)
                    await asyncio.sleep(self._think())
                self._close()
        except asyncio.CancelledError:
            if self._began is not None and self._began < end:
                self._outcome.unfinished += 1
                self._outcome.page_s.append(end - max(self._began, measured))
            raise
        finally:
            self._close()

    def _think(self) -> float:
        return self._random.expovariate(1 / self._options.think)

    async def _page(self, measured: float) -> None:
        self._began = began = time.monotonic()
        for _ in range(self._options.objects):
            try:
                await self._fetch()
            except (Lost, OSError) as error:
                self._outcome.lost.append(f"{self._source}: {type(error).__name__}: {error}")
                self._close()
        self._began = None
        if time.monotonic() >= measured:
            self._outcome.pages += 1
            self._outcome.page_s.append(time.monotonic() - max(began, measured))

    async def _fetch(self) -> None:
        if self._streams is not None and self._streams[0].at_eof():
            self._count(self._outcome.found_closed)
            self._close()
        if self._streams is not None:
            try:
                await self._ask(self._streams)
                return
            except Ended:
                self._count(self._outcome.raced)
                self._close()
        began = time.monotonic()
        host, port = self._options.to
        try:
            self._streams = await connected(host, port, self._source)
        except OSError as error:
            raise Lost(f"no connection: {error}") from error
        self._outcome.connections += 1
        self._count(self._outcome.connected)
        self._outcome.connect_s[self._source] = self._outcome.connect_s.get(self._source, 0) + time.monotonic() - began
        try:
            await self._ask(self._streams)
        except Ended as error:
            raise Lost("a new connection ended without an answer") from error

    def _count(self, where: dict[str, int]) -> None:
        where[self._source] = where.get(self._source, 0) + 1

    async def _ask(self, streams: Streams) -> None:
        reader, writer = streams
        try:
            writer.write(f"GET {PATH} HTTP/1.1\r\nHost: {self._options.to[0]}\r\n\r\n".encode())
            first = await reader.read(1)
        except OSError as error:
            raise Ended from error
        if not first:
            raise Ended
        try:
            head = first + await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise Lost("half an answer") from error
        lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if lines[0].split()[1] != "200":
            raise Lost(lines[0])
        try:
            body = await reader.readexactly(int(fields["content-length"]))
        except asyncio.IncompleteReadError as error:
            raise Lost("half a page") from error
        if body != self._options.body:
            raise Lost("another page")
        if fields.get("connection", "").lower() == "close":
            self._close()

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def run(options: argparse.Namespace) -> Outcome:
    """All users, for the time that they are given."""
    outcome = Outcome()
    began = time.monotonic()
    measured = began + options.settle
    end = measured + options.seconds
    sources: Sequence[str] = options.source
    users = [
        asyncio.create_task(User(options, sources[number % len(sources)], outcome, number).run(measured, end))
        for number in range(options.users)
    ]
    await asyncio.sleep(end - time.monotonic())
    for user in users:
        user.cancel()
    for ended in await asyncio.gather(*users, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
    return outcome


def parse_target(text: str) -> tuple[str, int]:
    """Read ADDRESS:PORT."""
    host, _, port = text.rpartition(":")
    socket.inet_aton(host)
    return host, int(port)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.thinking", description="Users who think between pages.")
    parser.add_argument("--to", type=parse_target, required=True, help="address and port of the service")
    parser.add_argument("--source", action="append", required=True, help="an address of users', in turn")
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--objects", type=int, default=4, help="requests for a page, one after another")
    parser.add_argument("--think", type=float, default=3.0, help="mean time between pages, s")
    parser.add_argument("--session", type=float, default=8.0, help="mean pages before a user closes its connection")
    parser.add_argument("--settle", type=float, default=0.0, help="time before the measurement, s")
    parser.add_argument("--seconds", type=float, default=30.0, help="time of the measurement")
    parser.add_argument("--body", type=lambda text: text.encode(), default=b"a page\n" * 1000, help="what a page is")
    parser.add_argument("--seed", type=int, default=1)
    print(json.dumps(asdict(asyncio.run(run(parser.parse_args(arguments))))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
