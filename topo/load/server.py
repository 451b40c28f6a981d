"""The servers of a load: `SizedServer` answers `GET /N` with N bytes, `BulkServer` sends a bulk transfer, `Sender`
measures its connections.

Without a cost `SizedServer` sends an answer at once, like the in-kernel server of Chen & Heidemann. With a worker limit
and a cost it imitates their slow target. Workers run in turn, each turn sends one block of an answer, and every turn
costs CPU time. Many simultaneous requests then slow all answers, as on a server that swaps. An answer also occupies
memory from its beginning to its end. A cgroup limits CPU and memory. The server uses less than its memory limit,
because the kernel would kill it at the limit. A request that finds no free worker, or no memory, waits in the kernel's
accept queue.
"""

from __future__ import annotations

import json
import mmap
import os
import select
import selectors
import signal
import socket
import struct
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from topo.load.program import main

HEADER = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n"
BAD_REQUEST = b"HTTP/1.0 400 Bad Request\r\n\r\n"
BLOCK_BYTES = 2048
"""Size in bytes of a block of an answer, which a worker sends in one turn."""
SIZE_MAX = 1 << 24
ACCEPTS_AT_ONCE = 64
REQUEST_BYTES = 4096
PATTERN = memoryview(bytes(range(256)) * ((SIZE_MAX >> 8) + 1))
POLLS_EVERY_TURNS = 8
HELD = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
STATM_BYTES = 128
SPARE_BYTES = 2 << 20
"""Bytes of the memory limit that are reserved for the kernel's buffers, because the cgroup's limit includes them."""
PIECE = bytes(8192)
"""A piece of a bulk transfer (Chen & Heidemann, section 8.6)."""
LATE_S = 1.0


@dataclass
class SizedServer:
    """The program that answers each request with the requested number of bytes."""

    address: str
    port: int
    backlog: int = 4096
    workers: int = 100_000
    """Largest number of requests that are answered at the same time."""
    cost_us: float = 0.0
    """CPU time of a turn (the sending of one block), in us. If this time and ``turn_us`` are 0, there are no turns, and
    an answer is sent at once."""
    turn_us: float = 0.0
    """Time that a turn sleeps, in us, before it uses the CPU time ``cost_us``; 0: a turn does not sleep."""
    slow_us: float = 0.0
    """Time that each turn sleeps, in us, once the process has received the signal SIGUSR1."""
    memory_mb: float = 0.0
    """Limit of the process's memory, in MiB; 0: no limit."""
    answer_kb: float = 0.0
    """Memory that an answer occupies until its end, in KiB; 0: none."""

    def run(self) -> None:
        """Serve until the process ends."""
        server = Server(self)

        def slow_down(*_: object) -> None:
            server.turn_s = self.slow_us / 1e6

        if self.slow_us:
            signal.signal(signal.SIGUSR1, slow_down)
        while True:
            server.step()


@dataclass(slots=True)
class Answer:
    """A connection, and the part of its answer that remains to be sent."""

    connection: socket.socket
    memory: mmap.mmap | None
    header: bytes = b""
    left: int = -1
    """Remaining bytes of the body; negative before the request has arrived."""


class Server:
    """The server of one listening socket, in one thread."""

    def __init__(self, options: SizedServer) -> None:
        """Open the listening socket."""
        self.turn_s = options.turn_us / 1e6
        self._workers = options.workers
        self._cost_s = options.cost_us / 1e6
        self._memory_bytes = round(options.memory_mb * 2**20)
        self._answer_bytes = round(options.answer_kb * 2**10)
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((options.address, options.port))
        self._listener.listen(options.backlog)
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._accepting = True
        self._answers: dict[int, Answer] = {}
        self._turns: deque[Answer] = deque()

    @property
    def address(self) -> tuple[str, int]:
        """The address and port of the listening socket."""
        return self._listener.getsockname()

    @property
    def waiting(self) -> int:
        """The number of answers that wait for a turn to send their next block."""
        return len(self._turns)

    def own_bytes(self) -> int:
        """Return the resident memory of this process in bytes, without memory shared with other processes (proc(5),
        statm)."""
        _, resident, shared, *_ = os.pread(self._statm, STATM_BYTES, 0).split()
        return (int(resident) - int(shared)) * mmap.PAGESIZE

    def step(self) -> None:
        """Handle the events of sockets, and the next turns; if no answer waits for a turn, wait for an event."""
        for descriptor, events in self._epoll.poll(0 if self._turns else None):
            if descriptor == self._listener.fileno():
                self._accept()
            elif (answer := self._answers.get(descriptor)) is not None:
                if events & (select.EPOLLHUP | select.EPOLLERR):
                    self._close(answer)
                else:
                    self._ready(answer)
        for _ in range(min(len(self._turns), 1 if self.turn_s else POLLS_EVERY_TURNS)):
            self._turn(self._turns.popleft())

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            if self._is_full():
                self._epoll.modify(self._listener.fileno(), 0)
                self._accepting = False
                return
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:
                continue  # the client has already closed the connection
            connection.setblocking(False)
            memory = mmap.mmap(-1, self._answer_bytes, flags=HELD) if self._answer_bytes else None
            self._answers[connection.fileno()] = answer = Answer(connection, memory)
            self._epoll.register(connection.fileno(), select.EPOLLIN)
            self._ready(answer)

    def _is_full(self) -> bool:
        """Return whether a further answer would exceed the limit of workers or memory. A single answer is always
        permitted."""
        if len(self._answers) >= self._workers:
            return True
        if not self._memory_bytes or not self._answers:
            return False
        return self.own_bytes() + self._answer_bytes + SPARE_BYTES > self._memory_bytes

    def _ready(self, answer: Answer) -> None:
        try:
            if answer.left < 0:
                answer.header, answer.left = answer_to(answer.connection.recv(REQUEST_BYTES))
            if self._cost_s or self.turn_s:
                self._epoll.modify(answer.connection.fileno(), 0)
                self._turns.append(answer)
            elif self._send(answer, SIZE_MAX):
                self._close(answer)
            else:
                self._epoll.modify(answer.connection.fileno(), select.EPOLLOUT)
        except BlockingIOError:
            return
        except OSError:
            self._close(answer)

    def _turn(self, answer: Answer) -> None:
        """Spend the cost of a turn, then send a block of the answer; do nothing if the client has closed the
        connection."""
        if answer.connection.fileno() < 0:
            return
        if self.turn_s:
            time.sleep(self.turn_s)
        until = time.thread_time() + self._cost_s
        while time.thread_time() < until:
            pass
        try:
            if self._send(answer, BLOCK_BYTES):
                self._close(answer)
            else:
                self._turns.append(answer)
        except BlockingIOError:
            self._epoll.modify(answer.connection.fileno(), select.EPOLLOUT)
        except OSError:
            self._close(answer)

    def _send(self, answer: Answer, at_most: int) -> bool:
        """Send at most ``at_most`` bytes of an answer; return whether the answer is complete."""
        flags = 0
        if answer.header:
            flags = socket.MSG_MORE if answer.left else 0
            answer.connection.send(answer.header, flags)
            answer.header = b""
        while answer.left and at_most:
            sent = answer.connection.send(PATTERN[: min(answer.left, at_most)])
            answer.left -= sent
            at_most -= min(sent, at_most)
            if answer.left and at_most:
                return False  # the send buffer is full
        return not answer.left

    def _close(self, answer: Answer) -> None:
        self._answers.pop(answer.connection.fileno(), None)
        answer.connection.close()
        if answer.memory is not None:
            answer.memory.close()
        if not self._accepting:
            self._accepting = True
            self._epoll.modify(self._listener.fileno(), select.EPOLLIN)


def answer_to(request: bytes) -> tuple[bytes, int]:
    """Return the header of the answer to `GET /N`, and the number of bytes that follow it; for any other request, the
    header of an error, and 0. Raises OSError if the client has closed the connection."""
    if not request:
        raise ConnectionAbortedError("closed before the request")
    words = request.split(maxsplit=2)
    if len(words) < 2 or words[0] != b"GET" or not words[1][1:].isdigit() or (size := int(words[1][1:])) > SIZE_MAX:
        return BAD_REQUEST, 0
    return HEADER % size, size


@dataclass(frozen=True)
class BulkServer:
    """The program that sends an application-limited bulk transfer: pieces of 8 KiB at a steady rate."""

    address: str
    port: int
    bytes_per_s: float

    def run(self) -> None:
        """Serve receivers, one after another, until the process ends.

        A piece that the link delays is sent late; pieces that would be more than LATE_S late are skipped.
        """
        with socket.create_server((self.address, self.port)) as listener:
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    due = time.monotonic()
                    while True:
                        time.sleep(max(0.0, due - time.monotonic()))
                        connection.sendall(PIECE)
                        due = max(due + len(PIECE) / self.bytes_per_s, time.monotonic() - LATE_S)


# -- transfers whose round trips are measured

SO_MAX_PACING_RATE = 47
"""Socket option of include/uapi/asm-generic/socket.h: the connection's highest rate in bytes per second."""
INFO_BYTES = 160
_RTT, _TOTAL_RETRANS, _MIN_RTT, _DATA_SEGS_OUT = 68, 100, 148, 156
"""Offsets of fields with 32 bits in struct tcp_info (include/uapi/linux/tcp.h); times are in microseconds."""
_BYTES_ACKED = 120
"""Offset of a field with 64 bits in struct tcp_info."""
SAMPLE_S = 0.05
PATIENCE_S = 30.0
CHUNK = bytes(65_536)


@dataclass(frozen=True)
class Sender:
    """The program that sends to clients as fast as TCP and `rate` permit, and prints the kernel's statistics of each
    connection.

    It prints `listening` once it accepts connections, and a line of JSON at the end.
    """

    port: int
    connections: int
    congestion: str
    rate: int
    """Highest rate of a connection, in bytes per second."""
    seconds: float
    settle: float = 0.0
    """Seconds at the beginning whose bytes do not count in the results."""

    def run(self) -> None:
        """Wait for all connections, send on all of them, and print the results."""
        connections = accept(self.port, self.connections, self.congestion, self.rate)
        send(connections, self.seconds, self.settle)
        print(json.dumps([followed.report() for followed in connections]), flush=True)
        for (
            connection
        ) in connections:  # a reset discards unsent data, so that the switch and the kernel count the same segments
            connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.socket.close()


@dataclass
class Followed:
    """A connection with samples of the kernel's smoothed round trip time."""

    socket: socket.socket
    address: str
    port: int
    total_us: int = 0
    samples: int = 0
    acked_before: int = 0
    """Bytes acknowledged at the end of the settling time."""

    def info(self) -> tuple[int, int, int, int]:
        """Return the kernel's smoothed round trip time and number of retransmissions, then its least round trip time
        and number of segments with data; times in microseconds."""
        raw = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        rtt, again, least, segments = (
            struct.unpack_from("=I", raw, place)[0] for place in (_RTT, _TOTAL_RETRANS, _MIN_RTT, _DATA_SEGS_OUT)
        )
        return rtt, again, least, segments

    def sample(self) -> None:
        """Add a sample of the smoothed round trip time."""
        self.total_us += self.info()[0]
        self.samples += 1

    def acked(self) -> int:
        """Return the number of bytes that the client has acknowledged."""
        raw = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
        return struct.unpack_from("=Q", raw, _BYTES_ACKED)[0]

    def report(self) -> dict[str, Any]:
        """Return the figures that the program prints."""
        _, again, least, segments = self.info()
        mean_us = self.total_us / self.samples
        return {
            "client": self.address,
            "port": self.port,
            "rtt_s": mean_us / 1e6,
            "least_rtt_s": least / 1e6,
            "again": again,
            "segments": segments,
            "acked": self.acked() - self.acked_before,
        }


def accept(port: int, number: int, congestion: str, rate: int) -> list[Followed]:
    """Accept ``number`` connections, and set their congestion control and highest rate."""
    followed: list[Followed] = []
    with socket.create_server(("", port), backlog=number) as listening:
        listening.settimeout(PATIENCE_S)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        listening.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
        print("listening", flush=True)
        for _ in range(number):
            connection, (address, client_port) = listening.accept()
            connection.setblocking(False)
            followed.append(Followed(connection, address, client_port))
    return followed


def send(connections: Sequence[Followed], seconds: float, settle_s: float = 0.0) -> None:
    """Keep every connection's send buffer full for ``seconds``, and sample the round trip times. Only bytes
    acknowledged after ``settle_s`` count."""
    now = time.monotonic()
    end, due, settled = now + seconds, now + SAMPLE_S, now + settle_s
    with selectors.DefaultSelector() as ready:
        for connection in connections:
            ready.register(connection.socket, selectors.EVENT_WRITE)
        while (now := time.monotonic()) < end:
            for key, _ in ready.select(max(0.0, due - now)):
                try:
                    key.fileobj.send(CHUNK)  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
            if time.monotonic() >= due:
                due += SAMPLE_S
                for followed in connections:
                    followed.sample()
                    if now < settled:
                        followed.acked_before = followed.acked()


if __name__ == "__main__":
    main(globals())
