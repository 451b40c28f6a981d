"""A CPU limit as Linux grants it: so much time a period, and turns among those who want it.

The quota is spent as fast as a core spends it; then everybody waits for the next period (CFS bandwidth control).
Whoever has a turn then goes on until the kernel looks, and the next quota is so much less. As traced in the lab
(docs/simulation.md):

- At a grant who is next is drawn among all. Linux 6.18 takes the tasks of a group without quota off the run queue one
  by one and puts them back at the next grant; what one is owed seems not to outlast that.
- Who wakes while there is quota is next, in the order of waking: the others have had more than their due.
- A turn ends with the timer's tick, or when its task goes to sleep. Who ends a job and has another does not sleep.
- At the end of a job a packet leaves, for which the switch takes the core: the kernel looks at the quota then.

One core here; in a lab with more the quota is spent sooner in its period.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from math import inf

from .clock import Clock

PERIOD_S = 0.1
"""Over which the quota of a cgroup is granted (``cfs_period_us``)."""
TURN_S = 3.3e-3
"""While others wait, nobody runs longer: a tick (4 ms), or what is left of it at a grant."""
_EPSILON_S = 1e-12


class _Task:
    """Somebody who wants CPU time: a worker with a job, or one that never rests."""

    __slots__ = ("done", "left_s")

    def __init__(self, left_s: float, done: Callable[[], None]) -> None:
        self.left_s, self.done = left_s, done


def _never() -> None:
    raise AssertionError("a task that never rests has no end")


def _nothing() -> None:
    pass


class Cpu:
    """``cpus`` of CPU time a second as a quota, for jobs and for ``others``, tasks that never rest.

    A job that is added while another one's end is told (``done``) goes on in its turn: the same worker has both.
    """

    def __init__(
        self, clock: Clock, cpus: float, others: int = 0, *, lots: random.Random, granted_s: float = 0.0
    ) -> None:
        """``lots``: who is next at a grant. ``granted_s``: when the first quota was granted, at most a period ago."""
        self._clock, self._lots, self._granted_s = clock, lots, granted_s
        self._quota_s = cpus * PERIOD_S
        self._left_s = self._quota_s
        self._period = 0
        self._woken: deque[_Task] = deque()
        """Since the grant."""
        self._waiting: list[_Task] = []
        """The last one is next."""
        self._running: _Task | None = None
        self._has_s, self._turn_left_s = 0.0, 0.0
        """How long the running one runs now; its turn's rest."""
        self._ending = False
        """Whether its job is just over, and none has been added in its place."""
        self._others: list[_Task] = []
        self._plans = 0
        """Counts them: one that was made before the last is no longer true."""
        self.others = others

    @property
    def others(self) -> int:
        """Tasks beside the jobs."""
        return len(self._others)

    @others.setter
    def others(self, tasks: int) -> None:
        for task in self._others:
            if task is self._running:
                task.left_s, task.done = 0.0, _nothing  # its turn is its last
            else:
                (self._woken if task in self._woken else self._waiting).remove(task)
        self._others = [_Task(inf, _never) for _ in range(tasks)]
        for task in self._others:
            self._wake(task)

    @property
    def jobs(self) -> int:
        """Jobs in progress."""
        return len(self._woken) + len(self._waiting) + (self._running is not None) - len(self._others)

    def add(self, work_s: float, done: Callable[[], None]) -> None:
        """A job of so many seconds of CPU time; ``done`` is called at its end."""
        task = _Task(work_s, done)
        if self._ending:
            self._running, self._ending = task, False
        else:
            self._wake(task)

    def _wake(self, task: _Task) -> None:
        self._woken.append(task)
        if self._running is None:
            self._plan()

    def _plan(self) -> None:
        self._plans += 1
        period = int((self._clock.now - self._granted_s) / PERIOD_S + 1e-9)
        if period > self._period:
            self._left_s = min(self._quota_s, self._left_s + (period - self._period) * self._quota_s)
            self._period = period
            self._waiting += self._woken
            self._woken.clear()
            self._lots.shuffle(self._waiting)
        if not self._woken and not self._waiting:
            return
        if self._left_s <= _EPSILON_S:
            next_s = self._granted_s + (period + 1) * PERIOD_S
            self._clock.after(max(0.0, next_s - self._clock.now), self._granted, self._plans)
            return
        self._turn_left_s = TURN_S
        self._run(self._woken.popleft() if self._woken else self._waiting.pop())

    def _granted(self, plan: int) -> None:
        if plan == self._plans and self._running is None:
            self._plan()

    def _run(self, task: _Task) -> None:
        self._running, self._has_s = task, min(task.left_s, self._turn_left_s)
        self._clock.after(self._has_s, self._end)

    def _end(self) -> None:
        task = self._running
        assert task is not None
        self._left_s -= self._has_s
        self._turn_left_s -= self._has_s
        task.left_s -= self._has_s
        goes_on = self._turn_left_s > _EPSILON_S
        if task.left_s <= _EPSILON_S:
            self._ending = True
            task.done()
            task = None if self._ending else self._running
            self._ending = False
            goes_on = goes_on and self._left_s > _EPSILON_S
        if task is not None and goes_on:
            self._run(task)
            return
        self._running = None
        if task is not None:
            self._waiting.insert(0, task)
        self._plan()
