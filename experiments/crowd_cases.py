"""The loads of the experiment `ablation-crowds`, the plans of their simulations, and the figures of a run."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import yaml
from sluice.config.load import parse
from sluice.config.model import Config

from experiments.experiment import Values
from sim.answers import AnswerServer, FastServer, SlowServer
from sim.clock import Clock
from sim.crowd import CrowdPlan, CrowdRun, Place
from sim.dumbbell import CLIENTS, places
from sim.tcp import TcpPlan
from topo.plan.outcomes import Ending, Outcome
from topo.plan.requests import Request
from topo.plan.synthesis import Crowd, synthesise

SERVICE, OTHER = "web", "other"
ADDRESSES = {SERVICE: ("203.0.113.80", "10.0.2.11"), OTHER: ("203.0.113.81", "10.0.2.12")}
"""Addresses of each service and of its only server."""
LINK_BIT_PER_S, QUEUE_BYTES = 1e6, 25_000.0
"""Rate and queue of the link: half of the testbed's (Chen & Heidemann, section 8.1); it carries about 28 requests/s."""
QUIET_PER_S, CROWD_PER_S, RAMP_S = 10.0, 55.0, 10.0
"""Requests per second before and in a crowd, half of the testbed's rates, and the seconds of the rise between them."""
PATIENCE_S = 60.0
"""Mean seconds after which a client considers leaving, as in Chen & Heidemann, section 7.6.1."""
SLOW_TURN_S, WORKERS, BACKLOG = 15e-3, 75, 64
"""The slow server: seconds of CPU for a block of 2 KB, so that it answers about 20 requests per second; workers and
backlog are half of the testbed's."""
BEGINS_S = 150.0
"""Onset of the crowd in seconds: production mode has completed its baseline by then, and 0.34 of a 64 s interval of
paper mode has passed."""
AFTER_S = 75.0
"""Seconds from the end of the last crowd to the end of the run."""
ANSWERED_S, GIVEN_UP_S = 10.0, 30.0
"""A request counts as answered if its whole answer arrives within ANSWERED_S. In the mean of the times, a request
counts with at most GIVEN_UP_S."""
NORMAL_SHARE, NORMAL_WINDOW_S = 0.9, 10.0
"""Service counts as normal again when NORMAL_SHARE of the requests that begin within NORMAL_WINDOW_S seconds are
answered."""
WARM_S = 60.0
"""Seconds at the beginning of a run that are left out: in a run without a crowd from all figures except false alarms,
in a run with crowds only from the mean AR before the first crowd."""
LATE_S = 30.0
"""An alarm within this many seconds of a crowd's end is not false: the crowd's queue is still being served."""
FURTHER_CLIENTS = 1_000_000
"""Difference between the client numbers at which two loads begin, so that no client belongs to both."""


@dataclass(frozen=True, slots=True)
class Surge:
    """A flash crowd: requests in addition to the usual requests."""

    per_s: float = CROWD_PER_S - QUIET_PER_S
    begins_s: float = BEGINS_S
    lasts_s: float = 150.0
    ramp_s: float = RAMP_S
    service: str = SERVICE

    @property
    def ends_s(self) -> float:
        """Time of the crowd's last request."""
        return self.begins_s + self.lasts_s


@dataclass(frozen=True, slots=True)
class Case:
    """A simulated case: the load, the link, the bottleneck, and the time at which the controller restarts."""

    surges: Sequence[Surge] = (Surge(),)
    quiet: Mapping[str, float] = field(default_factory=lambda: {SERVICE: QUIET_PER_S})
    """Requests per second outside of crowds, by service."""
    link_bit_per_s: float = LINK_BIT_PER_S
    slow: bool = False
    """Whether the server is the bottleneck, instead of the link."""
    restart_s: float = math.inf
    quiet_s: float = 600.0
    """Seconds of the run if there is no crowd."""

    @property
    def end_s(self) -> float:
        """Time at which the run ends."""
        return max((surge.ends_s + AFTER_S for surge in self.surges), default=self.quiet_s)

    @property
    def requests(self) -> float:
        """Approximate number of requests in the run."""
        usual = sum(self.quiet.values()) * self.end_s
        return usual + sum(surge.per_s * (surge.lasts_s - surge.ramp_s / 2) for surge in self.surges)

    def crowded(self, time_s: float) -> bool:
        """Return whether a time is within a crowd. In a run without crowds, return whether the time is neither in the
        first WARM_S nor in the last GIVEN_UP_S seconds."""
        if not self.surges:
            return WARM_S <= time_s < self.end_s - GIVEN_UP_S
        return any(surge.begins_s <= time_s < surge.ends_s for surge in self.surges)

    @property
    def windows(self) -> Sequence[tuple[float, float]]:
        """Return begin and end of each crowd; overlapping crowds are joined. In a run without crowds, return the run
        without its first WARM_S and its last GIVEN_UP_S seconds."""
        if not self.surges:
            return [(WARM_S, self.end_s - GIVEN_UP_S)]
        joined: list[tuple[float, float]] = []
        for surge in sorted(self.surges, key=lambda surge: surge.begins_s):
            if joined and surge.begins_s <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(joined[-1][1], surge.ends_s)
            else:
                joined.append((surge.begins_s, surge.ends_s))
        return joined


NOTHING, SUDDEN, SLOW_RAMP = "no crowd", "sudden crowd", "crowd over 15 min"
SERVER, SMALL, TWICE = "slow server", "1/s, then 100/s", "two in a row"
RESTARTED, DURING = "restart before", "restart during"
BESIDE, BOTH = "one of two services", "both of two services"
_TWO = {SERVICE: QUIET_PER_S / 2, OTHER: QUIET_PER_S / 2}
CASES: Mapping[str, Case] = {
    SUDDEN: Case([Surge(lasts_s=240.0)]),
    SERVER: Case([Surge(lasts_s=120.0)], slow=True),
    NOTHING: Case(surges=()),
    SMALL: Case([Surge(99.0, 200.0, 90.0, 5.0)], {SERVICE: 1.0}, 2 * LINK_BIT_PER_S),
    TWICE: Case([Surge(lasts_s=75.0), Surge(begins_s=BEGINS_S + 150.0, lasts_s=75.0)]),
    RESTARTED: Case([Surge(lasts_s=100.0)], restart_s=BEGINS_S - 10.0),
    DURING: Case(restart_s=BEGINS_S + 60.0),
    BOTH: Case([Surge(30.0), Surge(30.0, BEGINS_S + 60.0, 60.0, service=OTHER)], _TWO),
    BESIDE: Case([Surge(lasts_s=100.0)], _TWO),
    SLOW_RAMP: Case([Surge(25.0, lasts_s=960.0, ramp_s=900.0)], {SERVICE: 5.0}, LINK_BIT_PER_S / 2),
}
"""All cases by name, in the order in which they are run."""


def configuration(case: Case) -> Config:
    """Return the controller's configuration: the case's services, with fixed ratios and without the second look, and
    defaults for the rest."""
    services = [
        {
            "name": name,
            "address": ADDRESSES[name][0],
            "port": 80,
            "second_look": False,
            "balance": {"mode": "fixed"},
            "servers": [{"name": f"{name}-server", "address": ADDRESSES[name][1], "port": 80}],
        }
        for name in case.quiet
    ]
    port = {"port": 1, "mac": "02:00:00:00:00:01", "address": "10.0.2.1/24"}
    return parse(yaml.safe_dump({"interfaces": [port], "services": services, "news": {}}))


def _load(crowd: Crowd, service: str, seed: int, number: int) -> Iterator[Request]:
    """Yield the requests of the load `number`, whose client numbers differ from those of other loads."""
    for request in synthesise(crowd, service, seed=1000 * number + seed):
        yield replace(request, client=request.client + FURTHER_CLIENTS * number)


def requests(case: Case, seed: int) -> Iterator[Request]:
    """Return the usual requests and the requests of the crowds, in the order of time."""
    usual = [_load(Crowd(rate, rate, 0.0, 0.0, case.end_s), service, seed, 0) for service, rate in case.quiet.items()]
    crowds = [
        _load(Crowd(0.0, surge.per_s, surge.begins_s, surge.ramp_s, surge.ends_s), surge.service, seed, number)
        for number, surge in enumerate(case.surges, start=1)
    ]
    return heapq.merge(*usual, *crowds, key=lambda request: request.time_s)


class Busy:
    """CPU seconds that the slow server has used, read at the begin and at the end of each window."""

    def __init__(self) -> None:
        self.readings: dict[float, float] = {}

    def read(self, clock: Clock, server: SlowServer) -> None:
        """Record the CPU time that the server has used so far."""
        self.readings[clock.now] = server.busy_s


def plan(case: Case, config: Config, seed: int, busy: Busy, *, keeps_usual: bool) -> CrowdPlan:
    """Return the simulation's plan of a run. ``busy``: it receives the slow server's CPU seconds during the run.
    ``keeps_usual``: whether a restarted controller takes over the baselines."""
    where = places(seed, CLIENTS)
    by_client: dict[int, Place] = {}

    def place(request: Request) -> Place:
        if request.client not in by_client:
            by_client[request.client] = replace(where[request.client % CLIENTS], client=request.client)
        return by_client[request.client]

    def servers(clock: Clock) -> Mapping[str, Sequence[AnswerServer]]:
        if not case.slow:
            return {name: [FastServer()] for name in case.quiet}
        slow = SlowServer(clock, workers=WORKERS, backlog=BACKLOG, turn_s=SLOW_TURN_S)
        for window in case.windows:
            for moment in window:
                clock.after(moment, busy.read, clock, slow)
        return {SERVICE: [slow]}

    return CrowdPlan(
        config=config,
        requests=requests(case, seed),
        servers=servers,
        place=place,
        link_bit_per_s=case.link_bit_per_s,
        room_bytes=QUEUE_BYTES * case.link_bit_per_s / LINK_BIT_PER_S,
        end_s=case.end_s,
        tcp=TcpPlan(initial_window=10),
        patience_s=PATIENCE_S,
        restart_s=case.restart_s,
        keeps_usual=keeps_usual,
        seed=seed,
    )


def values(case: Case, run: CrowdRun, busy: Busy) -> Values:
    """Return the figures of a run.

    They describe the requests made during crowds, unless a figure's name states otherwise. In a run without crowds they
    describe all requests except those of the first WARM_S and of the last GIVEN_UP_S seconds.
    """
    due = [outcome for outcome in run.outcomes if case.crowded(outcome.due_s)]
    ends_s = max((surge.ends_s for surge in case.surges), default=case.end_s)
    return {
        "bytes": sum(outcome.size for outcome in due if _answered(outcome)) / sum(outcome.size for outcome in due),
        "answered": sum(map(_answered, due)) / len(due),
        "mean_s": sum(map(_seconds, due)) / len(due),
        "visits": _visits(due),
        "used": _used(case, run, busy),
        "lost": _lost(case, run),
        "rate": _rate(case, run) if case.surges else None,
        "alarm_s": _alarm_s(case, run) if case.surges else None,
        "false_alarms": len(_false_alarms(case, run)),
        "normal_s": _normal_s(run, ends_s) if case.surges else None,
        "lifted_s": _lifted_s(run, ends_s) if case.surges else None,
    }


def _answered(outcome: Outcome) -> bool:
    return _seconds(outcome) <= ANSWERED_S


def _seconds(outcome: Outcome) -> float:
    if outcome.ending is not Ending.FINISHED or outcome.done_s is None:
        return GIVEN_UP_S
    return min(outcome.done_s, GIVEN_UP_S)


def _visits(due: Sequence[Outcome]) -> float:
    """Among the clients with several requests, return the share whose requests were all answered."""
    by_client: dict[int, list[bool]] = defaultdict(list)
    for outcome in due:
        by_client[outcome.client].append(_answered(outcome))
    visits = [answered for answered in by_client.values() if len(answered) > 1]
    return sum(map(all, visits)) / len(visits)


def _seconds_in(case: Case) -> float:
    return sum(end_s - begin_s for begin_s, end_s in case.windows)


def _used(case: Case, run: CrowdRun, busy: Busy) -> float:
    """Return the share of the case's windows (their total time) in which the bottleneck was busy: the slow server's
    CPU, or the link."""
    if case.slow:
        spent = sum(busy.readings[end_s] - busy.readings[begin_s] for begin_s, end_s in case.windows)
        return spent / _seconds_in(case)
    sent = sum(last - first for (first, _, _), (last, _, _) in _at_ends(case, run))
    return sent * 8 / case.link_bit_per_s / _seconds_in(case)


def _lost(case: Case, run: CrowdRun) -> float:
    """Return the share of packets towards clients that the link dropped."""
    counted = _at_ends(case, run)
    dropped = sum(last - first for (_, _, first), (_, _, last) in counted)
    sent = sum(last - first for (_, first, _), (_, last, _) in counted)
    return dropped / (dropped + sent)


_Counts = tuple[int, int, int]
"""Bytes that the link sent, packets that it sent, and packets that it dropped."""


def _at_ends(case: Case, run: CrowdRun) -> list[tuple[_Counts, _Counts]]:
    """Return the link's counters at the begin and at the end of each of the case's windows."""

    def at(moment: float) -> _Counts:
        counts = next((counts for time_s, counts in run.link if time_s >= moment), run.link[-1][1])
        return counts.sent_bytes, counts.sent, counts.dropped

    return [(at(begin_s), at(end_s)) for begin_s, end_s in case.windows]


def _rate(case: Case, run: CrowdRun) -> float | None:
    """Return AR (the response rate of the fastest flows) during crowds relative to AR before the first crowd; None if
    either was not measured."""
    begins_s = min(surge.begins_s for surge in case.surges)
    measured = [(decision.time_s, ar) for decision in run.decisions if (ar := decision.measurement.ar) is not None]
    before = [ar for time_s, ar in measured if WARM_S <= time_s < begins_s]
    during = [ar for time_s, ar in measured if case.crowded(time_s)]
    return sum(during) / len(during) / (sum(before) / len(before)) if before and during else None


def _alarm_s(case: Case, run: CrowdRun) -> float:
    """Return the mean over crowds of the seconds from a crowd's beginning to the alarm; a crowd without an alarm counts
    with its whole length."""
    after = [
        next(
            (
                decision.time_s - surge.begins_s
                for decision in run.decisions
                if decision.detection.alarm and surge.begins_s <= decision.time_s < surge.ends_s
            ),
            surge.lasts_s,
        )
        for surge in case.surges
    ]
    return sum(after) / len(after)


def _false_alarms(case: Case, run: CrowdRun) -> list[float]:
    """Return the times at which alarms begin, except those during a crowd or within LATE_S seconds after a crowd."""
    before, alarms = False, list[float]()
    for decision in run.decisions:
        crowd = any(surge.begins_s <= decision.time_s < surge.ends_s + LATE_S for surge in case.surges)
        if decision.detection.alarm and not before and not crowd:
            alarms.append(decision.time_s)
        before = decision.detection.alarm
    return alarms


def _normal_s(run: CrowdRun, ends_s: float) -> float:
    """Return the seconds from the last crowd's end until service is normal.

    If service never is, return the seconds until the first time at which this can no longer be judged: for the windows
    from then on, requests may still be unanswered when the run ends.
    """
    latest_s = run.outcomes[-1].due_s - ends_s - NORMAL_WINDOW_S - ANSWERED_S
    after_s = 0.0
    while after_s < latest_s:
        begin_s = ends_s + after_s
        made = [outcome for outcome in run.outcomes if begin_s <= outcome.due_s < begin_s + NORMAL_WINDOW_S]
        if made and sum(map(_answered, made)) >= NORMAL_SHARE * len(made):
            return after_s
        after_s += 1.0
    return after_s


def _lifted_s(run: CrowdRun, ends_s: float) -> float:
    """Return the seconds from the last crowd's end until no limit is set any more, or until the run's end."""
    limited = [decision.time_s for decision in run.decisions if decision.limits and decision.time_s >= ends_s]
    return max(limited, default=ends_s) - ends_s
