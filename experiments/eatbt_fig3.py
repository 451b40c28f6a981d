"""Pages per second and page times of a web server whose idle connections the switch closes once most workers are
occupied, compared with servers that close idle connections themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sluice.resources.pauses import DEFAULT_AGE_S

from experiments.experiment import Axes, Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, mean_of
from experiments.records import matching
from topo.labs import closing
from topo.labs.closing import ClosingLab
from topo.labs.webservers import WebServer

WORKERS = 20
IDLE = {"limit": WORKERS, "threshold": 0.8}
THINK_S, SESSION_PAGES, OBJECTS = 3.0, 8.0, 4
SETTLE_S, SECONDS, QUICK_SECONDS = 6.0, 60.0, 18.0
USERS = (10, 20, 30, 40, 60)
QUICK_USERS = (10, 40, 60)
ENDS = (USERS[0], USERS[-1])
"""Least and greatest number of users. The quick form measures SOON and SHORTEST with these two numbers, PLAIN, DEFAULT
and SHORT with QUICK_USERS, and the other variants only with the greatest number."""
REPETITIONS = 3
GRACE_S = 60.0
GAIN, PAGE_SHARE = 1.25, 0.1
"""Goals of Azuma et al., section 4.3, relative to PLAIN, in which the switch closes no connection: a quarter more
throughput, and a tenth of the time of a page."""
BESIDE, BESIDE_TIME = 0.98, 1.1
RACES = 1.5


@dataclass(frozen=True, slots=True)
class Variant:
    """A web server, and whether and at which idle age the switch closes the server's connections."""

    name: str
    server: WebServer
    idle: Mapping[str, float] | None = None
    """The service's options for closing idle connections; None: the switch closes no connections."""


PLAIN = Variant("prefork, 15 s", WebServer("prefork", WORKERS, 15))
DEFAULT = Variant("closing, age learned (default)", PLAIN.server, IDLE)
LATE = Variant(f"closing after {DEFAULT_AGE_S:g} s", PLAIN.server, IDLE | {"least_age_s": DEFAULT_AGE_S})
"""The behaviour of DEFAULT until the controller has learned an idle age."""
SOON = Variant("closing after 0.5 s", PLAIN.server, IDLE | {"least_age_s": 0.5})
SHORT = Variant("KeepAliveTimeout 1", WebServer("prefork", WORKERS, 1))
SHORTEST = Variant("KeepAliveTimeout 500ms", WebServer("prefork", WORKERS, 0.5))
EQUALS = {DEFAULT.name: SHORT, SOON.name: SHORTEST}
"""The variant to which each variant with closing by the switch is compared: there the server itself closes its
connections, at about the same age. The keys are names of variants."""
VARIANTS = (
    PLAIN,
    DEFAULT,
    LATE,
    SOON,
    SHORT,
    SHORTEST,
    Variant("prefork, 5 s", WebServer("prefork", WORKERS, 5)),
    Variant("prefork, KeepAlive Off", WebServer("prefork", WORKERS, 0)),
    Variant("event MPM, 15 s", WebServer("event", WORKERS, 15)),
    Variant("nginx, 15 s", WebServer("nginx", WORKERS, 15)),
)
NAMED: Mapping[str, Variant] = {variant.name: variant for variant in VARIANTS}


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every variant with every number of users, REPETITIONS times. The quick form has
    shorter runs, fewer numbers of users, and no repetitions."""
    seconds = QUICK_SECONDS if quick else SECONDS
    return [
        Point(
            f"{variant.name}, {users} users, {seconds:g} s #{number}",
            {"variant": variant.name, "users": users, "seconds": seconds, "seed": number + 1},
            SETTLE_S + seconds + 1,
            variant.name,
        )
        for variant in VARIANTS
        for number in range(1 if quick else REPETITIONS)
        for users in (_quick_users(variant) if quick else USERS)
    ]


def _quick_users(variant: Variant) -> Sequence[int]:
    if variant in (PLAIN, DEFAULT, SHORT):
        return QUICK_USERS
    return ENDS if variant in (SOON, SHORTEST) else ENDS[-1:]


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a lab with the server of the variant `group`, and yield the measuring function. All runs of the variant use
    the same server process."""
    del say
    variant = NAMED[group]
    with ClosingLab(variant.server, variant.idle) as lab:

        def measure(point: Point) -> Values:
            asked = point.parameters
            before = lab.idle() if variant.idle else {}
            users = lab.users(
                users=asked["users"],
                seed=asked["seed"],
                settle=SETTLE_S,
                seconds=asked["seconds"],
                think=THINK_S,
                session=SESSION_PAGES,
                objects=OBJECTS,
            )
            seen = users.result(SETTLE_S + asked["seconds"] + GRACE_S)
            counts = {name: lab.idle()[name] - before[name] for name in COUNTS} if variant.idle else {}
            return {**summary(seen), "closings": counts}

        yield measure


COUNTS = ("asked", "closed", "taken_back", "raced", "lapsed")


def summary(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a run that are stored; the times of all pages are reduced to their mean and p99."""
    times = sorted(seen["page_s"])
    return {
        "pages": seen["pages"],
        "unfinished": seen["unfinished"],
        "lost": len(seen["lost"]),
        "connections": seen["connections"],
        "page_s": math.fsum(times) / len(times) if times else math.nan,
        "p99_s": times[math.ceil(0.99 * len(times)) - 1] if times else math.nan,
        "ended": sum(closing.ended(seen).values()),
        "raced": sum(seen["raced"].values()),
        "races_expected": closing.expected_races(seen, THINK_S),
    }


# -- the report


def _runs(records: Sequence[Record], variant: Variant, users: int) -> list[Record]:
    return matching(records, variant=variant.name, users=users)


def throughput(records: Sequence[Record], variant: Variant, users: int) -> Mean:
    """Return the mean pages per second."""
    return mean_of([record.result["pages"] / record.parameters["seconds"] for record in _runs(records, variant, users)])


def page_s(records: Sequence[Record], variant: Variant, users: int) -> Mean:
    """Return the mean time of a page in seconds; a page that is incomplete at the end of the run counts with the time
    waited so far."""
    return mean_of([record.result["page_s"] for record in _runs(records, variant, users)])


def _cell(records: Sequence[Record], variant: Variant, users: int) -> str:
    rate, time = throughput(records, variant, users), page_s(records, variant, users)
    return f"{rate.text(1)} ({Mean.text(mean_of([1e3 * time.value]), 0)})" if rate.runs else "-"


def _ratios(
    records: Sequence[Record], closing: Variant, of: Callable[..., Mean], over: Variant, more_than: int
) -> dict[int, float]:
    return {
        users: of(records, closing, users).value / of(records, over, users).value
        for users in USERS
        if users > more_than and _runs(records, closing, users) and _runs(records, over, users)
    }


def _goal(text: str, ratios: Mapping[int, float], holds: Callable[[float], bool]) -> Goal:
    if not ratios:
        return Goal(text, None, "not measured")
    seen = "; ".join(f"{users} users {ratio:.2f}" for users, ratio in ratios.items())
    return Goal(text, all(map(holds, ratios.values())), seen)


def _goals(records: Sequence[Record], closing: Variant) -> list[Goal]:
    beside = EQUALS[closing.name]
    closed = [record.result for record in matching(records, variant=closing.name)]
    expected = math.fsum(result["races_expected"] for result in closed)
    raced, ended, lost = (sum(result[name] for result in closed) for name in ("raced", "ended", "lost"))
    seen = f"{raced} of {ended:,}, expected {expected:.1f}"
    return [
        _goal(
            f"{closing.name}, users beyond workers: throughput at least 1.25 times",
            _ratios(records, closing, throughput, PLAIN, WORKERS),
            lambda ratio: ratio >= GAIN,
        ),
        _goal(
            "page time at most a tenth",
            _ratios(records, closing, page_s, PLAIN, WORKERS),
            lambda ratio: ratio <= PAGE_SHARE,
        ),
        _goal(
            f"beside {beside.name}, of equal age: throughput at least 0.98",
            _ratios(records, closing, throughput, beside, 0),
            lambda ratio: ratio >= BESIDE,
        ),
        _goal(
            "page time at most 1.1", _ratios(records, closing, page_s, beside, 0), lambda ratio: ratio <= BESIDE_TIME
        ),
        Goal("no page lost to closing", None if not ended else lost == 0, f"{lost} in {ended:,} closings"),
        Goal("races at most 1.5 x hazard x RTT", None if not ended else raced <= RACES * expected, seen),
    ]


def report(records: Sequence[Record]) -> Report:
    """Report pages per second and time of a page by number of users, the outcomes of the switch's probes, and the
    goals."""
    used = [users for users in USERS if any(record.parameters["users"] == users for record in records)]
    rows = [[variant.name, *(_cell(records, variant, users) for users in used)] for variant in VARIANTS]
    closings = [
        [str(users), *(f"{sum(record.result['closings'][name] for record in runs):,}" for name in COUNTS)]
        for users in used
        if (runs := [*_runs(records, DEFAULT, users), *_runs(records, SOON, users)])
    ]
    return Report(
        tables=[
            Table(["pages/s (ms a page)", *(f"{users} users" for users in used)], rows),
            Table(["users", *(name.replace("_", " ") for name in COUNTS)], closings),
        ],
        goals=[*_goals(records, DEFAULT), *_goals(records, SOON)],
        summary={record.key: {**record.parameters, **record.result} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw throughput and page time over users (Azuma et al., Fig. 3)."""
    left, right = figure.subplots(1, 2)
    _series(left, records, throughput)
    left.set(xlabel="users", ylabel="pages/s")
    _series(right, records, page_s)
    right.set(xlabel="users", ylabel="time of a page (s)", yscale="log")
    for axes in (left, right):
        axes.axvline(WORKERS, color="grey", linewidth=0.8, linestyle=":")
        axes.grid(alpha=0.3)
    left.legend(fontsize="x-small")


def _series(axes: Axes, records: Sequence[Record], of: Callable[..., Mean]) -> None:
    for variant in VARIANTS:
        known = {users: mean.value for users in USERS if (mean := of(records, variant, users)).runs}
        beside = variant not in (PLAIN, DEFAULT, SOON)
        axes.plot(list(known), list(known.values()), "o--" if beside else "o-", label=variant.name, ms=3)


EXPERIMENT = Experiment(
    name="eatbt-fig3",
    title="Idle connections closed before their timer",
    source="Azuma et al., Fig. 3",
    about=(
        "Users at 5 to 80 ms think 3 s between pages of four requests; one server has 20 workers, threshold 80 %."
        " Closed loop; awaited pages count with their waiting so far."
    ),
    points=points,
    report=report,
    draw=draw,
    place=place,
    needs_root=True,
)
