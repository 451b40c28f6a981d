"""R where no lab reaches: up to 1,000 servers and a million connections, and several switches that share a pool."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Experiment, Goal, Point, Record, Report, Table, Values
from experiments.intervals import mean_of
from experiments.simulated import grouped
from sim.pool import PoolPlan, PoolRun, ServerPlan, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = (3, 10, 30, 100, 300, 1000)
QUICK_SERVERS = (3, 30, 300)
SWITCHES = (2, 4, 8)
SHARED = 30
"""Servers of the pool that several switches share."""
WORK_S = 7e-3
RATE_PER_SERVER = 5.6
"""Requests a second: a tenth of the demo's, of ten times its cost, so that a run of 1,000 servers has a million."""
STRESS = 24.0
LOADED_SHARE = 0.1
END_S = 180.0
CONNECTIONS_PER_S = 22_000.0
"""Simulated in a second of one core, about, for the estimate of the time left."""
MODES = ("fixed", "paper", "production")
TITLES = {"fixed": "fixed", "paper": "paper", "production": "production, without the second look"}
"""The plans have no second look, which production mode has by default: `sim-unlike` has both."""
SEEDS = (1, 2, 3)
DECIDED_MS = 100.0
STILL = 0.95
"""A share that is more than so much of another one is not clearly below it."""


def points(quick: bool) -> Sequence[Point]:
    """Every size in every mode, then several switches; with other arrivals again, but large pools in the quick form."""
    made: list[Point] = []
    for seed in SEEDS:
        sizes = [size for size in QUICK_SERVERS if size <= SHARED or seed == SEEDS[0]] if quick else SERVERS
        made += [_point(size, mode, 1, seed) for size in sizes for mode in MODES]
        numbers = SWITCHES[1:2] if quick else SWITCHES
        made += [_point(SHARED, mode, number, seed) for number in numbers for mode in MODES[1:]]
    return made


def _point(servers: int, mode: str, switches: int, seed: int) -> Point:
    parameters = {"servers": servers, "mode": mode, "switches": switches, "end_s": END_S, "seed": seed}
    key = f"{servers} servers, {switches} switches, {mode} #{seed}"
    return Point(key, parameters, 1 + servers * RATE_PER_SERVER * END_S / CONNECTIONS_PER_S)


def plan(parameters: Any) -> PoolPlan:
    """A tenth of the servers (at least one) is loaded; T = 1 s, mT = 10 s, as in the demo."""
    count = parameters["servers"]
    healthy = ServerPlan(work_s=WORK_S)
    loaded = max(1, round(count * LOADED_SHARE))
    return PoolPlan(
        servers=[*[healthy] * (count - loaded), *[replace(healthy, others=STRESS)] * loaded],
        options=BalanceOptions(mode=Mode(parameters["mode"]), period_s=1.0, window_s=10.0),
        rate_per_s=RATE_PER_SERVER * count,
        end_s=parameters["end_s"],
        switches=parameters["switches"],
        seed=parameters["seed"],
    )


def measure(point: Point) -> Values:
    """Simulate."""
    return values(simulate(plan(point.parameters)))


def values(run: PoolRun) -> Values:
    """Connect times of the second half, what the loaded servers still get, and what deciding cost."""
    late = [one for one in run.connections if one.begun_s >= run.plan.end_s / 2]
    answered = sorted(one.connect_s for one in late if one.connect_s is not None)
    loaded = [number for number, server in enumerate(run.plan.servers) if server.others]
    last = [decisions[-1].ratios for decisions in run.decisions]
    share = statistics.fmean(sum(ratios[number] for number in loaded) for ratios in last)
    return {
        "connections": len(run.connections),
        "mean_ms": 1000 * statistics.fmean(answered),
        "p99_ms": 1000 * answered[int(0.99 * (len(answered) - 1))],
        "failed": sum(one.done_s is None for one in late if one.begun_s < run.plan.end_s - 5) / len(late),
        "loaded_share": share,
        "loaded_fair": len(loaded) / len(run.plan.servers),
        "weight_changes": run.weight_changes,
        "decide_ms": 1000 * statistics.median(run.decide_s),
        "shares": [[one.time_s, sum(one.ratios[number] for number in loaded)] for one in run.decisions[0][::5]],
    }


def _place(one: Record) -> tuple[int, int, str]:
    return one.parameters["servers"], one.parameters["switches"], one.parameters["mode"]


def _row(runs: Sequence[Record]) -> list[str]:
    servers, switches, mode = _place(runs[0])
    figures = {
        name: mean_of([one.result[name] for one in runs]).text(digits)
        for name, digits in (("connections", 0), ("mean_ms", 1), ("p99_ms", 0), ("loaded_share", 3), ("decide_ms", 2))
    }
    share = f"{figures['loaded_share']} of {runs[0].result['loaded_fair']:.3f}"
    cells = [figures["connections"], figures["mean_ms"], figures["p99_ms"], share, figures["decide_ms"]]
    return [f"{servers:,}", str(switches), TITLES[mode], *cells]


def _left(records: Sequence[Record], servers: int, mode: str, switches: int = 1) -> float:
    """The loaded servers' share at the end, in parts of what an equal split gives them; NaN where it was not run."""
    return mean_of(
        [
            one.result["loaded_share"] / one.result["loaded_fair"]
            for one in records
            if _place(one) == (servers, switches, mode)
        ]
    ).value


def _sizes(records: Sequence[Record]) -> list[int]:
    return sorted({one.parameters["servers"] for one in records if one.parameters["switches"] == 1})


def _settling(records: Sequence[Record]) -> str:
    """Say how far the loaded servers' share has fallen by size, and where it still falls at the end."""
    said: list[str] = []
    for mode in MODES[1:]:
        left = {size: _left(records, size, mode) for size in _sizes(records)}
        known = [f"{share:.2f} of {size:,}" for size, share in left.items() if not math.isnan(share)]
        if known:
            said.append(f"{mode} mode leaves {', '.join(known)}")
    if not said:
        return ""
    falling = sorted(
        {one.parameters["servers"] for one in records if one.parameters["mode"] != "fixed" and _still_falls(one)}
    )
    return (
        f"In parts of what an equal split gives them the loaded servers' share at the end, by the size of the pool: "
        f"{'; '.join(said)}. In both modes one server a period gives up part of its ratio, so that the periods to "
        "settle grow with the number of loaded servers, however clear the counts are; the algorithm's authors had "
        "three servers. "
        + (
            f"The share still falls at the end in pools of {', '.join(f'{size:,}' for size in falling)}."
            if falling
            else ""
        )
    ).strip()


def _still_falls(one: Record) -> bool:
    """Say whether the loaded servers' share fell clearly in the last quarter of a run."""
    shares = [share for _, share in one.result["shares"]]
    return shares[-1] < STILL * shares[len(shares) * 3 // 4]


def _evidence(records: Sequence[Record]) -> str:
    """Say so where production mode is behind in the smallest pool."""
    size = min(_sizes(records), default=0)
    paper, production = (_left(records, size, mode) for mode in MODES[1:])
    if not production > paper / STILL:
        return ""
    return (
        f"In the pool of {size:,} production mode takes less from the loaded than paper mode: it asks whether a "
        "difference is more than chance, which few SYNs do not show, and gives ratio back while a pool is quiet."
    )


def _shared(records: Sequence[Record]) -> str:
    """Say what it costs that several switches have a part of the evidence each."""
    said: list[str] = []
    for mode in MODES[1:]:
        left = {number: _left(records, SHARED, mode, number) for number in (1, *SWITCHES)}
        known = {number: share for number, share in left.items() if not math.isnan(share)}
        if len(known) > 1:
            shares = ", ".join(f"{share:.2f} behind {number}" for number, share in known.items())
            grows = list(known.values()) == sorted(known.values())
            order = "the more switches, the more" if grows else "in no order of their number"
            said.append(f"{mode} mode leaves {shares} ({order})")
    if not said:
        return ""
    return (
        "Switches that share a pool count only what passes through them, so that each has its part of the evidence; "
        f"they need not know of one another. Of the loaded servers' equal share {'; '.join(said)}."
    )


def report(records: Sequence[Record]) -> Report:
    """A row for each pool; repeated runs are one."""
    rows = [_row(runs) for runs in grouped(records, _place).values()]
    pools = grouped([one for one in records if one.parameters["mode"] == "production"], _place)
    goals: list[Goal] = []
    if pools:
        largest = max(pools, key=lambda place: place[0])
        took = mean_of([one.result["decide_ms"] for one in pools[largest]])
        text = f"deciding for {largest[0]:,} servers takes less than {DECIDED_MS:g} ms"
        goals.append(Goal(text, took.value < DECIDED_MS, f"{took.text()} ms"))
    return Report(
        tables=[
            Table(
                [
                    "servers",
                    "switches",
                    "mode",
                    "connections",
                    "connect, mean (ms)",
                    "p99 (ms)",
                    "share of the loaded",
                    "CPU to decide (ms)",
                ],
                rows,
            )
        ],
        goals=goals,
        text=[
            "A tenth of the servers (at least one) shares its CPU with `stress`. Connect times are of the run's second "
            "half, means with 95 % intervals where there are several runs. Every connection is simulated one by one; "
            "nothing is a fluid. Production mode has no second look here, which is on by default: this is what the "
            "controller's decisions come to alone; `sim-unlike` shows what the second look adds. Time to decide is CPU "
            "time of the algorithm alone, on the machine of the runs: reading and writing the switch is measured by "
            "`controller-cost`.",
            _settling(records),
            _evidence(records),
            _shared(records),
        ],
        summary={one.key: {k: v for k, v in one.result.items() if k != "shares"} for one in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """What the loaded servers get, of their fair share, against time; CPU to decide against size."""
    left, right = figure.subplots(1, 2)
    for one in records:
        if one.parameters["mode"] == "fixed" or one.parameters["switches"] > 1 or one.parameters["seed"] != SEEDS[0]:
            continue
        style = "-" if one.parameters["mode"] == "production" else ":"
        shares = one.result["shares"]
        left.plot(
            [moment for moment, _ in shares],
            [share / one.result["loaded_fair"] for _, share in shares],
            style,
            label=f"{one.parameters['servers']}, {TITLES[one.parameters['mode']]}",
        )
    left.set_xlabel("s (T = 1 s)")
    left.set_ylabel("loaded servers' share, in parts of an equal split")
    left.legend(fontsize="xx-small")
    for mode in MODES[1:]:
        runs = [one for one in records if one.parameters["mode"] == mode and one.parameters["switches"] == 1]
        sizes = sorted(grouped(runs, lambda one: one.parameters["servers"]).items())
        costs = [mean_of([one.result["decide_ms"] for one in members]).value for _, members in sizes]
        right.loglog([size for size, _ in sizes], costs, "o-", label=TITLES[mode])
    right.set_xlabel("servers")
    right.set_ylabel("CPU to decide, ms")
    right.legend(fontsize="small")
    for axes in (left, right):
        axes.grid(alpha=0.3)


EXPERIMENT = Experiment(
    name="sim-scale",
    title="R at scale, simulated",
    source="Asked for by this project: 1,000 servers, a million connections, several switches sharing a pool",
    about="Pools of 3 to 1,000 web servers with the demo's accept queues, at 5.6 requests/s a server for 180 "
    "s, T = 1 s "
    "and mT = 10 s; the pool of 30 also behind 2, 4 and 8 switches that each count and decide for themselves.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
