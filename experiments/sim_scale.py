"""R at sizes that no lab reaches, simulated: up to 1,000 servers and a million connections, and several switches that
share a pool of servers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report, Values
from experiments.intervals import mean_of
from experiments.ratios import course
from experiments.records import Columns, grouped, matching, table
from sim.pool import PoolPlan, PoolRun, ServerPlan, simulate
from sim.secondlook import SecondLook
from topo.plan.load import HOGS

SERVERS = (3, 10, 30, 100, 300, 1000)
QUICK_SERVERS = (3, 30, 300)
SWITCHES = (2, 4, 8)
FEW = 16
TOLD = ((3, 1), (30, 1), (1000, 1), (30, 8))
"""Pools, by numbers of servers and of switches, that the page's table shows if there are more than FEW pools. The runs
of all pools are stored."""
SHARED = 30
"""Number of servers in the pool that several switches share."""
WORK_S = 7e-3
RATE_PER_SERVER = 5.6
"""Requests per second for each server: a tenth of the demo's rate at ten times the CPU time per request, so that a run
of 1,000 servers has a million requests."""
LOADED_SHARE = 0.1
END_S, GIVEN_UP_S = 180.0, 5.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of load balancing that is simulated."""

    title: str
    mode: Mode
    connections_per_s: float
    """Approximate number of connections simulated per second on one core, to estimate the time left."""
    second_look: type[SecondLook] | None = None


FIXED, PAPER, FIRST, PRODUCTION = "fixed", "paper", "production-first", "production"
VARIANTS = {
    FIXED: Variant("fixed", Mode.FIXED, 40_000),
    PAPER: Variant("paper", Mode.PAPER, 40_000),
    FIRST: Variant("production, without the second look", Mode.PRODUCTION, 40_000),
    PRODUCTION: Variant("production", Mode.PRODUCTION, 22_000, SecondLook),
}
QUICK = (FIXED, PAPER, PRODUCTION)
DECIDING = (PAPER, FIRST, PRODUCTION)
SEEDS, QUICK_SEEDS = (1, 2, 3, 4, 5), (1, 2, 3)
LARGE, LARGE_SEEDS = 300, (1, 2, 3)
"""Pools of at least LARGE servers take long, so they are run only with the seeds of LARGE_SEEDS."""
DECIDED_MS = 100.0
OF_THE_WAY = 0.1
"""Tolerance, as a part of the distance from an equal split to the final level of the loaded servers' share. The share
has settled once it remains within this tolerance of the level."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: every pool size with every variant, then SHARED servers behind several switches
    with every variant except FIXED.

    All are repeated with other arrivals, large pools less often. The quick form has fewer sizes, variants, numbers of
    switches and repetitions.
    """
    made: list[Point] = []
    seeds, variants = (QUICK_SEEDS, QUICK) if quick else (SEEDS, tuple(VARIANTS))
    large = LARGE_SEEDS[:1] if quick else LARGE_SEEDS
    for seed in seeds:
        sizes = [size for size in (QUICK_SERVERS if quick else SERVERS) if size < LARGE or seed in large]
        made += [_point(size, variant, 1, seed) for size in sizes for variant in variants]
        numbers = SWITCHES[1:2] if quick else SWITCHES
        made += [_point(SHARED, name, number, seed) for number in numbers for name in variants if name != FIXED]
    return made


def _point(servers: int, variant: str, switches: int, seed: int) -> Point:
    parameters = {"servers": servers, "variant": variant, "switches": switches, "end_s": END_S, "seed": seed}
    key = f"{servers} servers, {switches} switches, {variant} #{seed}"
    connections = servers * RATE_PER_SERVER * END_S
    return Point(key, parameters, 0.3 + connections / VARIANTS[variant].connections_per_s)


def plan(parameters: Mapping[str, Any]) -> PoolPlan:
    """Return the plan of a pool in which a tenth of the servers (at least one) is loaded. As in the demo, R's period T
    is 1 s and its window mT 10 s."""
    count, variant = parameters["servers"], VARIANTS[parameters["variant"]]
    healthy = ServerPlan(work_s=WORK_S)
    loaded = max(1, round(count * LOADED_SHARE))
    return PoolPlan(
        servers=[*[healthy] * (count - loaded), *[replace(healthy, others=HOGS)] * loaded],
        options=BalanceOptions(mode=variant.mode, period_s=1.0, window_s=10.0),
        rate_per_s=RATE_PER_SERVER * count,
        end_s=parameters["end_s"],
        switches=parameters["switches"],
        second_look=variant.second_look,
        seed=parameters["seed"],
    )


def measure(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    return values(simulate(plan(point.parameters)))


def values(run: PoolRun) -> Values:
    """Return connect times and the share of failed connections in the second half of the run, figures of the loaded
    servers' share of connections, the number of weight changes, and the CPU time of a decision.

    The loaded servers' share is the mean over the switches, relative to an equal split. Its figures are the final
    level, the time at which it settled, its variation, and its course.
    """
    late = [connection for connection in run.connections if connection.begun_s >= run.plan.end_s / 2]
    answered = sorted(connection.connect_s for connection in late if connection.connect_s is not None)
    loaded = [number for number, server in enumerate(run.plan.servers) if server.others]
    fair = len(loaded) / len(run.plan.servers)
    shares = [
        [
            decisions[0].time_s,
            statistics.fmean(sum(decision.ratios[number] for number in loaded) for decision in decisions) / fair,
        ]
        for decisions in zip(*run.decisions, strict=True)
    ]
    moments, parts = ([row[column] for row in shares] for column in (0, 1))
    seen = course(moments, parts)
    return {
        "connections": len(run.connections),
        "mean_ms": 1000 * statistics.fmean(answered),
        "p99_ms": 1000 * answered[int(0.99 * (len(answered) - 1))],
        "failed": sum(
            connection.done_s is None for connection in late if connection.begun_s < run.plan.end_s - GIVEN_UP_S
        )
        / max(1, sum(connection.begun_s < run.plan.end_s - GIVEN_UP_S for connection in late)),
        "loaded_left": seen.level,
        "loaded_fair": fair,
        "settled_s": settled_s(moments, parts),
        "swing": seen.swing,
        "weight_changes": run.weight_changes,
        "decide_ms": 1000 * statistics.median(run.decide_s),
        "shares": shares[::5],
    }


def settled_s(times: Sequence[float], shares: Sequence[float]) -> float:
    """Return the time in seconds after which a share that began at 1 remains near its mean over the last third of
    the times; infinite if it does not settle, or does not fall.

    The tolerance is a part of the whole fall, from 1 to that mean, so that a share that falls slowly does not count as
    settled.
    """
    way = 1 - course(times, shares).level
    return course(times, shares, near=OF_THE_WAY * way).settled_s if way > 0 else math.inf


Place = tuple[int, int, str]
"""Number of servers, number of switches, and variant."""


def _place(record: Record) -> Place:
    return record.parameters["servers"], record.parameters["switches"], record.parameters["variant"]


def _mean(runs: Sequence[Record], figure: str, digits: int, scale: float = 1.0) -> str:
    return mean_of([scale * record.result[figure] for record in runs]).text(digits)


COLUMNS: Columns[Place] = {
    "servers": lambda place, _: f"{place[0]:,}",
    "switches": lambda place, _: str(place[1]),
    "mode": lambda place, _: VARIANTS[place[2]].title,
    "connections": lambda _, runs: _mean(runs, "connections", 0),
    "connect, mean (ms)": lambda _, runs: _mean(runs, "mean_ms", 1),
    "p99 (ms)": lambda _, runs: _mean(runs, "p99_ms", 0),
    "given up": lambda _, runs: f"{_mean(runs, 'failed', 2, 100)} %",
    "loaded servers' share in the last third, of an equal split": lambda _, runs: _mean(runs, "loaded_left", 2),
    "settled (s)": lambda place, runs: "-" if place[2] == FIXED else _settled(runs),
    "its swing then": lambda _, runs: _mean(runs, "swing", 2),
    "CPU to decide (ms)": lambda _, runs: _mean(runs, "decide_ms", 2),
}


def _settled(runs: Sequence[Record]) -> str:
    """Return a text: when the loaded servers' share of connections settled, and in how many runs it did not settle."""
    known = [record.result["settled_s"] for record in runs if record.result["settled_s"] is not None]
    never = len(runs) - len(known)
    where = f" in {never} of {len(runs)}" if known else ""
    said = [mean_of(known).text(0)] if known else []
    return ", ".join([*said, *([f"not in {runs[0].parameters['end_s']:g} s{where}"] if never else [])])


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each pool and variant, with means over repeated runs."""
    pools = grouped(records, _place)
    goals: list[Goal] = []
    if deciding := [place for place in pools if place[2] == PRODUCTION]:
        largest = max(deciding)
        took = mean_of([record.result["decide_ms"] for record in pools[largest]])
        text = f"deciding for {largest[0]:,} servers takes less than {DECIDED_MS:g} ms"
        goals.append(Goal(text, took.value < DECIDED_MS, f"{took.text()} ms"))
    shown = {place: runs for place, runs in pools.items() if len(pools) <= FEW or place[:2] in TOLD}
    return Report(
        tables=[table(COLUMNS, shown)],
        goals=goals,
        summary={record.key: {k: v for k, v in record.result.items() if k != "shares"} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the loaded servers' connections, relative to an equal split, against time, and the CPU time of decisions
    against the number of servers."""
    left, right = figure.subplots(1, 2)
    labelled = set[int]()
    styles = {PAPER: ":", FIRST: "--", PRODUCTION: "-"}
    sizes = sorted({record.parameters["servers"] for record in records})
    for record in records:
        servers, switches, variant = _place(record)
        if variant == FIXED or switches > 1 or record.parameters["seed"] != SEEDS[0]:
            continue
        left.plot(
            [moment for moment, _ in record.result["shares"]],
            [share for _, share in record.result["shares"]],
            styles[variant],
            color=f"C{sizes.index(servers)}",
            label=None if servers in labelled else f"{servers:,}",
        )
        labelled.add(servers)
    left.set_xlabel("s (T = 1 s)")
    left.set_title(": paper, -- without the second look, - production", fontsize="small")
    left.set_ylabel("loaded servers' share, in parts of an equal split")
    if labelled:
        left.legend(title="servers", fontsize="x-small")
    for name in DECIDING:
        runs = matching(records, variant=name, switches=1)
        by_size = sorted(grouped(runs, lambda record: record.parameters["servers"]).items())
        costs = [mean_of([record.result["decide_ms"] for record in members]).value for _, members in by_size]
        right.loglog([size for size, _ in by_size], costs, "o-", label=VARIANTS[name].title)
    right.set_xlabel("servers")
    right.set_ylabel("CPU to decide, ms")
    right.legend(fontsize="small")
    for axes in (left, right):
        axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="sim-scale",
    title="R at scale, simulated",
    source="Beyond Ohta & Andou",
    about="Pools of 3 to 1,000 servers at 5.6 requests/s each, a tenth of them loaded, for 180 s. The loaded "
    "servers' share is of an equal split; connect times are of answered requests.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
