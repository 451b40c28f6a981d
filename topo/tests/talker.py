"""A server that says its name, and ends, keeps alive or half-closes its connections as it is told.

    python talker.py NAME ADDRESS PORT

A client sends lines:

    name                 the server answers with its name
    keepalive            probes every second from now on; the server answers `ok`
    fin, reset           the server closes first, by FIN or by RST
    compute SECONDS SIZE once the client has closed its side, the server waits, sends its `content` and closes
    listen               the server closes its side, reads the client's to its end, and says on standard output
                         `PORT DIGEST`: the client's port, and the SHA-256 of what came

Whatever else ends the client's side ends the server's.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import resource
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress

BACKLOG = 4096
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: close by RST."""
READY = "talking"
"""What it says first."""


def content(name: str, size: int) -> bytes:
    """What server `name` sends: no other server's."""
    return random.Random(name).randbytes(size)


def keep_alive(connection: socket.socket) -> None:
    """Send probes over every second of silence, and never give up."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 100)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


class Talker:
    """One server."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def serve(self, address: str, port: int) -> None:
        """Take connections until the process ends."""
        server = await asyncio.start_server(self._talk, address, port, backlog=BACKLOG)
        print(READY, flush=True)
        await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while words := (await reader.readline()).decode().split():
                if await self._do(words, reader, writer):
                    break
            await writer.drain()
        writer.close()

    async def _do(self, words: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Do what a line says; whether it was the last one."""
        connection: socket.socket = writer.get_extra_info("socket")
        match words:
            case ["name"]:
                writer.write(f"{self._name}\n".encode())
                return False
            case ["keepalive"]:
                keep_alive(connection)
                writer.write(b"ok\n")
                return False
            case ["reset"]:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            case ["compute", seconds, size]:
                await reader.read()
                await asyncio.sleep(float(seconds))
                writer.write(content(self._name, int(size)))
            case ["listen"]:
                client_port = writer.get_extra_info("peername")[1]
                writer.write_eof()
                print(client_port, hashlib.sha256(await reader.read()).hexdigest(), flush=True)
            case _:
                pass  # ["fin"]
        return True


def main(arguments: Sequence[str]) -> None:
    """Serve from the command line."""
    name, address, port = arguments
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(Talker(name).serve(address, int(port)))


if __name__ == "__main__":
    main(sys.argv[1:])
