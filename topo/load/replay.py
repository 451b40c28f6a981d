"""Replay a request log from one client host: a connection for every request, as many at once as it takes.

    python -m topo.load.replay LOG --pool 10.101.0.0/16 --server target=10.0.0.100:80 --start EPOCH --output FILE

Every client of the log has an address of its own in the pool, which is routed to this host.  One thread, non-blocking
sockets, epoll: a request costs some 150 us of CPU.
"""

from __future__ import annotations

import argparse
import errno
import heapq
import math
import random
import resource
import select
import socket
import struct
import sys
import time
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path

from topo.plan.outcomes import Ending, Outcome, write_outcomes
from topo.plan.patience import draw_wait
from topo.plan.requests import Request, read_log

IP_BIND_ADDRESS_NO_PORT = 24
"""include/uapi/linux/in.h: choose the port when connecting, so that ports are scarce per destination only."""
TCP_INFO_TOTAL_RETRANS = struct.Struct("<100xI")
"""tcpi_total_retrans in struct tcp_info (include/uapi/linux/tcp.h)."""
SLOW_RECEIVE_BUFFER = 4096
"""Bytes of a slow client's receive buffer: the kernel must not take for it what its link would not."""
SLOW_TICK_S = 0.02
IDLE_S = 0.25
FIRST_READ_BYTES = 512
"""A header comes whole."""
READ_BYTES = 1 << 16


class Exchange:
    """One request on its way."""

    __slots__ = (
        "connect_s",
        "due",
        "first_byte_s",
        "header",
        "late_s",
        "pace",
        "received",
        "request",
        "retries",
        "socket",
    )

    def __init__(self, request: Request, connection: socket.socket, due: float, now: float) -> None:
        self.request = request
        self.socket = connection
        self.due = due
        self.late_s = now - due
        self.pace = request.client_bytes_per_s
        self.connect_s: float | None = None
        self.first_byte_s: float | None = None
        self.received = 0
        """Bytes of header and answer together."""
        self.header = 0
        self.retries = 0


class Replay:
    """All exchanges of one host; times on the monotonic clock."""

    def __init__(
        self,
        pool: IPv4Network,
        servers: Mapping[str, tuple[str, int]],
        *,
        start: float,
        end_s: float,
        patience_s: float,
        seed: int,
    ) -> None:
        self._addresses = pool
        self._servers = servers
        self._start = start
        self._end = start + end_s
        self._patience_s = patience_s
        self._source = random.Random(seed)
        self._epoll = select.epoll()
        self._live: dict[int, Exchange] = {}
        self._timers: list[tuple[float, int, Exchange, bool]] = []
        self._timer_number = 0
        self.outcomes: list[Outcome] = []

    def run(self, requests: Sequence[Request]) -> None:
        """Send every request when it is due; return once each has ended, at the latest at the end."""
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

    def _begin(self, request: Request, now: float) -> None:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        connection.setsockopt(socket.SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        if request.client_bytes_per_s:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_RECEIVE_BUFFER)
        # The first and the last 16 addresses of the pool are the host's own.
        place = 16 + request.client % (self._addresses.num_addresses - 32)
        exchange = Exchange(request, connection, self._start + request.time_s, now)
        connection.bind((str(self._addresses[place]), 0))
        code = connection.connect_ex(self._servers[request.server])
        self._live[connection.fileno()] = exchange
        self._epoll.register(connection.fileno(), select.EPOLLOUT)
        if code not in (0, errno.EINPROGRESS):
            self._finish(exchange, Ending.BROKEN)
            return
        wait = draw_wait(self._patience_s, self._source)
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
        self.outcomes.append(
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
    """Return how many segments the kernel has sent again on a connection."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_TOTAL_RETRANS.size)
    (count,) = TCP_INFO_TOTAL_RETRANS.unpack(info)
    return count


def parse_server(text: str) -> tuple[str, tuple[str, int]]:
    """Read NAME=ADDRESS:PORT."""
    name, _, place = text.partition("=")
    address, _, port = place.rpartition(":")
    if not name or not address or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=ADDRESS:PORT")
    return name, (address, int(port))


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay from the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.replay", description="Replay a request log.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--pool", type=IPv4Network, required=True, help="addresses of the clients, routed to this host")
    parser.add_argument("--server", type=parse_server, action="append", required=True, metavar="NAME=ADDRESS:PORT")
    parser.add_argument("--start", type=float, required=True, help="the log's zero, on the clock of time.time()")
    parser.add_argument("--seconds", type=float, required=True, help="length of the run")
    parser.add_argument("--patience", type=float, default=0.0, help="mean wait before giving up, s; 0 is endless")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    replay = Replay(
        options.pool,
        dict(options.server),
        start=time.monotonic() + options.start - time.time(),
        end_s=options.seconds,
        patience_s=options.patience,
        seed=options.seed,
    )
    replay.run(list(read_log(options.log)))
    write_outcomes(options.output, replay.outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
