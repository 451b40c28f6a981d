"""What paper 000 does not try, in the lab: ten servers of unlike capacity, and requests of unlike cost."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from experiments import sim_unlike
from experiments.experiment import Experiment, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, by_chance, chance, mean_of
from experiments.repetitions import how_often, set_up
from experiments.simulated import grouped
from experiments.switchload import load_sentence, switch_sentence
from experiments.variants import (
    ALTERNATIVES,
    LEAST,
    NGINX,
    PERIOD_S,
    PRODUCTION,
    ROUND_ROBIN,
    VARIANTS,
    WINDOW_S,
    Variant,
)
from experiments.webpool import limit_clause, pool, total
from topo.apache import HEAVY, HEAVY_BYTES, WORK, WORK_BYTES
from workload.load import Load
from workload.plan import PoolPlan, pool_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPACITY, COST = "ten servers of unlike capacity", "requests of unlike cost"
CASES = (CAPACITY, COST)
CPUS = {CAPACITY: (0.0125,) * 4 + (0.025,) * 3 + (0.05,) * 3, COST: (0.025,) * 10}
"""In the proportions of `sim-unlike`, and so little that ten servers leave the machine most of a core."""
RATES_PER_S = {CAPACITY: 80.0, COST: 32.0}
"""At some 3 ms of CPU time for a request both would ask for about 0.8 of what there is: no overload."""
SIMULATED = {CAPACITY: sim_unlike.SMALL, COST: sim_unlike.COST}
"""The same kind of pool in `sim-unlike`, which has a load of its own."""
HEAVY_SHARE, HEAVY_FACTOR = 0.05, HEAVY_BYTES / WORK_BYTES
"""Of the requests of unlike cost.  A heavy one costs 21 times as much: half of the work is in a twentieth of them."""
COMPARED = tuple(one for one in VARIANTS if one != ROUND_ROBIN.name)
QUICK = (PRODUCTION.name, LEAST.name, NGINX.name)
REPETITIONS = 3
LOAD_S, QUICK_LOAD_S = 60.0, 10.0
GIVEN_UP_S = 5.0
FEW_LOST = 0.01
COST_REQUESTS = 20
"""Requests that are made of a server without load, to see what one costs."""
SEED = 1


def points(quick: bool) -> Sequence[Point]:
    """Every way to balance in both cases; repetitions go round: all meet the same moods of the machine."""
    seconds = QUICK_LOAD_S if quick else LOAD_S
    return [
        Point(
            key=key_of(case, name, seconds, number),
            parameters={
                "case": case,
                "variant": name,
                "rate_per_s": RATES_PER_S[case],
                "seconds": seconds,
                "cpus": list(CPUS[case]),
                "heavy_share": HEAVY_SHARE if case == COST else 0.0,
            },
            seconds=seconds + 18,
            group=f"{case}/{name}/{number}",
            lab_run=f"r-unlike/{key_of(case, name, seconds, number)}",
        )
        for number in range(1 if quick else REPETITIONS)
        for case in CASES
        for name in (QUICK if quick else COMPARED)
    ]


def key_of(case: str, name: str, seconds: float, number: int) -> str:
    """Return the key of a run."""
    return f"{case}, {name}, {seconds:g} s #{number}"


def asked_for(count: int, heavy_share: float) -> list[str]:
    """Return what `count` requests ask for: that share of heavy ones, in an order drawn once for everybody."""
    heavy = round(count * heavy_share)
    paths = [HEAVY] * heavy + [WORK] * (count - heavy)
    random.Random(SEED).shuffle(paths)
    return paths


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a fresh lab with ten servers: ratios and queues begin anew."""
    case, name, _ = group.split("/")
    plan = pool_of(CPUS[case])
    with pool(VARIANTS[name].open(say, plan)) as one:
        cost_s = one.lab.request_cost_s(plan.names[-1], WORK, COST_REQUESTS)

        def measure(point: Point) -> Values:
            load = Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
            paths = asked_for(load.connections, point.parameters["heavy_share"])
            return {**one.run(load, paths=paths), "cost_ms": 1000 * cost_s, "asked": _asked(plan, load, paths, cost_s)}

        yield measure


def _asked(plan: PoolPlan, load: Load, paths: Sequence[str], cost_s: float) -> float:
    """The share of all servers' CPU time that the load asks for, by what a request costs without load."""
    each = cost_s * sum(HEAVY_FACTOR if path == HEAVY else 1.0 for path in paths) / len(paths)
    return load.rate_per_s * each / sum(plan.cpus)


def figure_of(records: Sequence[Record], case: str, name: str, kind: str, figure: str) -> Mean:
    """Return a figure (`mean_ms`, `p99_ms`) of the connect or transfer times of a variant in a case."""
    return mean_of([one.result[kind][figure] for one in _of(records, case, name)])


def _of(records: Sequence[Record], case: str, name: str) -> list[Record]:
    return [one for one in records if (one.parameters["case"], one.parameters["variant"]) == (case, name)]


def _asked_for(records: Sequence[Record], case: str, name: str) -> Mean:
    """Return what a variant was asked for in a case, in percent of the servers' CPU time."""
    return mean_of([100 * one.result["asked"] for one in _of(records, case, name)])


def _table(records: Sequence[Record], case: str) -> Table:
    rows: list[list[str]] = []
    for name in COMPARED:
        runs = _of(records, case, name)
        if not runs:
            continue
        columns = {"mean_ms": 0, "p99_ms": 0, "median_ms": 2}
        transfer = [figure_of(records, case, name, "transfer", figure).text(n) for figure, n in columns.items()]
        connect = "-" if VARIANTS[name].proxy else figure_of(records, case, name, "connect", "mean_ms").text(0)
        lost = mean_of([100 * one.result["transfer"]["given_up"] / one.result["transfer"]["begun"] for one in runs])
        cost = mean_of([one.result["cost_ms"] for one in runs]).text(2)
        asked = f"{_asked_for(records, case, name).text(0)} %"
        rows.append([VARIANTS[name].title, *transfer, connect, f"{lost.text(2)} %", cost, asked])
    heading = ["whole transfer, mean (ms)", "p99", "median", "connect, mean (ms)", "given up"]
    return Table([case, *heading, "CPU time of a request (ms)", "asked for"], rows)


def _known(records: Sequence[Record], case: str) -> list[Variant]:
    """Return the alternatives that were run in a case."""
    return [one for one in ALTERNATIVES if _of(records, case, one.name)]


def _best(records: Sequence[Record], case: str, figure: str) -> tuple[Variant, Mean] | None:
    """Return the alternative with the least of a figure of the whole transfer in a case; None without any."""
    means = [(one, figure_of(records, case, one.name, "transfer", figure)) for one in _known(records, case)]
    return min(means, key=lambda one: one[1].value, default=None)


def _at_or_below(records: Sequence[Record], case: str, figure: str, what: str) -> Goal:
    ours, best = figure_of(records, case, PRODUCTION.name, "transfer", figure), _best(records, case, figure)
    others = " and ".join(one.title for one in _known(records, case)) or "every alternative"
    text = f"{case}: production mode at or below {others}, {what} of the whole transfer"
    if not ours.runs or best is None:
        return Goal(text, None, "-")
    seen = f"{ours.text(0)} ms against {best[1].text(0)} ms of {best[0].title}{chance(ours, best[1])}"
    loads = ", not at equal loads" if best[0] in _loaded_otherwise(records, case) else ""
    return Goal(text, ours.value <= best[1].value, seen + loads)


def _loaded_otherwise(records: Sequence[Record], case: str) -> list[Variant]:
    """Return the alternatives that were asked for another part of the servers' CPU time than production mode."""
    ours = _asked_for(records, case, PRODUCTION.name)
    theirs = {one: _asked_for(records, case, one.name) for one in _known(records, case)}
    return [one for one, mean in theirs.items() if mean.value != ours.value and not by_chance(ours, mean)]


def report(records: Sequence[Record]) -> Report:
    """A table a case, and whether production mode is at or below the alternatives."""
    cases = [case for case in CASES if any(one.parameters["case"] == case for one in records)]
    costs = [one.result["cost_ms"] for one in records]
    goals = [
        _at_or_below(records, case, figure, what)
        for case in cases
        for figure, what in (("mean_ms", "mean"), ("p99_ms", "p99"))
    ]
    return Report(
        tables=[_table(records, case) for case in cases],
        goals=goals,
        text=[
            f"{how_often(grouped(records, set_up).values())}, from equal ratios and empty queues on; "
            f"{limit_clause(records, GIVEN_UP_S)}. "
            f"T = {PERIOD_S:g} s, window {WINDOW_S:g} s. Nobody tells the balancer who is large. A request is for a "
            f"text that Apache compresses: {min(costs):.1f} to {max(costs):.1f} ms of CPU time without load. Unlike "
            "capacity: four servers with 0.0125, three with 0.025, three with 0.05 of a CPU. Unlike cost: ten with "
            "0.025, one request in 20 is for a text 21 times as long. What a request costs is measured before the "
            f"load: CPU time of a server's processes, a mean of {COST_REQUESTS} requests that are made on the server "
            "itself. Asked for, of all servers' CPU time, is the load at that cost.",
            *(_loads(records, case) for case in cases),
            *(_overload(records, case) for case in cases),
            *(_behind(records, case) for case in cases),
            f"{switch_sentence(records)} {load_sentence(records)}",
        ],
        summary={one.key: {kind: one.result[kind] for kind in ("connect", "transfer")} for one in records},
    )


def _loads(records: Sequence[Record], case: str) -> str:
    """Say so where production mode was not asked for the same as those that it is held against."""
    others = _loaded_otherwise(records, case)
    if not others or not _of(records, case, PRODUCTION.name):
        return ""
    said = [f"{_asked_for(records, case, one.name).text(0)} % with {one.title}" for one in others]
    return (
        f"{case[0].upper()}{case[1:]}: the loads that are compared are not equal. Asked for are "
        f"{_asked_for(records, case, PRODUCTION.name).text(0)} % with production mode, {', '.join(said)}. The requests "
        "are the same, and those by which the cost is measured do not pass what balances: why it differs is not known."
    )


def _overload(records: Sequence[Record], case: str) -> str:
    """Say so where a case asks for more than there is."""
    shares = {VARIANTS[name].title: _asked_for(records, case, name) for name in COMPARED}
    over = [f"{share.text(0)} % with {title}" for title, share in shares.items() if share.value > 100]
    if not over:
        return ""
    seconds = max(one.parameters["seconds"] for one in records if one.parameters["case"] == case)
    return (
        f"The case of {case} asks for more CPU time than there is ({', '.join(over)}): it is an overload. Queues grow "
        f"as long as the load lasts, whoever balances, and what is compared is how {seconds:g} s of it are shared out. "
        f"{_by_simulation(records, case)}"
    )


def _by_simulation(records: Sequence[Record], case: str) -> str:
    """Say at which load `sim-unlike` has such a pool."""
    here = [_asked_for(records, case, name).value for name in COMPARED if _of(records, case, name)]
    asked = " to ".join(dict.fromkeys(f"{share:.0f}" for share in (min(here), max(here))))
    simulated = 100 * sim_unlike.asked(SIMULATED[case])
    return (
        f"`sim-unlike` has the same kind of pool by simulation, at {simulated:.0f} % of its CPU time instead of "
        f"{asked} %."
    )


def _behind(records: Sequence[Record], case: str) -> str:
    """Say, where production mode's mean is above the best alternative's, what each of them had to go by."""
    ours, best = figure_of(records, case, PRODUCTION.name, "transfer", "mean_ms"), _best(records, case, "mean_ms")
    if best is None or not ours.value > best[1].value:
        return ""
    runs = _of(records, case, PRODUCTION.name)
    syns = sum(total(one.result["servers"], "syn") for one in runs)
    lost = 1 - sum(total(one.result["servers"], "synack") for one in runs) / syns
    sees = (
        "a proxy sees the open connections of all servers, the second look those of two, drawn by weight"
        if best[0].proxy
        else "it sees nothing of the servers"
    )
    reason = "hardly anything for R to tell the servers apart by" if lost < FEW_LOST else "which R had to go by"
    return (
        f"{case[0].upper()}{case[1:]}: the best alternative is {best[0].title}; {sees}. Of production mode's SYNs "
        f"{lost:.1%} were lost, {reason}. {_ratios(runs, case)}{_by_simulation(records, case)}"
    )


def _ratios(runs: Sequence[Record], case: str) -> str:
    """Say where the ratios of the smallest and of the largest servers ended, beside their shares of the CPU time."""
    ends = [one.result["ratios"][-1][1:] for one in runs if one.result.get("ratios")]
    if not ends:
        return ""
    cpus = CPUS[case]
    if min(cpus) == max(cpus):
        least, most = min(map(min, ends)), max(map(max, ends))
        return f"The ratios, of servers that are alike, ended between {least:.2f} and {most:.2f}. "
    small, large = (
        mean_of([ratio for ratios in ends for ratio, cpu in zip(ratios, cpus, strict=True) if cpu == size]).value
        for size in (min(cpus), max(cpus))
    )
    return (
        f"A smallest server's ratio ended at {small:.2f} in the mean, a largest one's at {large:.2f}; of the CPU time "
        f"they have {min(cpus) / sum(cpus):.2f} and {max(cpus) / sum(cpus):.2f}. "
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Mean and p99 of the whole transfers, a bar for each way to balance."""
    for axes, case in zip(figure.subplots(1, 2, sharey=True), CASES, strict=True):
        names = [name for name in COMPARED if _of(records, case, name)]
        for place_at, name in enumerate(names):
            mean, p99 = (figure_of(records, case, name, "transfer", one) for one in ("mean_ms", "p99_ms"))
            colour = f"C{COMPARED.index(name)}"
            axes.bar([place_at], [mean.value], yerr=[mean.bar], color=colour, label=VARIANTS[name].title)
            axes.plot([place_at], [p99.value], "_", color="black", ms=12)
        axes.set_title(case, fontsize="small")
        axes.set_xticks([])
        axes.set_yscale("log")
        axes.grid(alpha=0.3, axis="y")
    figure.axes[0].set_ylabel("whole transfer (ms): mean, and p99 as a dash")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize="x-small")


EXPERIMENT = Experiment(
    name="r-unlike",
    title="Servers and requests that are not alike",
    source="Beyond paper 000",
    about="Ten Apache servers behind one switch, and today's alternatives in its place, with the same servers and "
    "requests; httperf with exponential intervals. `sim-unlike` has the same kinds of pools by simulation, with loads "
    "of their own.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
