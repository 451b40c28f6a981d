"""Servers for the flash crowds of paper 003: one that answers at once, one that is short of CPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from .clock import Clock

BLOCK_BYTES = 2048
"""What a worker sends in one turn."""


class AnswerServer(Protocol):
    """What a request meets behind the switch."""

    def syn(self) -> bool:
        """A SYN arrives; whether it is answered."""
        ...

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """A request of so many bytes: ``offer`` gets them as they are ready, as long as ``wanted`` says yes."""
        ...


class FastServer:
    """Answers at once."""

    def syn(self) -> bool:
        """Always."""
        return True

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """The whole answer at once."""
        offer(size)


class SlowServer:
    """Workers take turns on a CPU, a block of an answer each; who finds none free waits, and SYNs are dropped when
    too many wait (topo/load/server.py, cost and workers as there)."""

    def __init__(self, clock: Clock, *, workers: int, backlog: int, turn_s: float) -> None:
        """``turn_s``: time on the wall for one turn, the CPU limit considered."""
        self._clock, self._workers, self._backlog, self._turn_s = clock, workers, backlog, turn_s
        self._turns: deque[tuple[int, Callable[[int], None], Callable[[], bool]]] = deque()
        self._waiting: deque[tuple[int, Callable[[int], None], Callable[[], bool]]] = deque()
        self._busy = 0
        self._running = False

    def syn(self) -> bool:
        """While the accept queue has room."""
        return len(self._waiting) <= self._backlog

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """To a worker, or into the queue."""
        if self._busy >= self._workers:
            self._waiting.append((size, offer, wanted))
            return
        self._busy += 1
        self._turns.append((size, offer, wanted))
        self._go_on()

    def _go_on(self) -> None:
        if self._turns and not self._running:
            self._running = True
            self._clock.after(self._turn_s, self._turn)

    def _turn(self) -> None:
        self._running = False
        size, offer, wanted = self._turns.popleft()
        left = 0
        if wanted():
            offer(min(size, BLOCK_BYTES))
            left = size - BLOCK_BYTES
        if left > 0:
            self._turns.append((left, offer, wanted))
        elif self._waiting:
            self._turns.append(self._waiting.popleft())
        else:
            self._busy -= 1
        self._go_on()
