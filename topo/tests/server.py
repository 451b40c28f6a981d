"""The server of the lab's tests. It answers HTTP requests such that clients can compare every byte, and commands of a
line each.

The answer to `GET /...?seed=S&bytes=N` contains the N bytes of `body`. The answer to a request with a body contains the
SHA-256 of that body in `X-Digest`; without `bytes` the SHA-256 is also the body of the answer. After `CONNECT` and
`Upgrade` the server returns all further bytes (echo). `wait=SECONDS` delays the answer, `pace=SECONDS` delays the
reading of each 64 KiB of the request. `pause=SECONDS` delays the second half of an answer, after which the server
closes. The server answers `Expect: 100-continue` at once, and also answers a client that has closed its side. Each
answer contains the server's name (`X-Server`) and window scale (`X-Scale`).

A line that is no HTTP request is a command:

    name                 the server answers with its name
    keepalive            the server answers `ok`, and sends keepalive probes every second from now on
    fin, reset           the server closes the connection by a FIN or by a RST
    compute SECONDS SIZE after the client has closed its side, the server waits, sends its `content` and closes
    listen               the server closes its side and reads until the client closes; then it prints `PORT DIGEST`:
                         the client's port, and the SHA-256 of the received bytes

After any other line, and when the client closes its side, the server closes the connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import socket
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from topo.load.program import main
from topo.plan.network import WEB_PORT

BACKLOG = 4096
BLOCK_BYTES = 1 << 16
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
LINGER_0 = struct.pack("ii", 1, 0)
"""Value of SO_LINGER by which a socket closes with a RST."""


def body(seed: int, size: int) -> bytes:
    """Return the body of the answer to `seed=...&bytes=...`."""
    return random.Random(seed).randbytes(size)


def content(name: str, size: int) -> bytes:
    """Return the answer of server `name` to `compute`, different for each server."""
    return random.Random(name).randbytes(size)


def keep_alive(connection: socket.socket, probes: int = 100) -> None:
    """Enable keepalive probes after every second of silence; the kernel ends the connection after ``probes`` unanswered
    probes."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, probes)):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)


@dataclass(frozen=True)
class Server:
    """The program that runs the server."""

    name: str
    address: str
    ports: Sequence[int] = (WEB_PORT,)

    def run(self) -> None:
        """Serve until the process ends."""
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Serve connections until the process ends."""

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await Connection(self.name, reader, writer).serve()

        servers = [await asyncio.start_server(connected, self.address, port, backlog=BACKLOG) for port in self.ports]
        await asyncio.gather(*(server.serve_forever() for server in servers))


class Connection:
    """A client's connection."""

    def __init__(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._name, self._reader, self._writer = name, reader, writer
        self._socket: socket.socket = writer.get_extra_info("socket")

    async def serve(self) -> None:
        """Answer requests and commands in turn until the connection ends."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while await self._answer():
                await self._writer.drain()
        self._writer.close()

    async def _answer(self) -> bool:
        """Answer the next request or command; return whether others may follow."""
        words = (await self._reader.readline()).decode("latin-1").split()
        match words:
            case []:
                return False
            case [method, target, _] if target[0] in "/*" or method == "CONNECT":
                return await self._request(method, target)
            case ["name"]:
                self._writer.write(f"{self._name}\n".encode())
                return True
            case ["keepalive"]:
                keep_alive(self._socket)
                self._writer.write(b"ok\n")
                return True
            case ["reset"]:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
            case ["compute", seconds, size]:
                await self._reader.read()
                await asyncio.sleep(float(seconds))
                self._writer.write(content(self._name, int(size)))
            case ["listen"]:
                client_port = self._writer.get_extra_info("peername")[1]
                self._writer.write_eof()
                print(client_port, hashlib.sha256(await self._reader.read()).hexdigest(), flush=True)
            case _:
                pass  # `fin`, or an unknown line: only close
        return False

    async def _request(self, method: str, target: str) -> bool:
        lines: list[str] = []
        while line := (await self._reader.readline()).decode("latin-1").strip():
            lines.append(line)
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if method == "CONNECT" or "upgrade" in fields:
            await self._echo("200 OK" if method == "CONNECT" else "101 Switching Protocols")
            return False
        query = dict(parse_qsl(urlsplit(target).query))
        if fields.get("expect") == "100-continue":
            self._writer.write(CONTINUE)
        digest = await self._digest(fields, float(query.get("pace", 0)))
        await asyncio.sleep(float(query.get("wait", 0)))
        answer = body(int(query.get("seed", 0)), int(query["bytes"])) if "bytes" in query else digest.encode()
        if "pause" in query:
            self._head("200 OK", "Connection: close")
            self._writer.write(answer[: len(answer) // 2])
            await asyncio.sleep(float(query["pause"]))
            self._writer.write(answer[len(answer) // 2 :])
            return False
        self._head("200 OK", f"Content-Length: {len(answer)}", *([f"X-Digest: {digest}"] if digest else []))
        self._writer.write(b"" if method == "HEAD" else answer)
        return fields.get("connection") != "close"

    def _head(self, status: str, *fields: str) -> None:
        # This byte of struct tcp_info contains both window scales; the upper half is the server's own.
        scale = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)[6] >> 4
        own = (f"X-Server: {self._name}", f"X-Scale: {scale}")
        self._writer.write("\r\n".join([f"HTTP/1.1 {status}", *own, *fields, "", ""]).encode())

    async def _digest(self, fields: Mapping[str, str], pace_s: float) -> str:
        """Return the digest of the request's body; empty if the request has no body."""
        digest = hashlib.sha256()
        if fields.get("transfer-encoding") == "chunked":
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                digest.update((await self._reader.readexactly(size + 2))[:-2])
            await self._reader.readuntil(b"\r\n")
        elif remaining := int(fields.get("content-length", 0)):
            while remaining:
                block = await self._reader.readexactly(min(remaining, BLOCK_BYTES))
                digest.update(block)
                remaining -= len(block)
                await asyncio.sleep(pace_s)
        else:
            return ""
        return digest.hexdigest()

    async def _echo(self, status: str) -> None:
        self._head(status, "Connection: upgrade", "Upgrade: echo")
        while block := await self._reader.read(BLOCK_BYTES):
            self._writer.write(block)
            await self._writer.drain()


if __name__ == "__main__":
    main(globals())
