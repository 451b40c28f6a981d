"""A web server that answers `GET /N` with N bytes; with a worker limit and a cost, the slow target of Chen & Heidemann.

    python -m topo.load.server --address 10.0.11.1 --port 80 [--workers N --cost-us U --memory-mb M --answer-kb K]
    python -m topo.load.server --address 10.0.11.1 --port 80 [--workers N --turn-us T --slow-us S]

Without a cost an answer goes out at once, as from the in-kernel server of 2005.  With one, workers take turns, one
block of an answer each, and every turn costs CPU time: many requests at once then make every answer slower, as a
server does that swaps.  An answer also holds memory from its beginning to its end.  CPU and memory are limited from
outside, by a cgroup; the server keeps below its memory limit, since the kernel would end it there.  Whoever finds no
worker free, or no memory, waits in the kernel's accept queue.

With ``--turn-us`` a turn takes that long on the wall and no CPU time; from SIGUSR1 on it takes ``--slow-us``.
"""

from __future__ import annotations

import argparse
import mmap
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Sequence

HEADER = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n"
BAD_REQUEST = b"HTTP/1.0 400 Bad Request\r\n\r\n"
BLOCK_BYTES = 2048
"""What a worker sends in one turn."""
SIZE_MAX = 1 << 24
ACCEPTS_AT_ONCE = 64
REQUEST_BYTES = 4096
PATTERN = memoryview(bytes(range(256)) * ((SIZE_MAX >> 8) + 1))
POLLS_EVERY_TURNS = 8
HELD = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
STATM_BYTES = 128
SPARE_BYTES = 2 << 20
"""Of the memory limit, for what the kernel keeps for connections and is charged to the server, too."""


class Answer:
    """A connection and what is left to send on it."""

    __slots__ = ("connection", "header", "left", "memory")

    def __init__(self, connection: socket.socket, memory: mmap.mmap | None) -> None:
        self.connection = connection
        self.memory = memory
        self.header = b""
        self.left = -1
        """Bytes of the body; negative until the request has come."""


class Server:
    """One listening socket, one thread."""

    def __init__(
        self,
        address: str,
        port: int,
        *,
        backlog: int,
        workers: int,
        cost_us: float,
        memory_bytes: int = 0,
        answer_bytes: int = 0,
        turn_s: float = 0.0,
    ) -> None:
        """Listen.  An answer holds `answer_bytes`, the process at most `memory_bytes` (0: none; no limit)."""
        self.turn_s = turn_s
        """Time on the wall of a turn, in place of a cost; 0: there is none."""
        self._workers = workers
        self._cost_s = cost_us / 1e6
        self._memory_bytes = memory_bytes
        self._answer_bytes = answer_bytes
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((address, port))
        self._listener.listen(backlog)
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._accepting = True
        self._answers: dict[int, Answer] = {}
        self._turns: deque[Answer] = deque()

    def run(self) -> None:
        """Serve for ever."""
        while True:
            self.step()

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self._listener.getsockname()

    @property
    def waiting(self) -> int:
        """How many answers wait for their turn."""
        return len(self._turns)

    def own_bytes(self) -> int:
        """Return how much memory this process has in use, without what it shares with others (proc(5), statm)."""
        _, resident, shared, *_ = os.pread(self._statm, STATM_BYTES, 0).split()
        return (int(resident) - int(shared)) * mmap.PAGESIZE

    def step(self) -> None:
        """Do what there is to do now; wait if there is nothing."""
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
                continue  # the client has gone already
            connection.setblocking(False)
            held = mmap.mmap(-1, self._answer_bytes, flags=HELD) if self._answer_bytes else None
            self._answers[connection.fileno()] = answer = Answer(connection, held)
            self._epoll.register(connection.fileno(), select.EPOLLIN)
            self._ready(answer)

    def _is_full(self) -> bool:
        """Whether another answer would be one too many; the first one never is, so that it always goes on."""
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
        """Work on an answer for a turn, then send a block of it; nothing if the client has left."""
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
        """Send the next part and say whether that was all."""
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
    """Return the header of the answer to `GET /N`, and how many bytes follow it; raise OSError if the client left."""
    if not request:
        raise ConnectionAbortedError("closed before the request")
    words = request.split(maxsplit=2)
    if len(words) < 2 or words[0] != b"GET" or not words[1][1:].isdigit() or (size := int(words[1][1:])) > SIZE_MAX:
        return BAD_REQUEST, 0
    return HEADER % size, size


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve from the command line."""
    parser = argparse.ArgumentParser(prog="python -m topo.load.server", description="Answer GET /N with N bytes.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int, default=4096)
    parser.add_argument("--workers", type=int, default=100_000, help="requests that are answered at the same time")
    parser.add_argument("--cost-us", type=float, default=0.0, help="CPU time of a turn, in us; 0: answer at once")
    parser.add_argument("--turn-us", type=float, default=0.0, help="time on the wall of a turn, in us")
    parser.add_argument("--slow-us", type=float, default=0.0, help="the same from SIGUSR1 on; 0: it stays")
    parser.add_argument("--memory-mb", type=float, default=0.0, help="memory for everything; 0: no limit")
    parser.add_argument("--answer-kb", type=float, default=0.0, help="memory that an answer holds; 0: none")
    options = parser.parse_args(arguments)
    server = Server(
        options.address,
        options.port,
        backlog=options.backlog,
        workers=options.workers,
        cost_us=options.cost_us,
        memory_bytes=round(options.memory_mb * 2**20),
        answer_bytes=round(options.answer_kb * 2**10),
        turn_s=options.turn_us / 1e6,
    )

    def slow_down(*_: object) -> None:
        server.turn_s = options.slow_us / 1e6

    if options.slow_us:
        signal.signal(signal.SIGUSR1, slow_down)
    server.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
