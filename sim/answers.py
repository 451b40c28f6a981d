"""Server models for the flash crowds of Chen & Heidemann: a server that answers at once, and a server that is limited
by its CPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from .clock import Clock

BLOCK_BYTES = 2048
"""Bytes of an answer that a worker sends each time it runs on the CPU."""


class AnswerServer(Protocol):
    """The interface of a simulated server: it receives SYNs and requests."""

    def syn(self) -> bool:
        """Return whether the server answers a SYN that arrives now."""
        ...

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Begin to answer a request with ``size`` bytes.

        The server calls ``offer`` with the number of bytes that have become ready to be sent, and stops once ``wanted``
        returns False.
        """
        ...


class FastServer:
    """A server whose requests cost no time: it answers every request at once."""

    def syn(self) -> bool:
        """Return True: every SYN is answered."""
        return True

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Offer the whole answer at once."""
        offer(size)


@dataclass(slots=True)
class _Answer:
    """An answer that is being produced."""

    left: int
    """Bytes still to be offered."""
    offer: Callable[[int], None]
    wanted: Callable[[], bool]
    begun: bool = False


class SlowServer:
    """A server whose workers take turns on one CPU, each turn producing one block of an answer.

    A request that finds no free worker waits; SYNs are dropped while too many requests wait. The model copies the lab's
    slow server, topo/load/server.py.
    """

    def __init__(self, clock: Clock, *, workers: int, backlog: int, turn_s: float, request_s: float = 0.0) -> None:
        """``workers``: requests that are answered at the same time; ``backlog``: number of waiting requests above which
        SYNs are dropped; ``turn_s``: wall-clock time of one turn under the CPU limit; ``request_s``: additional time of
        a request before its first turn."""
        self._clock, self._workers, self._backlog = clock, workers, backlog
        self._turn_s, self._request_s = turn_s, request_s
        self._turns: deque[_Answer] = deque()
        self._waiting: deque[_Answer] = deque()
        self._busy = 0
        self._running = False
        self.busy_s = 0.0
        """Seconds for which the CPU was busy with the turns that have begun, each counted in full."""

    def syn(self) -> bool:
        """Return whether the accept queue has room."""
        return len(self._waiting) <= self._backlog

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """Assign the request to a free worker; without a free worker the request waits in the queue."""
        answer = _Answer(size, offer, wanted)
        if self._busy >= self._workers:
            self._waiting.append(answer)
            return
        self._busy += 1
        self._turns.append(answer)
        self._go_on()

    def _go_on(self) -> None:
        if self._turns and not self._running:
            self._running = True
            turn_s = self._turn_s if self._turns[0].begun else self._request_s + self._turn_s
            self.busy_s += turn_s
            self._clock.after(turn_s, self._turn)

    def _turn(self) -> None:
        self._running = False
        answer = self._turns.popleft()
        answer.begun = True
        block = min(answer.left, BLOCK_BYTES) if answer.wanted() else 0
        answer.left -= block
        if block:
            answer.offer(block)
        if block and answer.left:
            self._turns.append(answer)
        elif self._waiting:
            self._turns.append(self._waiting.popleft())
        else:
            self._busy -= 1
        self._go_on()
