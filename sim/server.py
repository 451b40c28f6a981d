"""A web server: an accept queue, workers, and a CPU.

A worker that has written a page waits until the client has closed the connection (Apache's lingering close). After the
close the worker needs the CPU again; it then continues with the next connection in the queue, if any.

While the accept queue is full, Linux drops SYNs and ignores the last ACK of a handshake. The server then repeats its
SYN-ACK and the client repeats its request. A repeated request completes the handshake once the queue has room.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from .clock import Clock
from .cpu import PERIOD_S, TICK_S, Cpu, Task

REQUEST_WAITS_S = tuple(accumulate((0.2, 0.4, 0.8, 1.6, 3.2)))
"""Seconds after the first request at which the client's kernel repeats an unacknowledged request (RFC 6298; the timeout
is 200 ms at first, and doubles with each repetition)."""
SYNACK_WAITS_S = (1.0, 3.0, 7.0)
"""Seconds after the first SYN-ACK at which the server's kernel repeats it (the timeouts are 1, 2 and 4 s)."""
CLOSE_S = 2.5e-3
"""Seconds from the last byte of the page until the client closes the connection. Traced in the lab: a median of 2.1 to
2.6 ms with a loaded server, 1.2 ms with other servers."""
CLOSE_WORK_S = 0.03e-3
"""CPU seconds of a connection's end, as traced in the lab."""


@dataclass(slots=True)
class ServerCounts:
    """Cumulative counters of a server."""

    syn: int = 0
    syn_dropped: int = 0
    accepted: int = 0
    served: int = 0


class Handshake:
    """The server's state of a connection whose SYN the server has answered."""

    __slots__ = ("done", "established", "work_s")

    def __init__(self, work_s: float, done: Callable[[], None]) -> None:
        self.work_s, self.done = work_s, done
        self.established = False


class WebServer:
    """A web server with ``workers`` processes and an accept queue of ``backlog`` + 1 connections; requests cost CPU
    time."""

    def __init__(
        self,
        clock: Clock,
        *,
        workers: int,
        backlog: int,
        cpus: float,
        others: int = 0,
        seed: int = 1,
    ) -> None:
        """``others``: number of other tasks that use CPU time (``stress``). ``seed``: determines when the CPU quota is
        granted and when the timer ticks. Servers differ in both times, so that the controller's readings of the switch
        are not in phase with all servers."""
        lots = random.Random(seed)
        self.cpu = Cpu(clock, cpus, others, granted_s=-PERIOD_S * lots.random(), ticked_s=-TICK_S * lots.random())
        self.alive = True
        """Whether the server is alive. A dead server answers no packet, and its connections are lost."""
        self.refuses = False
        """Whether the server's process has ended, so that its host answers each SYN with a RST."""
        self.counts = ServerCounts()
        self._clock, self._backlog = clock, backlog
        self._free = deque(Task() for _ in range(workers))
        """Workers without a connection; the worker that has waited longest receives the next connection."""
        self._wanted = 0
        """Number of workers that `hold` still has to occupy as soon as they are free."""
        self._queue: deque[Handshake] = deque()

    @property
    def waiting(self) -> int:
        """Connections in the accept queue."""
        return len(self._queue)

    @property
    def full(self) -> bool:
        """Whether the accept queue is full (``sk_acceptq_is_full``: it has more connections than the backlog)."""
        return len(self._queue) > self._backlog

    def hold(self, workers: int) -> None:
        """Occupy ``workers`` more workers, as long downloads by slow readers do; a negative number frees workers."""
        self._wanted += workers
        while self._wanted < 0:
            self._wanted += 1
            self._free.append(Task())
        self._serve()

    def syn(self) -> bool:
        """Count a SYN; return whether the server answers it."""
        self.counts.syn += 1
        if not self.alive or self.full:
            self.counts.syn_dropped += 1
            return False
        return True

    def ack(self, handshake: Handshake, synack_again: Callable[[], None], wanted: Callable[[], bool]) -> None:
        """Handle the last ACK of a handshake, and the request that follows it.

        The server calls ``synack_again`` for each repeated SYN-ACK. Client and server repeat no packet once ``wanted``
        returns False.
        """
        if self._establish(handshake):
            return
        for wait, repeated in _attempts():
            self._clock.after(wait, self._again, handshake, synack_again if repeated else None, wanted)

    def _establish(self, handshake: Handshake) -> bool:
        if not self.alive or self.full:
            return False
        handshake.established = True
        self.counts.accepted += 1
        self._queue.append(handshake)
        self._serve()
        return True

    def _again(self, handshake: Handshake, synack_again: Callable[[], None] | None, wanted: Callable[[], bool]) -> None:
        if handshake.established or not wanted():
            return
        if synack_again is not None and self.alive:
            synack_again()
        self._establish(handshake)

    def _serve(self) -> None:
        if not self.alive:
            self._queue.clear()
        while self._wanted > 0 and self._free:
            self._wanted -= 1
            self._free.pop()
        while self._free and self._queue:
            self._work(self._free.popleft())

    def _work(self, worker: Task) -> None:
        handshake = self._queue.popleft()
        self.cpu.add(worker, handshake.work_s, lambda: self._served(worker, handshake))

    def _served(self, worker: Task, handshake: Handshake) -> None:
        if not self.alive:
            self._closed(worker)
            return
        self.counts.served += 1
        handshake.done()
        self._clock.after(CLOSE_S, self.cpu.add, worker, CLOSE_WORK_S, lambda: self._closed(worker))

    def _closed(self, worker: Task) -> None:
        self._free.appendleft(worker)
        self._serve()
        if self._free and self._free[0] is worker:
            self._free.rotate(-1)


def _attempts() -> Iterator[tuple[float, bool]]:
    yield from ((wait, False) for wait in REQUEST_WAITS_S)
    yield from ((wait, True) for wait in SYNACK_WAITS_S)
