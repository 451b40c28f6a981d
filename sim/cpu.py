"""A cgroup's CPU limit as Linux 6.18 enforces it, on one core, for tasks of equal weight.

The quota is spent at the core's full speed; then all tasks of the group are throttled until the next period (CFS
bandwidth control). While quota is left, EEVDF shares the core fairly (I. Stoica, H. Abdel-Wahab, *Earliest Eligible
Virtual Deadline First*, 1995; kernel/sched/fair.c). A task's virtual time is the CPU time that it has received; the
group's virtual time is the mean over the runnable tasks. A task is eligible if its virtual time is not above the
group's. Of the eligible tasks the kernel runs the one with the earliest deadline. A deadline is a virtual time: one
slice after the virtual time that the task had when the deadline was set.

- A task is preempted only after its deadline, or when the quota is spent. The kernel checks this at the timer's tick,
  and when a task of the group wakes or sleeps. Until the check the running task continues; CPU time beyond the quota is
  subtracted from the next period's quota.

- A task that sleeps keeps its lag: the group's virtual time minus the task's. A task with a negative lag is not
  eligible until the group's virtual time has reached the task's.

- While the group is throttled, all tasks keep their virtual times. A task that wakes during this time enters an empty
  queue, where lag does not count. The woken task therefore gets the virtual time of the first task that returns, which
  is the task that left the queue last (`throttled_limbo_list`); the model takes the task with the largest virtual time.

Traced in the lab (`sched_switch`): no task ran for longer than 5.42 ms without preemption, which is a slice and a tick.
The model omits double wake-ups and the time to take tasks off the queue (some 0.15 ms for 34 tasks).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf

from .clock import Clock

PERIOD_S = 0.1
"""Seconds over which a cgroup's quota is granted (``cfs_period_us``)."""
TICK_S = 4e-3
"""Seconds between timer ticks of a kernel with 250 Hz."""
SLICE_S = 1.4e-3
"""Seconds of a slice: Linux's ``base_slice_ns`` of a machine with two processors, 0.7 ms times 1 + log2(2)."""
LAG_S = max(TICK_S, 2 * SLICE_S)
"""Largest lag, in seconds, that a task keeps when it goes to sleep (``update_entity_lag``)."""
_EPSILON_S = 1e-9
"""The resolution of the kernel's clocks in seconds; the simulation treats smaller differences as 0."""


class Task:
    """A task of the cgroup: a worker that sleeps between its jobs, or a task that never sleeps."""

    __slots__ = ("deadline_s", "done", "lag_s", "left_s", "virtual_s")

    def __init__(self) -> None:
        self.left_s, self.done = 0.0, _nothing
        self.virtual_s = self.deadline_s = 0.0
        self.lag_s = 0.0


def _nothing() -> None:
    pass


class Cpu:
    """One core with a quota of ``cpus`` seconds of CPU time per second. It runs the tasks to which `add` assigns jobs,
    and ``others`` further tasks, which never sleep."""

    def __init__(
        self, clock: Clock, cpus: float, others: int = 0, *, granted_s: float = 0.0, ticked_s: float = 0.0
    ) -> None:
        """``granted_s``: time of the first grant of quota, at most a period ago. ``ticked_s``: time of one of the
        timer's ticks."""
        self._clock, self._granted_s, self._ticked_s = clock, granted_s, ticked_s
        self._quota_s = cpus * PERIOD_S
        self._left_s = self._quota_s
        self._period = 0
        self._queue: list[Task] = []
        """Runnable tasks except the running one, in the order in which they became runnable."""
        self._sum_s = 0.0
        """Sum of the virtual times of the tasks in the queue."""
        self._time_s = 0.0
        """The group's virtual time when a task last went to sleep; used while no task is runnable."""
        self._running: Task | None = None
        self._since_s = 0.0
        """Time up to which the running task's CPU time is accounted for."""
        self._throttled = False
        self._woken: list[Task] = []
        """Tasks that woke while the group was throttled."""
        self._plans = 0
        """Number of checks planned so far; only the last planned check has an effect."""
        self._ending: Task | None = None
        """The task whose ``done`` is being called."""
        self._others: list[Task] = []
        self.others = others

    @property
    def others(self) -> int:
        """Number of tasks that never sleep."""
        return len(self._others)

    @others.setter
    def others(self, tasks: int) -> None:
        for task in self._others:
            task.left_s = 0.0  # these tasks end when the scheduler selects them next
        self._others = [Task() for _ in range(tasks)]
        for task in self._others:
            self.add(task, inf, _nothing)

    def add(self, task: Task, work_s: float, done: Callable[[], None]) -> None:
        """Assign a job of ``work_s`` CPU seconds to a task without a job; ``done`` is called when the job has ended.

        If ``done`` adds the task's next job at once, the task continues without leaving the core.
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
        """Return the group's virtual time."""
        running = self._running
        count = len(self._queue) + (running is not None)
        if not count:
            return self._time_s
        return (self._sum_s + (running.virtual_s if running is not None else 0.0)) / count

    def _place(self, task: Task) -> None:
        """Insert a woken task into the queue. A task that went to sleep with a positive lag gets this lag again. A task
        with a negative lag keeps its virtual time if this is still ahead of the group's, and otherwise gets the group's
        virtual time."""
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
        """Charge the time since the last check to the running task and to the quota; grant the quota of new periods."""
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
        """Return whether the running task must be preempted."""
        running = self._running
        assert running is not None
        return self._left_s <= _EPSILON_S or running.deadline_s - running.virtual_s <= _EPSILON_S

    def _next(self) -> None:
        """Run the eligible task with the earliest deadline, if quota is left."""
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
            (candidate for candidate in self._queue if candidate.virtual_s <= mean_s),
            key=lambda candidate: candidate.deadline_s,
        )
        self._queue.remove(task)
        self._sum_s -= task.virtual_s
        self._running, self._since_s = task, self._clock.now
        self._plan()

    def _plan(self) -> None:
        """Plan the next check: at the end of the running task's job, or at the first tick after the task's slice or the
        quota is used up, whichever is earlier."""
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
        self._sum_s = sum(task.virtual_s for task in self._queue)  # computed anew, so rounding errors do not add up
        woken, self._woken = self._woken, []
        behind_s = max((task.virtual_s for task in self._queue), default=self._time_s)
        for task in woken:
            task.virtual_s = behind_s
            task.deadline_s = behind_s + SLICE_S
            self._put(task)
        self._next()
