"""A CPU shared equally by whoever wants it (processor sharing), of which others may take a part."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from .clock import Clock


class Cpu:
    """``cpus`` of CPU time a second, split evenly over the jobs and ``others`` tasks that never rest.

    Each job's progress is the same, so one number (the CPU time that a job present from the beginning would have
    had) and a heap of when each is done are the whole state.
    """

    def __init__(self, clock: Clock, cpus: float, others: float = 0.0) -> None:
        self._clock, self._cpus, self._others = clock, cpus, others
        self._progress = 0.0
        self._since = clock.now
        self._jobs: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._turn = 0
        """Counts the changes: an end that was planned before the last one is no longer true."""

    @property
    def others(self) -> float:
        """Tasks beside the jobs."""
        return self._others

    @others.setter
    def others(self, tasks: float) -> None:
        self._advance()
        self._others = tasks
        self._plan()

    @property
    def jobs(self) -> int:
        """Jobs in progress."""
        return len(self._jobs)

    def add(self, work_s: float, done: Callable[[], None]) -> None:
        """A job of so many seconds of CPU time; ``done`` is called at its end."""
        self._advance()
        heapq.heappush(self._jobs, (self._progress + work_s, next(self._number), done))
        self._plan()

    def _advance(self) -> None:
        now = self._clock.now
        if self._jobs:
            self._progress += (now - self._since) * self._cpus / (len(self._jobs) + self._others)
        self._since = now

    def _plan(self) -> None:
        self._turn += 1
        if self._jobs:
            left = max(0.0, self._jobs[0][0] - self._progress)
            self._clock.after(left * (len(self._jobs) + self._others) / self._cpus, self._end, self._turn)

    def _end(self, turn: int) -> None:
        if turn != self._turn:
            return
        self._advance()
        due, _, done = heapq.heappop(self._jobs)
        self._progress = max(self._progress, due)
        self._plan()
        done()
