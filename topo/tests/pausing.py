"""A web server whose responses pause: `GET /pause/SECONDS` within a body that ends with the connection, and
`GET /think/SECONDS` before a whole response. It answers `Expect: 100-continue` at once, and keeps connections.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

HALF = b"half of a page\n" * 200
WHOLE = 2 * HALF


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection."""
    try:
        while await _answer(reader, writer):
            pass
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    writer.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """One request; whether the connection is kept."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    _, what, seconds = head.split()[1].split("/")
    fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n")[1:])}
    if "expect" in fields:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    await reader.readexactly(int(fields.get("content-length", 0)))
    if what == "pause":
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + HALF)
        await asyncio.sleep(float(seconds))
        writer.write(HALF)
        return False
    await asyncio.sleep(float(seconds))
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(WHOLE) + WHOLE)
    return True


async def run(address: str, port: int) -> None:
    """Serve until it is stopped."""
    async with await asyncio.start_server(serve, address, port, backlog=500) as server:
        await server.serve_forever()


def main(arguments: Sequence[str]) -> None:
    """Serve from the command line."""
    asyncio.run(run(arguments[0], int(arguments[1])))


if __name__ == "__main__":
    main(sys.argv[1:])
