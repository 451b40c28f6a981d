"""A CPU limit as Linux grants it: so much time a period, and turns among those who want it.

The quota is spent as fast as a core spends it; then everybody waits for the next period (CFS bandwidth control).
Whoever has a turn then ends it first, and the next quota is so much less.

Who is next is drawn. A fair rota was tried and is wrong: a loaded server of the lab answers in bursts, one connection
in a second and seventy in the next, and a rota's answers come evenly. (Linux 6.18 takes the tasks of a group without
quota off the run queue one by one and puts them back at the next grant; what one is owed seems not to outlast that.)

One core here; in a lab with more the quota is spent sooner in its period.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from .clock import Clock

_EPSILON_S = 1e-12


@dataclass(frozen=True, slots=True)
class Slices:
    """How the kernel divides time; in seconds."""

    period_s: float = 0.1
    """Over which the quota of a cgroup is granted (``cfs_period_us``)."""
    turn_s: float = 1.4e-3
    """While others wait, nobody runs longer (EEVDF's base slice on two cores)."""
    seed: int = 1
    """Of the lots."""


class _Task:
    """Somebody who wants CPU time: a worker with a job, or one that never rests."""

    __slots__ = ("done", "left_s")

    def __init__(self, left_s: float, done: Callable[[], None]) -> None:
        self.left_s, self.done = left_s, done


def _never() -> None:
    raise AssertionError("a task that never rests has no end")


class SlicedCpu:
    """``cpus`` of CPU time a second as a quota; the same face as ``Cpu``, but that ``others`` are whole."""

    def __init__(self, clock: Clock, cpus: float, others: float, slices: Slices) -> None:
        self._clock, self._slices = clock, slices
        self._lots = random.Random(slices.seed)
        self._quota_s = cpus * slices.period_s
        self._left_s = self._quota_s
        self._period = 0
        self._waiting: list[_Task] = []
        """For a turn; the last one is next."""
        self._running: _Task | None = None
        self._began = clock.now
        self._hogs: list[_Task] = []
        self._plans = 0
        """Counts them: one that was made before the last is no longer true."""
        self.others = others

    @property
    def others(self) -> float:
        """Tasks beside the jobs."""
        return len(self._hogs)

    @others.setter
    def others(self, tasks: float) -> None:
        for hog in self._hogs:
            if hog is self._running:
                hog.left_s = 0.0  # its turn is its last
                hog.done = _nothing
            else:
                self._waiting.remove(hog)
        self._hogs = [_Task(inf, _never) for _ in range(round(tasks))]
        for hog in self._hogs:
            self._wake(hog)

    @property
    def jobs(self) -> int:
        """Jobs in progress."""
        return len(self._waiting) + (self._running is not None) - len(self._hogs)

    def add(self, work_s: float, done: Callable[[], None]) -> None:
        """A job of so many seconds of CPU time; ``done`` is called at its end."""
        self._wake(_Task(work_s, done))

    def _wake(self, task: _Task) -> None:
        self._waiting.insert(self._lots.randrange(len(self._waiting) + 1), task)
        if self._running is None:
            self._plan()

    def _plan(self) -> None:
        self._plans += 1
        now, period_s = self._clock.now, self._slices.period_s
        period = int(now / period_s + 1e-9)
        if period > self._period:
            self._left_s = min(self._quota_s, self._left_s + (period - self._period) * self._quota_s)
            self._period = period
            self._lots.shuffle(self._waiting)
        if not self._waiting:
            return
        if self._left_s <= _EPSILON_S:
            self._clock.after(max(0.0, (period + 1) * period_s - now), self._granted, self._plans)
            return
        self._running, self._began = self._waiting.pop(), now
        self._clock.after(min(self._running.left_s, self._slices.turn_s), self._end)

    def _granted(self, plan: int) -> None:
        if plan == self._plans and self._running is None:
            self._plan()

    def _end(self) -> None:
        task, self._running = self._running, None
        assert task is not None
        had = self._clock.now - self._began
        self._left_s -= had
        task.left_s -= had
        over = task.left_s <= _EPSILON_S
        if not over:
            self._waiting.insert(0, task)
        self._plan()
        if over:
            task.done()


def _nothing() -> None:
    pass
