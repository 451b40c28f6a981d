"""A CPU limit as Linux 6.18 grants it, and who of a limited group runs when: one core, tasks of equal weight.

The quota is spent as fast as a core spends it; then everybody waits for the next period (CFS bandwidth control). While
there is quota the kernel is fair by EEVDF (I. Stoica, H. Abdel-Wahab, *Earliest Eligible Virtual Deadline First*, 1995;
kernel/sched/fair.c): a task's virtual time is what it has run, the group's the mean of those that want to run. Who is
not ahead of it is eligible, and the one of these runs whose deadline comes first, a slice after its virtual time.

- Nobody is interrupted before its deadline. The kernel looks at the timer's tick, and when somebody of the group wakes
  or goes to sleep: until then a turn goes on, and what it overdraws a quota by is taken off the next.
- Who sleeps keeps its lag: how far it is behind the group's time. Who is ahead of it stays so until that time comes.
- Without quota all keep their places (`throttled_limbo_list`: who left the queue last comes back first). Who wakes then
  is put into an empty queue, where no lag counts, and before all others: it gets the place of who left it last.

Traced in the lab (`sched_switch`): no turn longer than 5.42 ms, which is slice and tick. Left out are some 0.15 ms to
take 34 tasks off the queue, and double wake-ups.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from .clock import Clock

PERIOD_S = 0.1
"""Over which the quota of a cgroup is granted (``cfs_period_us``)."""
TICK_S = 4e-3
"""Of a kernel with 250 ticks a second."""
SLICE_S = 1.4e-3
"""``base_slice_ns`` of a machine with two processors: 0.7 ms times 1 + log2(2)."""
LAG_S = max(TICK_S, 2 * SLICE_S)
"""Nobody is further behind than that when it goes to sleep (``update_entity_lag``)."""
_EPSILON_S = 1e-9
"""What the kernel's clocks can tell apart."""


class Task:
    """Somebody who wants CPU time at times: a worker, or one that never rests."""

    __slots__ = ("deadline_s", "done", "lag_s", "left_s", "virtual_s")

    def __init__(self) -> None:
        self.left_s, self.done = 0.0, _nothing
        self.virtual_s = self.deadline_s = 0.0
        self.lag_s = 0.0


def _nothing() -> None:
    pass


class Cpu:
    """``cpus`` of CPU time a second as a quota, for tasks with jobs and for ``others`` that never rest."""

    def __init__(
        self, clock: Clock, cpus: float, others: int = 0, *, granted_s: float = 0.0, ticked_s: float = 0.0
    ) -> None:
        """``granted_s``, ``ticked_s``: when the first quota was granted, at most a period ago, and a tick was."""
        self._clock, self._granted_s, self._ticked_s = clock, granted_s, ticked_s
        self._quota_s = cpus * PERIOD_S
        self._left_s = self._quota_s
        self._period = 0
        self._queue: list[Task] = []
        """In the order in which they came."""
        self._sum_s = 0.0
        """Of their virtual times."""
        self._time_s = 0.0
        """The group's when the queue became empty."""
        self._running: Task | None = None
        self._since_s = 0.0
        """From when on it has not been accounted for."""
        self._throttled = False
        self._woken: list[Task] = []
        """Without quota."""
        self._plans = 0
        """Counts them: one that was made before the last is no longer true."""
        self._ending: Task | None = None
        """Whose job is just over."""
        self._others: list[Task] = []
        self.others = others

    @property
    def others(self) -> int:
        """Tasks beside those with jobs."""
        return len(self._others)

    @others.setter
    def others(self, tasks: int) -> None:
        for task in self._others:
            task.left_s = 0.0  # they end when it is their turn
        self._others = [Task() for _ in range(tasks)]
        for task in self._others:
            self.add(task, inf, _nothing)

    def add(self, task: Task, work_s: float, done: Callable[[], None]) -> None:
        """A job of so many seconds of CPU time for a task that has none; ``done`` is called at its end.

        A job that is added while the end of the task's last one is told goes on in the same turn.
        """
        task.left_s, task.done = work_s, done
        if task is self._ending:
            return
        self._account()
        if self._throttled:
            self._woken.append(task)
            return
        self._place(task)
        if self._ending is None and (self._running is None or self._due()):
            self._next()

    def _mean_s(self) -> float:
        """The group's virtual time."""
        running = self._running
        count = len(self._queue) + (running is not None)
        if not count:
            return self._time_s
        return (self._sum_s + (running.virtual_s if running is not None else 0.0)) / count

    def _place(self, task: Task) -> None:
        """Let a task that wakes want to run: as far behind the others' time as it was, or ahead where it still is."""
        count = len(self._queue) + (self._running is not None)
        mean_s = self._mean_s()
        if not count:
            task.virtual_s = mean_s
        elif task.lag_s >= 0.0:
            task.virtual_s = mean_s - task.lag_s * (count + 1) / count
        else:
            task.virtual_s = max(mean_s, task.virtual_s)
        task.deadline_s = task.virtual_s + SLICE_S
        self._put(task)

    def _put(self, task: Task) -> None:
        self._queue.append(task)
        self._sum_s += task.virtual_s

    def _account(self) -> None:
        """Take the time since the last look off whoever runs and off the quota, and grant what is due."""
        now, running = self._clock.now, self._running
        if running is not None:
            ran_s = now - self._since_s
            self._since_s = now
            running.virtual_s += ran_s
            running.left_s -= ran_s
            self._left_s -= ran_s
        period = int((now - self._granted_s) / PERIOD_S + 1e-9)
        if period > self._period:
            self._left_s = min(self._quota_s, self._left_s + (period - self._period) * self._quota_s)
            self._period = period

    def _due(self) -> bool:
        """Whether whoever runs has to make room."""
        running = self._running
        assert running is not None
        return self._left_s <= _EPSILON_S or running.deadline_s - running.virtual_s <= _EPSILON_S

    def _next(self) -> None:
        """Let the next one run, if there is quota."""
        if (running := self._running) is not None:
            self._running = None
            if running.deadline_s - running.virtual_s <= _EPSILON_S:
                running.deadline_s = running.virtual_s + SLICE_S
            self._put(running)
        if self._left_s <= _EPSILON_S:
            self._throttle()
            return
        if not self._queue:
            return
        mean_s = self._mean_s() + _EPSILON_S
        task = min(
            (task_waiting for task_waiting in self._queue if task_waiting.virtual_s <= mean_s),
            key=lambda task_waiting: task_waiting.deadline_s,
        )
        self._queue.remove(task)
        self._sum_s -= task.virtual_s
        self._running, self._since_s = task, self._clock.now
        self._plan()

    def _plan(self) -> None:
        """Look at whoever runs when its job ends, or at the tick by which it has had a slice or the quota is out."""
        self._plans += 1
        running, now = self._running, self._clock.now
        assert running is not None
        room_s = max(0.0, min(running.deadline_s - running.virtual_s, self._left_s))
        ticks = ceil((now + room_s - self._ticked_s) / TICK_S - 1e-9)
        at_s = self._ticked_s + ticks * TICK_S
        self._clock.after(max(0.0, min(running.left_s, at_s - now)), self._look, self._plans)

    def _look(self, plan: int) -> None:
        if plan != self._plans or (running := self._running) is None:
            return
        self._account()
        if running.left_s <= _EPSILON_S:
            self._end(running)
            return
        if self._due():
            self._next()
        else:
            self._plan()

    def _end(self, task: Task) -> None:
        self._ending = task
        task.done()
        self._ending = None
        if task.left_s > _EPSILON_S:
            self._plan()
            return
        mean_s = self._mean_s()
        self._running, self._time_s = None, mean_s
        task.lag_s = min(LAG_S, mean_s - task.virtual_s)
        self._next()

    def _throttle(self) -> None:
        self._throttled = True
        self._plans += 1
        next_s = self._granted_s + (self._period + 1) * PERIOD_S
        self._clock.after(max(0.0, next_s - self._clock.now), self._grant)

    def _grant(self) -> None:
        self._account()
        if self._left_s <= _EPSILON_S:
            self._throttle()
            return
        self._throttled = False
        self._sum_s = sum(task.virtual_s for task in self._queue)  # no rounding outlasts a grant
        woken, self._woken = self._woken, []
        behind_s = max((task.virtual_s for task in self._queue), default=self._time_s)
        for task in woken:
            task.virtual_s = behind_s
            task.deadline_s = behind_s + SLICE_S
            self._put(task)
        self._next()
