"""The clients of a load: clients of a request log, users who think between pages, and receivers of transfers.

`ReplayClients` replays a request log from one host, with a new connection for every request and without a limit on
simultaneous connections. Every client of the log has its own address in the pool, a network that is routed to this
host. The program has one thread with non-blocking sockets and epoll; a request costs some 150 us of CPU.

`ThinkingUsers` fetch a page, think, and fetch the next page on the same connection if it is still open. A page consists
of several objects, fetched one after another. After a number of pages a user closes its connection, and later opens a
new one. Thinking times are exponential, so that a request is equally likely at every moment. If a
connection that has already served a request ends before a byte of the next answer arrives, the user repeats the GET on
a new connection, as RFC 9110, section 9.2.2, permits. Any other failure counts as a lost page.
"""

from __future__ import annotations

import asyncio
import errno
import heapq
import json
import math
import random
import select
import selectors
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from ipaddress import IPv4Network
from itertools import accumulate
from pathlib import Path

from topo.load.program import address_port, main
from topo.plan.outcomes import Ending, Outcome, write_outcomes
from topo.plan.requests import Request, draw_wait, read_log

IP_BIND_ADDRESS_NO_PORT = 24
"""Socket option of Linux (include/uapi/linux/in.h): the kernel selects the port at connect() instead of bind(). The
same port can then be used for several destinations."""
TCP_INFO_TOTAL_RETRANS = struct.Struct("<100xI")
"""The field tcpi_total_retrans in struct tcp_info (include/uapi/linux/tcp.h)."""
SLOW_RECEIVE_BUFFER = 4096
"""Size of a slow client's receive buffer in bytes. It is small, so that the kernel does not accept data faster than the
simulated link of the client."""
SLOW_TICK_S = 0.02
IDLE_S = 0.25
FIRST_READ_BYTES = 512
"""Size of the first read in bytes, which must contain the complete HTTP header."""
READ_BYTES = 1 << 16
BULK_HEADER = "time_s,bytes,connections"
SLOT_S = 0.1
TIMEOUT_S = 1.0


@dataclass(frozen=True)
class ReplayClients:
    """The program that replays a request log. The log begins at the time `start`, in seconds on the clock of
    time.time()."""

    log: str
    pool: str
    """Network of the clients' addresses, which is routed to this host."""
    servers: Mapping[str, str]
    """ADDRESS:PORT of each destination, by the destination's name in the log."""
    start: float
    seconds: float
    output: str
    """Path of the file to which the outcomes are written."""
    patience_s: float = 0.0
    """Mean seconds after which a client considers abandoning a request (`draw_wait`); 0: clients never do."""
    seed: int = 1

    def run(self) -> None:
        """Send every request when it is due, and write the outcomes."""
        write_outcomes(Path(self.output), Replay(self).run(list(read_log(Path(self.log)))))


@dataclass(slots=True)
class Exchange:
    """A request in progress."""

    request: Request
    socket: socket.socket
    due: float
    late_s: float
    connect_s: float | None = None
    first_byte_s: float | None = None
    received: int = 0
    """Received bytes of the HTTP header and the body together."""
    header: int = 0
    retries: int = 0

    @property
    def pace(self) -> int:
        """Rate of the client's simulated link in bytes per second; 0: no limit."""
        return self.request.client_bytes_per_s


class Replay:
    """The replay of a log at one client host, with all its exchanges. Times are in seconds, on the clock of
    time.monotonic()."""

    def __init__(self, plan: ReplayClients) -> None:
        self._plan = plan
        self._addresses = IPv4Network(plan.pool)
        self._servers = {name: address_port(place) for name, place in plan.servers.items()}
        self._start = time.monotonic() + plan.start - time.time()
        self._end = self._start + plan.seconds
        self._source = random.Random(plan.seed)
        self._epoll = select.epoll()
        self._live: dict[int, Exchange] = {}
        self._timers: list[tuple[float, int, Exchange, bool]] = []
        self._timer_number = 0
        self._outcomes: list[Outcome] = []

    def run(self, requests: Sequence[Request]) -> list[Outcome]:
        """Send every request when it is due; return the outcomes once all requests have ended or the plan's time is
        over."""
        number = 0
        while (number < len(requests) or self._live) and (now := time.monotonic()) < self._end:
            while number < len(requests) and self._start + requests[number].time_s <= now:
                self._begin(requests[number], now)
                number += 1
            self._expire(now)
            wake = self._start + requests[number].time_s if number < len(requests) else self._end
            if self._timers:
                wake = min(wake, self._timers[0][0])
            for descriptor, _ in self._epoll.poll(min(IDLE_S, max(0.0, wake - time.monotonic()))):
                exchange = self._live.get(descriptor)
                if exchange is not None:
                    self._advance(exchange)
        for exchange in list(self._live.values()):
            self._finish(exchange, Ending.PENDING)
        return self._outcomes

    def _begin(self, request: Request, now: float) -> None:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection.setsockopt(socket.SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        if request.client_bytes_per_s:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_RECEIVE_BUFFER)
        # The first and the last 16 addresses of the pool are reserved for the host.
        place = 16 + request.client % (self._addresses.num_addresses - 32)
        exchange = Exchange(request, connection, due := self._start + request.time_s, now - due)
        connection.bind((str(self._addresses[place]), 0))
        code = connection.connect_ex(self._servers[request.server])
        self._live[connection.fileno()] = exchange
        self._epoll.register(connection.fileno(), select.EPOLLOUT)
        if code not in (0, errno.EINPROGRESS):
            self._finish(exchange, Ending.BROKEN)
            return
        wait = draw_wait(self._plan.patience_s, self._source)
        if math.isfinite(wait):
            self._at(exchange.due + wait, exchange, ends=True)

    def _at(self, moment: float, exchange: Exchange, *, ends: bool) -> None:
        self._timer_number += 1
        heapq.heappush(self._timers, (moment, self._timer_number, exchange, ends))

    def _expire(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            _, _, exchange, ends = heapq.heappop(self._timers)
            if exchange.socket.fileno() < 0:
                continue
            if ends:
                self._finish(exchange, Ending.GAVE_UP)
            else:
                self._epoll.modify(exchange.socket.fileno(), select.EPOLLIN)

    def _advance(self, exchange: Exchange) -> None:
        try:
            if exchange.connect_s is None:
                self._connected(exchange)
            else:
                self._read(exchange)
        except ConnectionRefusedError:
            self._finish(exchange, Ending.REFUSED)
        except BlockingIOError:
            return
        except OSError:
            self._finish(exchange, Ending.BROKEN)

    def _connected(self, exchange: Exchange) -> None:
        connection = exchange.socket
        code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, "connect")
        exchange.connect_s = time.monotonic() - exchange.due
        exchange.retries = repeated(connection)
        connection.send(b"GET /%d HTTP/1.0\r\n\r\n" % exchange.request.size)
        self._epoll.modify(connection.fileno(), select.EPOLLIN)

    def _read(self, exchange: Exchange) -> None:
        at_once = max(FIRST_READ_BYTES, int(exchange.pace * SLOW_TICK_S)) if exchange.pace else READ_BYTES
        data = exchange.socket.recv(at_once)
        if not data:
            self._finish(exchange, Ending.BROKEN)
            return
        now = time.monotonic()
        if exchange.first_byte_s is None:
            exchange.first_byte_s = now - exchange.due
            exchange.header = data.find(b"\r\n\r\n") + 4
        exchange.received += len(data)
        if exchange.received >= exchange.header + exchange.request.size:
            self._finish(exchange, Ending.FINISHED)
        elif exchange.pace:
            self._epoll.modify(exchange.socket.fileno(), 0)
            self._at(now + len(data) / exchange.pace, exchange, ends=False)

    def _finish(self, exchange: Exchange, ending: Ending) -> None:
        request = exchange.request
        if exchange.connect_s is None:
            exchange.retries = repeated(exchange.socket)
        self._live.pop(exchange.socket.fileno(), None)
        exchange.socket.close()
        self._outcomes.append(
            Outcome(
                due_s=request.time_s,
                client=request.client,
                server=request.server,
                size=request.size,
                connect_s=exchange.connect_s,
                first_byte_s=exchange.first_byte_s,
                done_s=time.monotonic() - exchange.due,
                bytes=max(0, exchange.received - exchange.header),
                ending=ending,
                retries=exchange.retries,
                late_s=exchange.late_s,
            )
        )


def repeated(connection: socket.socket) -> int:
    """Return the number of segments that the kernel has retransmitted on a connection."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_TOTAL_RETRANS.size)
    (count,) = TCP_INFO_TOTAL_RETRANS.unpack(info)
    return count


# -- users who think

PATH = "/page"


@dataclass(frozen=True)
class ThinkingUsers:
    """The program that simulates users who think between pages; it prints `Pages` as JSON."""

    to: str
    """ADDRESS:PORT of the service."""
    sources: Sequence[str]
    """IP addresses that are assigned to the users in turn."""
    users: int = 20
    objects: int = 4
    """Number of requests per page, sent one after another."""
    think: float = 3.0
    """Mean time between pages, in seconds."""
    session: float = 8.0
    """Mean number of pages before a user closes its connection."""
    settle: float = 0.0
    """Time before the measurement, in seconds."""
    seconds: float = 30.0
    """Duration of the measurement, in seconds."""
    body: str = "a page\n" * 1000
    """Expected content of each object of a page."""
    seed: int = 1

    def run(self) -> None:
        """Fetch pages during settling time and measurement, and print the counts."""
        print(json.dumps(asdict(asyncio.run(fetch_pages(self)))))


class Lost(Exception):
    """The answer is wrong, or it is missing and the client may not repeat the request."""


class Ended(Exception):
    """The connection ended before a byte of the answer arrived."""


@dataclass(slots=True)
class Pages:
    """Counts of all users' pages and connections."""

    pages: int = 0
    """Number of pages that ended since the measurement began, including pages with lost objects."""
    page_s: list[float] = field(default_factory=list[float])
    """Seconds of the measurement that each page took; for unfinished pages, seconds until the measurement's end."""
    unfinished: int = 0
    lost: list[str] = field(default_factory=list[str])
    connections: int = 0
    found_closed: dict[str, int] = field(default_factory=dict[str, int])
    """Number of connections that a user found closed before its next request, by the user's address."""
    raced: dict[str, int] = field(default_factory=dict[str, int])
    """Number of connections that ended between a request and its answer, by the user's address."""
    connect_s: dict[str, float] = field(default_factory=dict[str, float])
    """Sum of the connect times in seconds, by the user's address."""
    connected: dict[str, int] = field(default_factory=dict[str, int])


class Prompt(asyncio.StreamReaderProtocol):
    """A protocol that closes a connection as soon as the server closes it, as browsers do. The server then does not
    wait for the client's close."""

    def eof_received(self) -> bool:
        """Return False, so that the transport closes the connection."""
        super().eof_received()
        return False


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connected(host: str, port: int, source: str) -> Streams:
    """Open a connection from the address `source`. Raises OSError if the connection fails."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    transport, protocol = await loop.create_connection(
        lambda: Prompt(reader, loop=loop), host, port, local_addr=(source, 0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class User:
    """A user with at most one connection."""

    def __init__(self, options: ThinkingUsers, source: str, outcome: Pages, number: int) -> None:
        self._options = options
        self._source = source
        self._outcome = outcome
        self._random = random.Random(options.seed * 100_003 + number)
        self._streams: Streams | None = None
        self._began: float | None = None

    async def run(self, measured: float, end: float) -> None:
        """Fetch pages until `end`; pages that are complete before `measured` are not counted."""
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
        host, port = address_port(self._options.to)
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
            writer.write(f"GET {PATH} HTTP/1.1\r\nHost: {self._options.to}\r\n\r\n".encode())
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
        if body != self._options.body.encode():
            raise Lost("another page")
        if fields.get("connection", "").lower() == "close":
            self._close()

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def fetch_pages(options: ThinkingUsers) -> Pages:
    """Run all users during settling time and measurement, and return their counts."""
    outcome = Pages()
    began = time.monotonic()
    measured = began + options.settle
    end = measured + options.seconds
    users = [
        asyncio.create_task(
            User(options, options.sources[number % len(options.sources)], outcome, number).run(measured, end)
        )
        for number in range(options.users)
    ]
    await asyncio.sleep(end - time.monotonic())
    for user in users:
        user.cancel()
    for ended in await asyncio.gather(*users, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended
    return outcome


# -- the bulk transfer's receiver


@dataclass(frozen=True)
class BulkReceiver:
    """The program that receives a bulk transfer and connects again whenever the connection ends.

    It writes `time_s,bytes,connections` for every tenth of a second: its beginning in seconds since `start`, the bytes
    received in it, and the connections opened until its end.
    """

    address: str
    port: int
    source: str
    start: float
    """Beginning of the run in seconds, on the clock of time.time()."""
    seconds: float
    delay_s: float
    """Seconds from the beginning to the first connection."""
    output: str

    def run(self) -> None:
        """Receive until the run ends, and write the file."""
        slots = round(self.seconds / SLOT_S)
        received, connections = [0] * slots, [0] * slots

        def count(column: list[int], number: int) -> None:
            slot = max(0, int((time.time() - self.start) / SLOT_S))
            if slot < slots:
                column[slot] += number

        def receive(connection: socket.socket) -> None:
            connection.settimeout(SLOT_S)
            while time.time() < end:
                with suppress(TimeoutError):
                    data = connection.recv(1 << 16)
                    if not data:
                        return
                    count(received, len(data))

        end = self.start + slots * SLOT_S
        time.sleep(max(0.0, self.start + self.delay_s - time.time()))
        place, own = (self.address, self.port), (self.source, 0)
        while time.time() < end:
            try:
                with socket.create_connection(place, TIMEOUT_S, source_address=own) as connection:
                    count(connections, 1)
                    receive(connection)
            except OSError:
                time.sleep(SLOT_S)
        columns = enumerate(zip(received, accumulate(connections), strict=True))
        lines = [BULK_HEADER, *(f"{slot * SLOT_S:.1f},{size},{number}" for slot, (size, number) in columns)]
        partial = Path(self.output).with_suffix(".partial")
        partial.write_text("\n".join(lines) + "\n")
        partial.rename(self.output)


# -- transfers whose round trips are measured

CONNECT_S = 30.0
READ_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Receiver:
    """The program that opens a number of connections from each address, and reads all connections until they end."""

    to: str
    connections: Mapping[str, int]

    def run(self) -> None:
        """Open the connections, and read and discard their data until all have ended."""
        with selectors.DefaultSelector() as ready:
            for address, number in self.connections.items():
                for _ in range(number):
                    made = socket.create_connection(address_port(self.to), CONNECT_S, source_address=(address, 0))
                    ready.register(made, selectors.EVENT_READ)
            while ready.get_map():
                for key, _ in ready.select(CONNECT_S):
                    made = key.fileobj
                    assert isinstance(made, socket.socket)
                    try:
                        is_over = not made.recv(READ_AT_ONCE)
                    except ConnectionResetError:
                        is_over = True
                    if is_over:
                        ready.unregister(made)
                        made.close()


if __name__ == "__main__":
    main(globals())
