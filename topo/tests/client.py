"""The client programs of the lab's tests, for the servers of `topo.tests.server`; each program prints the outcome of
its connections.

`Requests` makes many connections and compares every byte of every answer. `Transfers` makes uploads and downloads of
known bytes, each at the same time as an equal transfer (twin) to another address. `PortReuse` makes connection after
connection on the same ports, and ends them in different ways.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import itertools
import json
import random
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from topo.load.program import address_port, main
from topo.tests.server import LINGER_0, body

PATIENCE_S = 60.0
"""Seconds within which a connection must be established, and within which each answer must arrive. The value is large
because a server may be silent for seconds."""
REPORT_S = 0.1


# -- requests whose answers are compared


@dataclass
class Outcome:
    """The outcome of the requests of all connections."""

    answered: int = 0
    """Number of requests with the correct answer."""
    wrong: list[str] = field(default_factory=list[str])
    """Descriptions of answers with a wrong status or body."""
    broken: dict[str, int] = field(default_factory=dict[str, int])
    """Numbers of connections that an error ended, by the error's name."""
    servers: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Numbers of answers by path and server."""
    mixed: int = 0
    """Connections whose requests for one path were answered by more than one server."""


@dataclass(frozen=True)
class Requests:
    """The program whose workers each make one connection after another. A request is for a random one of `paths`, and
    demands an answer of random size.

    The program prints an `Outcome` as JSON every REPORT_S seconds and at the end. SIGTERM ends it.
    """

    to: str
    """ADDRESS:PORT of the service."""
    paths: Sequence[str] = ("/",)
    connections: int = sys.maxsize
    at_once: int = 20
    """Number of workers."""
    requests: int = 1
    """Requests of each connection."""
    pipelined: int = 1
    """Number of requests that a client sends before it awaits their answers."""
    most_bytes: int = 10_000
    pause_s: float = 0.0
    """Mean pause, in seconds, after the answers to each batch of `pipelined` requests. The pause is uniform between 0
    and twice the mean if `draws`, else constant."""
    draws: bool = False
    apart_s: float = 0.0
    """Seconds between a worker's connections."""
    ends: Sequence[str] = ("fin",)
    """How successive connections end, in rotation: by the client's FIN (`fin`), by the server's FIN (`server`), or by
    the client's RST (`reset`)."""
    seconds: float = 3600.0
    seed: int = 1

    def run(self) -> None:
        """Make all connections, or as many as the time permits."""
        asyncio.run(self.ask())

    async def ask(self) -> None:
        """Start the workers, and print the outcome repeatedly."""
        asker, numbers, end = _Asker(self), iter(range(self.connections)), time.monotonic() + self.seconds
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asker.end)

        async def work() -> None:
            for number in numbers:
                if asker.is_ending or time.monotonic() >= end:
                    return
                await asker.connection(self.ends[number % len(self.ends)])
                await asyncio.sleep(self.apart_s)

        working = asyncio.gather(*(work() for _ in range(min(self.at_once, self.connections))))
        while not working.done():
            await asyncio.wait([working], timeout=REPORT_S)
            print(json.dumps(asdict(asker.outcome)), flush=True)
        await working


class _Asker:
    """Makes the program's connections, and counts their outcome."""

    def __init__(self, plan: Requests) -> None:
        self._plan, self._random = plan, random.Random(plan.seed)
        self.outcome = Outcome()
        self.is_ending = False

    def end(self) -> None:
        """Make the workers end without further requests."""
        self.is_ending = True

    async def connection(self, ends: str) -> None:
        """Make a connection, send its requests and close it."""
        servers: dict[str, set[str]] = {}
        try:
            async with asyncio.timeout(PATIENCE_S):
                reader, writer = await asyncio.open_connection(*address_port(self._plan.to))
            remaining = self._plan.requests
            while remaining and not self.is_ending:
                batch = min(remaining, self._plan.pipelined)
                remaining -= batch
                await self._ask(reader, writer, batch, servers, is_last=not remaining and ends == "server")
                pause_s = self._plan.pause_s
                await asyncio.sleep(self._random.uniform(0, 2 * pause_s) if self._plan.draws else pause_s)
            if ends == "server" and not remaining:
                await reader.read()
            elif ends == "reset":
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError) as error:
            why = type(error).__name__
            self.outcome.broken[why] = self.outcome.broken.get(why, 0) + 1
        self.outcome.mixed += any(len(names) > 1 for names in servers.values())

    async def _ask(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        times: int,
        servers: dict[str, set[str]],
        *,
        is_last: bool,
    ) -> None:
        asked: list[tuple[str, bytes]] = []
        for number in range(1, times + 1):
            path, seed = self._random.choice(self._plan.paths), self._random.getrandbits(32)
            size = int(self._plan.most_bytes ** self._random.random())
            closes = "Connection: close\r\n" if is_last and number == times else ""
            writer.write(f"GET {path}?seed={seed}&bytes={size} HTTP/1.1\r\nHost: shop\r\n{closes}\r\n".encode())
            asked.append((path, body(seed, size)))
        for path, expected in asked:
            async with asyncio.timeout(PATIENCE_S):
                head, fields = await _read_head(reader)
                content = await reader.readexactly(int(fields.get("Content-Length", 0)))
            server = fields.get("X-Server", "unknown")
            counts = self.outcome.servers.setdefault(path, {})
            counts[server] = counts.get(server, 0) + 1
            servers.setdefault(path, set()).add(server)
            if head.startswith("HTTP/1.1 200 ") and content == expected:
                self.outcome.answered += 1
            else:
                self.outcome.wrong.append(f"{path} of {server}: {head}, {len(content)} of {len(expected)} bytes")


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]]:
    """Return the status line and the header fields of an answer."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    return first, dict(line.split(": ", 1) for line in lines if line)


# -- transfers, each together with a twin

PIECE = 1 << 14
LEAST, MOST = 20_000, 200_000
"""Smallest and largest number of bytes per direction of a transfer."""
TRANSFER_S = 120.0


@dataclass(slots=True)
class Transfer:
    """The outcome of a transfer."""

    is_right: bool = False
    stalled_s: float = 0.0
    """The longest time without progress, in seconds."""
    error: str = ""
    at: float = 0.0

    def goes_on(self) -> None:
        """Record progress."""
        now = time.monotonic()
        self.stalled_s, self.at = max(self.stalled_s, now - self.at), now


async def transfer(to: str, seed: int, up: int, down: int) -> Transfer:
    """Upload `up` bytes and download `down` bytes, whose content follows from `seed`; return the outcome."""
    outcome, writer = Transfer(), None
    try:
        async with asyncio.timeout(TRANSFER_S):
            reader, writer = await asyncio.open_connection(*address_port(to))
            writer.transport.set_write_buffer_limits(PIECE)
            outcome.at = time.monotonic()
            upload = body(seed, up)
            head = f"PUT /?seed={seed + 1}&bytes={down} HTTP/1.1\r\nContent-Length: {up}\r\nConnection: close\r\n\r\n"
            content = head.encode() + upload
            for start in range(0, len(content), PIECE):
                writer.write(content[start : start + PIECE])
                await writer.drain()
                outcome.goes_on()
            received = bytearray()
            while more := await reader.read(PIECE):
                received += more
                outcome.goes_on()
        fields, _, download = bytes(received).partition(b"\r\n\r\n")
        digest = hashlib.sha256(upload).hexdigest()
        outcome.is_right = f"X-Digest: {digest}".encode() in fields and download == body(seed + 1, down)
    except (OSError, TimeoutError) as error:
        outcome.error = repr(error)
    finally:
        if writer is not None:
            writer.close()
    return outcome


@dataclass(frozen=True)
class Transfers:
    """The program that makes transfers, each together with a twin (an equal transfer to the address `twin`). It prints
    the outcome as JSON.

    The outcome includes the longest stall (time without progress) of transfers and of twins. It also includes the
    largest time by which a transfer's stall was longer than its twin's (`longer_s`), or shorter (`shorter_s`). The
    latter shows how much stalls differ by the machine's influence alone.
    """

    to: str
    twin: str
    transfers: int
    at_once: int
    seed: int = 0

    def run(self) -> None:
        """Make all transfers, and print their outcome."""
        pairs = asyncio.run(self.pairs())
        both = [result for pair in pairs for result in pair]
        report = {
            "transfers": len(pairs),
            "wrong": sum(not result.is_right for result in both),
            "errors": sorted({result.error for result in both if result.error}),
            "longest_s": max(result.stalled_s for result, _ in pairs),
            "longest_twin_s": max(twin.stalled_s for _, twin in pairs),
            "longer_s": max(result.stalled_s - twin.stalled_s for result, twin in pairs),
            "shorter_s": max(twin.stalled_s - result.stalled_s for result, twin in pairs),
        }
        print(json.dumps(report), flush=True)

    async def pairs(self) -> list[tuple[Transfer, Transfer]]:
        """Return the outcomes of each transfer and its twin."""
        source, pairs = random.Random(self.seed), list[tuple[Transfer, Transfer]]()
        plans = (
            (source.getrandbits(62), source.randint(LEAST, MOST), source.randint(LEAST, MOST))
            for _ in range(self.transfers)
        )

        async def work(mine: Iterator[tuple[int, int, int]]) -> None:
            for plan in mine:
                pairs.append(await asyncio.gather(transfer(self.to, *plan), transfer(self.twin, *plan)))

        await asyncio.gather(*(work(plans) for _ in range(self.at_once)))
        return pairs


# -- ports that are used again

WAYS = {"client_fin": 1.25, "server_fin": 0.4, "client_reset": 0.4, "server_reset": 0.4, "forgotten": 1.25}
"""Ways in which connections end, with the seconds between two connections of a port.

A forgotten connection ends without a packet, as when the client's machine loses power. A client that closes first
cannot use its port again until a second has passed (tcp_tw_reuse). The same applies after a forgotten connection,
because the server assigns the port's next SYN to the old connection.
"""
FIRST_PORT = 10_000
CONNECTION_S = 45.0
TCP_REPAIR = 19
"""Socket option of include/uapi/linux/tcp.h: closing a socket in repair mode sends no packet."""


@dataclass(frozen=True)
class PortReuse:
    """The program that connects from the same local ports again and again until SIGTERM. For each of WAYS, to end a
    connection, it uses `ports` ports, whose connections begin evenly spread over the way's period.

    It prints a line of JSON for each connection: time of its begin (in seconds, on the clock of time.time()), port,
    way, the server's name, and a description of the fault, if any.
    """

    to: str
    ports: int

    def run(self) -> None:
        """Use all ports until SIGTERM ends the program."""
        asyncio.run(self.use_all())

    async def use_all(self) -> None:
        """Use all ports until SIGTERM ends the program."""
        port, now = itertools.count(FIRST_PORT), time.monotonic()
        async with asyncio.TaskGroup() as group:
            for way, period_s in WAYS.items():
                for place in range(self.ports):
                    group.create_task(self.use(next(port), way, now + period_s * place / self.ports))

    async def use(self, port: int, way: str, first_s: float) -> None:
        """Make one connection after another on a port; `first_s`: begin of the first one, on the clock of
        time.monotonic()."""
        due = first_s
        while True:
            await asyncio.sleep(due - time.monotonic())
            due += WAYS[way]
            began, name, fault = time.time(), "", ""
            try:
                async with asyncio.timeout(CONNECTION_S):
                    name = await connect_once(address_port(self.to), port, way)
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:  # the port is in TIME-WAIT in the client's kernel
                    continue
                fault = repr(error)
            print(json.dumps([began, port, way, name, fault]), flush=True)
            due = max(due, time.monotonic())


async def connect_once(address: tuple[str, int], port: int, way: str) -> str:
    """Make a connection from a local port, end it in the given way, and return the server's name; raise OSError if the
    connection fails."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        connection.setblocking(False)
        connection.bind(("", port))
        await loop.sock_connect(connection, address)
        await loop.sock_sendall(connection, b"name\n")
        name = await loop.sock_recv(connection, 64)
        if not name.endswith(b"\n"):
            raise ConnectionError(f"the server answers {name!r} for its name")
        match way:
            case "client_fin":
                connection.shutdown(socket.SHUT_WR)
                await loop.sock_recv(connection, 1)
            case "server_fin":
                await loop.sock_sendall(connection, b"fin\n")
                await loop.sock_recv(connection, 1)
            case "client_reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_0)
            case "server_reset":
                await loop.sock_sendall(connection, b"reset\n")
                try:
                    await loop.sock_recv(connection, 1)
                except ConnectionResetError:
                    pass
                else:
                    raise ConnectionError("the server has not reset the connection")
            case _:
                # Acknowledge the received data first: otherwise the server would retransmit it, and receive a RST.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    return name.decode().strip()


if __name__ == "__main__":
    main(globals())
