"""R where no lab reaches: up to 1,000 servers and a million connections, and several switches that share a pool."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Experiment, Goal, Point, Record, Report, Table, Values
from experiments.intervals import Mean, by_chance, mean_of
from experiments.ratios import course
from experiments.repetitions import how_often
from experiments.simulated import grouped
from experiments.switchload import load_sentence
from sim.pool import PoolPlan, PoolRun, ServerPlan, simulate
from sim.secondlook import SecondLook
from workload.load import HOGS

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
LOADED_SHARE = 0.1
END_S, GIVEN_UP_S = 180.0, 5.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to balance."""

    title: str
    mode: Mode
    connections_per_s: float
    """Simulated in a second of one core, about, for the estimate of the time left."""
    look: type[SecondLook] | None = None


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
"""From so many servers on a run is not cheap: fewer of them."""
DECIDED_MS = 100.0
CLEARLY = 0.95
"""A share that is more than so much of another one is not clearly below it."""
SWINGS = 0.05
"""A share whose standard deviation over the last third is above this goes to and fro."""
OF_THE_WAY = 0.1
"""The loaded servers' share has settled within this part of the way from an equal split to where it ends; it still
falls if it falls by more than this part in the last quarter of a run."""


def points(quick: bool) -> Sequence[Point]:
    """Every size in every mode, then several switches; with other arrivals again, large pools less often."""
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
    """A tenth of the servers (at least one) is loaded; T = 1 s, mT = 10 s, as in the demo."""
    count, variant = parameters["servers"], VARIANTS[parameters["variant"]]
    healthy = ServerPlan(work_s=WORK_S)
    loaded = max(1, round(count * LOADED_SHARE))
    return PoolPlan(
        servers=[*[healthy] * (count - loaded), *[replace(healthy, others=HOGS)] * loaded],
        options=BalanceOptions(mode=variant.mode, period_s=1.0, window_s=10.0),
        rate_per_s=RATE_PER_SERVER * count,
        end_s=parameters["end_s"],
        switches=parameters["switches"],
        look=variant.look,
        seed=parameters["seed"],
    )


def measure(point: Point) -> Values:
    """Simulate."""
    return values(simulate(plan(point.parameters)))


def values(run: PoolRun) -> Values:
    """Connect times of the second half, what the loaded servers still get and when that settled, what deciding cost.

    Their share is the mean over the switches, in parts of an equal split's.
    """
    late = [one for one in run.connections if one.begun_s >= run.plan.end_s / 2]
    answered = sorted(one.connect_s for one in late if one.connect_s is not None)
    loaded = [number for number, server in enumerate(run.plan.servers) if server.others]
    fair = len(loaded) / len(run.plan.servers)
    shares = [
        [
            decisions[0].time_s,
            statistics.fmean(sum(one.ratios[number] for number in loaded) for one in decisions) / fair,
        ]
        for decisions in zip(*run.decisions, strict=True)
    ]
    moments, parts = ([one[column] for one in shares] for column in (0, 1))
    seen = course(moments, parts)
    return {
        "connections": len(run.connections),
        "mean_ms": 1000 * statistics.fmean(answered),
        "p99_ms": 1000 * answered[int(0.99 * (len(answered) - 1))],
        "failed": sum(one.done_s is None for one in late if one.begun_s < run.plan.end_s - GIVEN_UP_S)
        / max(1, sum(one.begun_s < run.plan.end_s - GIVEN_UP_S for one in late)),
        "loaded_left": seen.level,
        "loaded_fair": fair,
        "settled_s": settled_s(moments, parts),
        "swing": seen.swing,
        "weight_changes": run.weight_changes,
        "decide_ms": 1000 * statistics.median(run.decide_s),
        "shares": shares[::5],
    }


def settled_s(times: Sequence[float], shares: Sequence[float]) -> float:
    """Return from when on a share that began at 1 stays near its mean over the last third; infinite if it never does.

    What falls a little and goes on falling has not settled: how near is a part of the way there.
    """
    way = 1 - course(times, shares).level
    return course(times, shares, near=OF_THE_WAY * way).settled_s if way > 0 else math.inf


Place = tuple[int, int, str]
"""Servers, switches, way to balance."""


def _place(one: Record) -> Place:
    return one.parameters["servers"], one.parameters["switches"], one.parameters["variant"]


def _row(runs: Sequence[Record]) -> list[str]:
    servers, switches, variant = _place(runs[0])
    figures = {
        name: mean_of([scale * one.result[name] for one in runs]).text(digits)
        for name, digits, scale in (
            ("connections", 0, 1),
            ("mean_ms", 1, 1),
            ("p99_ms", 0, 1),
            ("failed", 2, 100),
            ("loaded_left", 2, 1),
            ("swing", 2, 1),
            ("decide_ms", 2, 1),
        )
    }
    figures["failed"] += " %"
    settled = "-" if variant == FIXED else _settled(runs)
    swing, decide = figures.pop("swing"), figures.pop("decide_ms")
    return [f"{servers:,}", str(switches), VARIANTS[variant].title, *figures.values(), settled, swing, decide]


def _settled(runs: Sequence[Record]) -> str:
    """Return when the loaded servers' share settled, and in how many runs it did not."""
    known = [one.result["settled_s"] for one in runs if one.result["settled_s"] is not None]
    never = len(runs) - len(known)
    where = f" in {never} of {len(runs)}" if known else ""
    said = [mean_of(known).text(0)] if known else []
    return ", ".join([*said, *([f"not in {runs[0].parameters['end_s']:g} s{where}"] if never else [])])


Pools = Mapping[Place, Sequence[Record]]


def _left(pools: Pools, place: Place) -> Mean:
    """The loaded servers' share in the last third, in parts of an equal split's; NaN where it was not run."""
    return mean_of([one.result["loaded_left"] for one in pools.get(place, [])])


def _sizes(pools: Pools) -> list[int]:
    return sorted({servers for servers, switches, _ in pools if switches == 1})


def _settling(pools: Pools) -> str:
    """Say how far the loaded servers' share has fallen by size, when it settled, and where it still falls."""
    said: list[str] = []
    for variant in DECIDING:
        known = [
            f"{_left(pools, place).value:.2f} of {size:,} (settled: {_settled(pools[place])})"
            for size in _sizes(pools)
            if (place := (size, 1, variant)) in pools
        ]
        if known:
            said.append(f"{VARIANTS[variant].title} leaves {', '.join(known)}")
    if not said:
        return ""
    return (
        "In parts of what an equal split gives them the loaded servers' share in the last third, by the size of the "
        "pool, and from which second on it stays at that, to a tenth of the way there: "
        f"{'; '.join(said)}. In paper mode one server a period gives up part of its ratio: the more loaded servers, "
        "the more periods it takes, however clear the counts are; the algorithm's authors had three servers. In "
        "production mode all that stand out give at once." + _falling(pools)
    )


def _falling(pools: Pools) -> str:
    """Say in which mode and which pools the share still falls at the end, and how fast."""
    said: list[str] = []
    for variant in DECIDING:
        known = [
            f"{size:,} (by {_fall(pools[place]).text(2)})"
            for size in _sizes(pools)
            if (place := (size, 1, variant)) in pools and _still_falls(pools[place])
        ]
        if known:
            said.append(f"{VARIANTS[variant].title} in pools of {', '.join(known)}")
    return f" In the last quarter of the runs the share still falls: {'; '.join(said)}." if said else ""


def _fall(runs: Sequence[Record]) -> Mean:
    """How far the loaded servers' share falls in the last quarter of the runs: along the line through its samples."""
    falls: list[float] = []
    for one in runs:
        shares = one.result["shares"]
        moments, parts = zip(*shares[-max(2, len(shares) // 4) :], strict=True)
        falls.append(-statistics.linear_regression(moments, parts).slope * (moments[-1] - moments[0]))
    return mean_of(falls)


def _still_falls(runs: Sequence[Record]) -> bool:
    """Say whether a pool's share has not come to its end: it falls on, for what it has fallen, and not by chance."""
    fall, way = _fall(runs), 1 - mean_of([one.result["loaded_left"] for one in runs]).value
    return fall.value > max(0.0, OF_THE_WAY * way) and not fall.value <= fall.half


def _to_and_fro(pools: Pools) -> str:
    """Say where the loaded servers' share neither settles nor falls."""
    said = [
        f"{swing.text(2)} ({VARIANTS[variant].title}, {servers:,} servers)"
        for (servers, switches, variant), runs in pools.items()
        if switches == 1
        and variant in (FIRST, PRODUCTION)
        and (swing := mean_of([one.result["swing"] for one in runs])).value > SWINGS
        and any(one.result["settled_s"] is None for one in runs)
        and not _still_falls(runs)
    ]
    if not said:
        return ""
    return (
        "Where the share does not settle it goes to and fro, by a standard deviation over the last third of "
        f"{', '.join(said)}: production mode gives ratio back while the pool is quiet, and takes it again when it "
        "is not."
    )


def _against_paper(pools: Pools) -> str:
    """Say in which pools production mode takes less from the loaded than paper mode, and in which more."""
    said: list[str] = []
    for name in (FIRST, PRODUCTION):
        left = {
            size: (_left(pools, (size, 1, name)).value, _left(pools, (size, 1, PAPER)).value) for size in _sizes(pools)
        }
        sides = {
            "less": [size for size, (ours, papers) in left.items() if papers < CLEARLY * ours],
            "more": [size for size, (ours, papers) in left.items() if ours < CLEARLY * papers],
        }
        known = [
            f"{side} in pools of {', '.join(f'{one:,}' for one in sizes)}" for side, sizes in sides.items() if sizes
        ]
        if known:
            said.append(f"{VARIANTS[name].title} takes {' and '.join(known)}")
    return f"From the loaded, compared with paper mode, {'; '.join(said)}." if said else ""


def _second_look(pools: Pools) -> str:
    """Say what the second look adds to production mode's decisions, pool by pool."""
    said: list[str] = []
    for size in _sizes(pools):
        without, looking = (pools.get((size, 1, name), []) for name in (FIRST, PRODUCTION))
        if without and looking:
            times = [mean_of([one.result["mean_ms"] for one in runs]) for runs in (without, looking)]
            lost = [mean_of([100 * one.result["failed"] for one in runs]) for runs in (without, looking)]
            said.append(
                f"{times[0].text()} to {times[1].text()} ms and {lost[0].text(2)} to {lost[1].text(2)} % (pool of "
                f"{size:,})"
            )
    if not said:
        return ""
    return (
        "With the second look, which production mode has by default, the mean connect time and the requests given up "
        f"go from {'; from '.join(said)}."
    )


def _shared(pools: Pools) -> str:
    """Say what it costs that several switches have a part of the evidence each."""
    said: list[str] = []
    for variant in DECIDING:
        known = [number for number in (1, *SWITCHES) if (SHARED, number, variant) in pools]
        if len(known) < 2:
            continue
        left = [_left(pools, (SHARED, number, variant)) for number in known]
        shares = ", ".join(
            f"{share.value:.2f} behind {number} (settled: {_settled(pools[SHARED, number, variant])})"
            for number, share in zip(known, left, strict=True)
        )
        said.append(f"{VARIANTS[variant].title} leaves {shares}: {_order(left)}")
    if not said:
        return ""
    return (
        "Switches that share a pool count only what passes through them, so that each has its part of the evidence; "
        f"they need not know of one another. Of the loaded servers' equal share in the last third {'; '.join(said)}."
    )


def _order(left: Sequence[Mean]) -> str:
    """Say how means by the number of switches follow one another, where they differ by more than chance."""
    values = [one.value for one in left]
    ends = [pick(left, key=lambda one: one.value) for pick in (min, max)]
    if by_chance(*ends):
        return "no further apart than chance"
    return "the more switches, the more" if values == sorted(values) else "in no order of their number"


def report(records: Sequence[Record]) -> Report:
    """A row for each pool; repeated runs are one."""
    pools = grouped(records, _place)
    goals: list[Goal] = []
    if deciding := [place for place in pools if place[2] == PRODUCTION]:
        largest = max(deciding)
        took = mean_of([one.result["decide_ms"] for one in pools[largest]])
        text = f"deciding for {largest[0]:,} servers takes less than {DECIDED_MS:g} ms"
        goals.append(Goal(text, took.value < DECIDED_MS, f"{took.text()} ms"))
    heading = [
        "servers",
        "switches",
        "mode",
        "connections",
        "connect, mean (ms)",
        "p99 (ms)",
        "given up",
        "loaded servers' share in the last third, of an equal split",
        "settled (s)",
        "its swing then",
        "CPU to decide (ms)",
    ]
    return Report(
        tables=[Table(heading, [_row(runs) for runs in pools.values()])],
        goals=goals,
        text=[
            "A tenth of the servers (at least one) shares its CPU with `stress`. Connect times are of the run's second "
            f"half and of the requests that were answered; what was given up after {GIVEN_UP_S:g} s is in a column of "
            f"its own and not in them. {how_often(pools.values())}. "
            "Every connection is simulated one by one; nothing is a fluid. Time to decide is CPU time of the algorithm "
            "alone, on the machine of the runs: reading and writing the switch is measured by `controller-cost`. "
            f"{load_sentence(records)}",
            _settling(pools),
            _to_and_fro(pools),
            _against_paper(pools),
            _second_look(pools),
            _shared(pools),
        ],
        summary={one.key: {k: v for k, v in one.result.items() if k != "shares"} for one in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """What the loaded servers get, of their fair share, against time; CPU to decide against size."""
    left, right = figure.subplots(1, 2)
    labelled = set[int]()
    styles = {PAPER: ":", FIRST: "--", PRODUCTION: "-"}
    sizes = sorted({one.parameters["servers"] for one in records})
    for one in records:
        servers, switches, variant = _place(one)
        if variant == FIXED or switches > 1 or one.parameters["seed"] != SEEDS[0]:
            continue
        left.plot(
            [moment for moment, _ in one.result["shares"]],
            [share for _, share in one.result["shares"]],
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
        runs = [one for one in records if one.parameters["variant"] == name and one.parameters["switches"] == 1]
        by_size = sorted(grouped(runs, lambda one: one.parameters["servers"]).items())
        costs = [mean_of([one.result["decide_ms"] for one in members]).value for _, members in by_size]
        right.loglog([size for size, _ in by_size], costs, "o-", label=VARIANTS[name].title)
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
