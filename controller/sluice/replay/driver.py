"""Runs the steps of the controller's loops at times that the caller gives. Steps, state and order are those of the live
controller."""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

from sluice import balance, news
from sluice.features import Balance, CrowdControl, Resources
from sluice.features.balance.decisions import sample_times
from sluice.features.resources.tasks import SHARE_S
from sluice.loops.grid import next_turn
from sluice.loops.sweep import SWEEP_S, correct_loads, kept_slots
from sluice.loops.world import World
from sluice.resources import sharer
from sluice.switch import transfers
from sluice.switch.ledger import read_ledger
from sluice.switch.plan import Service
from sluice.switch.registers import Registers
from sluice.switch.secondlook import read_loads
from sluice.switch.state import Crowd
from sluice.switch.switchclock import SwitchClock

_T = TypeVar("_T")
_SLACK_S = 1e-9
"""Tolerance for the rounding of sums of periods, in seconds."""
_ROUNDING_S = 1e-3
"""Tolerance for the rounding of times in a trace, in seconds."""


@dataclass(frozen=True, slots=True)
class Balanced:
    """A decision on a service's ratios."""

    service: Service
    decision: balance.Decision


@dataclass(frozen=True, slots=True)
class Controlled:
    """A decision of flash-crowd control."""

    decision: news.Decision


@dataclass(frozen=True, slots=True)
class Shared:
    """A decision on the sharing of servers' buffers among connections."""

    decision: sharer.Decision


Event = Balanced | Controlled | Shared


@dataclass(frozen=True, slots=True)
class LiveTimes:
    """The times at which a live controller decided, in ascending order, in seconds on the clock of ``Driver.step``."""

    services: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """Times of decisions on ratios, by the service's name."""
    news: Sequence[float] = ()
    """Times of flash-crowd control's decisions, at interval ends and in between; also interval ends without a
    decision."""
    late: Sequence[float] = ()
    """Ends of flash-crowd control's late readings (`loops.watchedtime.Readings`). After each of them, flash-crowd
    control measured from a new base (the counters at that time)."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """The times of a future decision: ``at`` is its time in the replay; ``due`` is its time on the regular grid, or
    ``at`` if that is earlier."""

    due: float
    at: float
    """The time of the live controller's decision if it is known, else ``due``."""

    def following(self, period_s: float, now_s: float, live: Sequence[float], *, between: bool = False) -> _Turn:
        """Return the next turn (decision time) after this one was executed at ``now_s``.

        ``between``: ``live`` also contains decisions between turns, so live times before the due time are not used for
        a turn.
        """
        due = next_turn(self.due, period_s, now_s)
        place = bisect_right(live, due - _ROUNDING_S if between else max(now_s, self.at))
        at = live[place] if place < len(live) else due
        return _Turn(min(due, at), at)


class Driver:
    """Executes the steps of the tasks in ``features`` (balance, crowd, resources) by a clock that the caller supplies.

    The caller reads ``due`` and calls ``step`` at that time. ``apply`` receives the switch state that flash-crowd
    control decides, whenever that state may have changed; ``step`` returns the ratios. With ``live``, the driver
    decides at the live controller's times, however late they were; after the last of them it decides on the regular
    grid. The driver closes no idle connections: a capture already shows the connections that the live controller
    closed.
    """

    def __init__(
        self,
        world: World,
        registers: Registers,
        start_s: float,
        apply: Callable[[Crowd], None] = lambda _: None,
        live: LiveTimes | None = None,
    ) -> None:
        self._world, self._registers, self._apply = world, registers, apply
        self._live = live or LiveTimes()
        self._loop = asyncio.new_event_loop()
        start = _Turn(start_s, start_s)
        self._balance = dict.fromkeys((service.id for service in world.plan.services), start)
        self._sample_times: dict[int, list[float]] = {service.id: [] for service in world.plan.services}
        self._observation, self._reading = start, start_s
        self._late = deque(self._live.late)
        self._clock = SwitchClock(registers.units)
        self._sweep = start_s + SWEEP_S if world[Balance].second_look(world.plan.services) else math.inf
        managed, crowd = world[Resources].view, world[CrowdControl].view
        self._share_due = start_s if managed and managed.shares else math.inf
        self.due = start_s
        """The time of the next step, in seconds on the clock of ``step``."""
        if crowd is not None:
            crowd.rebase()

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()

    def step(self, now_s: float) -> list[Event]:
        """Execute the steps that are due. Returns the decisions, in order. Raises ValueError if no step is due yet.

        As in `features.balance.decisions`, flash-crowd control is executed before the balancing of services.
        """
        if now_s < self.due - _SLACK_S:
            raise ValueError(f"nothing is due at {now_s} s, before {self.due} s")
        events: list[Event] = []
        if now_s >= self._sweep - _SLACK_S:
            self._run(self._correct_loads(now_s))
            self._sweep = next_turn(self._sweep, SWEEP_S, now_s)
        if now_s >= self._crowd - _SLACK_S:
            events += self._control(now_s)
        for service in self._world.plan.services:
            if now_s >= self._balance[service.id].at - _SLACK_S:
                events += self._decide(service, now_s)
            elif now_s >= self._next_sample(service) - _SLACK_S:
                self._sample_loads(service)
                self._sample_times[service.id] = [
                    sample_s for sample_s in self._sample_times[service.id] if sample_s > now_s
                ]
        if now_s >= self._share_due - _SLACK_S:
            events.append(self._share(now_s))
        decisions = [turn.at for turn in self._balance.values()]
        other_times = (self._sweep, self._crowd, self._share_due)
        self.due = min([*decisions, *map(self._next_sample, self._world.plan.services), *other_times])
        return events

    async def _correct_loads(self, now_s: float) -> None:
        slots, unexpired = await kept_slots(self._world, self._registers, self._clock, now_s)
        await correct_loads(self._world, self._registers, slots, unexpired)

    def _next_sample(self, service: Service) -> float:
        return min(self._sample_times[service.id], default=math.inf)

    @property
    def _crowd(self) -> float:
        """The time of flash-crowd control's next reading; infinity without flash-crowd control. For a reading that
        leads to a decision this is the decision's time in the replay, which may be later than its regular time."""
        if self._world[CrowdControl].view is None:
            return math.inf
        due = self._reading if self._reading < self._observation.due - _SLACK_S else self._observation.at
        return min(due, self._late[0]) if self._late else due

    def _run(self, reading: Coroutine[Any, Any, _T]) -> _T:
        return self._loop.run_until_complete(reading)

    def _decide(self, service: Service, now_s: float) -> list[Event]:
        """Execute a step of ``features.balance.decisions.balance``: decide a service's ratios."""
        world, view = self._world, self._world[Balance].views[service.id]
        before, servers = view.balancer.weights(), [server.id for server in service.servers]
        readings = self._run(read_ledger(self._registers, servers))
        period_s, live = view.balancer.options.period_s, self._live.services.get(service.name, ())
        self._balance[service.id] = turn = self._balance[service.id].following(period_s, now_s, live)
        looking = service.second_look(view.balancer.options.mode)
        if looking:
            self._sample_loads(service)
        parts = pairwise(sample_times(turn.due, period_s)) if looking else ()
        self._sample_times[service.id] = [max(now_s, at) for at, following in parts if now_s < following]
        decision = view.balancer.observe(now_s, readings, hold=world.holds(service.id))
        if decision is None:
            return []
        view.decision = decision
        view.weight_changes += decision.weights != before
        return [Balanced(service, decision)]

    def _sample_loads(self, service: Service) -> None:
        """Read the open connections of a service's servers, as ``features.balance.decisions`` does between
        decisions."""
        loads = self._run(read_loads(self._registers, [server.id for server in service.servers]))
        self._world[Balance].views[service.id].balancer.sample_open(loads)

    def _control(self, now_s: float) -> list[Event]:
        """Execute a step of ``features.crowd.control.control``: read the switch for flash-crowd control, and decide if
        due."""
        world, balancing = self._world, self._world[Balance]
        view, registers = world[CrowdControl].view, self._registers
        assert view is not None
        late = False
        while self._late and now_s >= self._late[0] - _SLACK_S:
            self._late.popleft()
            late = True
        share = view.flow_share
        samples = self._run(view.poll(registers))
        if view.flow_share != share:
            self._apply(view.wanted())
        ends = now_s >= self._observation.at - _SLACK_S
        if ends or view.sampling:
            self._run(view.count(registers))
        if late:
            view.rebase()
        if ends:
            ledger = self._run(read_ledger(registers, [server.id for server in world.plan.servers]))
            decision = view.observe(now_s, ledger, samples, balancing.ejected, balancing.ratios)
            self._observation = self._observation.following(
                view.config.interval_s, now_s, self._live.news, between=True
            )
        elif view.sampling:
            decision = view.sampled(now_s, samples)
        else:
            decision = None
        poll_s = min(view.config.poll_s, view.config.interval_s)
        # In the replay, regular readings are on time, and the end of a live late reading is an extra reading before the
        # regular one that is still due (`_reading`). One period is subtracted, so that the regular one is not skipped.
        self._reading = next_turn(self._reading - poll_s if late else self._reading, poll_s, now_s)
        if decision is None:
            return []
        self._apply(view.wanted())
        return [Controlled(decision)]

    def _share(self, now_s: float) -> Event:
        """Execute a step of ``features.resources.tasks.share``: share the servers' buffers."""
        view = self._world[Resources].view
        assert view is not None
        columns = self._run(transfers.read(self._registers))
        loads = self._run(read_loads(self._registers, view.sharing))
        decision = view.observe(columns, loads)
        view.wrote(decision)
        self._share_due = next_turn(self._share_due, SHARE_S, now_s)
        return Shared(decision)
