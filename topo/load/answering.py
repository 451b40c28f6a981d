"""A web server whose answers say what they answer: for clients that compare every byte.

    python -m topo.load.answering --name s1 --address 10.0.11.1

`GET /...?seed=S&bytes=N` is answered with the N bytes of `body`, a request with a body with that body's SHA-256,
`CONNECT` and `Upgrade` with an echo of what follows. `wait=SECONDS` delays the answer, `pace=SECONDS` the reading of
each 64 KiB of the request. `Expect: 100-continue` is answered, and a client that ends its side still hears the answer.
Each answer names the server (`X-Server`), and the window scale that it has told (`X-Scale`).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import parse_qsl, urlsplit

PORT = 80
BACKLOG = 1024
BLOCK_BYTES = 1 << 16
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def body(seed: int, size: int) -> bytes:
    """What is answered to `seed=...&bytes=...`."""
    return random.Random(seed).randbytes(size)


class Connection:
    """A client's connection."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._name, self._reader, self._writer = name, reader, writer
        # struct tcp_info: a byte with both window scales, the own one in its upper half.
        connection: socket.socket = writer.get_extra_info("socket")
        self._scale = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[6] >> 4

    async def serve(self) -> None:
        """Answer one request after the other, to the end."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._request():
                await self._writer.drain()
        self._writer.close()

    async def _request(self) -> bool:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.splitlines()
        method, target, _ = first.split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        if method == "CONNECT" or "upgrade" in fields:
            await self._echo("200 OK" if method == "CONNECT" else "101 Switching Protocols")
            return False
        query = dict(parse_qsl(urlsplit(target).query))
        if fields.get("expect") == "100-continue":
            self._writer.write(CONTINUE)
        digest = await self._digest(fields, float(query.get("pace", 0)))
        await asyncio.sleep(float(query.get("wait", 0)))
        answer = digest or body(int(query.get("seed", 0)), int(query.get("bytes", 0)))
        self._head("200 OK", f"Content-Length: {len(answer)}")
        self._writer.write(b"" if method == "HEAD" else answer)
        return fields.get("connection") != "close"

    def _head(self, status: str, *fields: str) -> None:
        own = (f"X-Server: {self._name}", f"X-Scale: {self._scale}")
        self._writer.write("\r\n".join([f"HTTP/1.1 {status}", *own, *fields, "", ""]).encode())

    async def _digest(self, fields: Mapping[str, str], pace_s: float) -> bytes:
        """Of the request's body; empty when it has none."""
        digest = hashlib.sha256()
        if fields.get("transfer-encoding") == "chunked":
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                digest.update((await self._reader.readexactly(size + 2))[:-2])
            await self._reader.readuntil(b"\r\n")
        elif left := int(fields.get("content-length", 0)):
            while left:
                block = await self._reader.readexactly(min(left, BLOCK_BYTES))
                digest.update(block)
                left -= len(block)
                await asyncio.sleep(pace_s)
        else:
            return b""
        return digest.hexdigest().encode()

    async def _echo(self, status: str) -> None:
        self._head(status, "Connection: upgrade", "Upgrade: echo")
        while block := await self._reader.read(BLOCK_BYTES):
            self._writer.write(block)
            await self._writer.drain()


async def serve(name: str, address: str) -> None:
    """Serve for ever."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(name, reader, writer).serve()

    async with await asyncio.start_server(connected, address, PORT, backlog=BACKLOG) as server:
        await server.serve_forever()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="A web server whose answers say what they answer.")
    parser.add_argument("--name", required=True)
    parser.add_argument("--address", required=True)
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.name, options.address))


if __name__ == "__main__":
    main()
