"""Servers for the flash crowds of Chen & Heidemann: one that answers at once, one that is short of CPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(slots=True)
class _Answer:
    """What is left of a request."""

    left: int
    """Bytes."""
    offer: Callable[[int], None]
    wanted: Callable[[], bool]
    begun: bool = False


class SlowServer:
    """Workers take turns on a CPU, a block of an answer each; who finds none free waits, and SYNs are dropped when
    too many wait (topo/load/server.py, cost and workers as there)."""

    def __init__(self, clock: Clock, *, workers: int, backlog: int, turn_s: float, request_s: float = 0.0) -> None:
        """``turn_s``: time on the wall for one turn, the CPU limit considered; ``request_s``: for what a request takes
        beside its turns, before the first one."""
        self._clock, self._workers, self._backlog = clock, workers, backlog
        self._turn_s, self._request_s = turn_s, request_s
        self._turns: deque[_Answer] = deque()
        self._waiting: deque[_Answer] = deque()
        self._busy = 0
        self._running = False
        self.busy_s = 0.0
        """Time for which its CPU was, or will be, busy with the turns that have begun."""

    def syn(self) -> bool:
        """While the accept queue has room."""
        return len(self._waiting) <= self._backlog

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        """To a worker, or into the queue."""
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
