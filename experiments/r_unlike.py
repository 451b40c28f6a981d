"""Two cases that Ohta & Andou do not measure, in the lab: ten servers of unequal capacity, and requests of unequal
cost."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from experiments.experiment import Experiment, Figure, Goal, Measure, Point, Record, Report, Say, Table, Values
from experiments.intervals import Mean, by_chance, difference, mean_of, surely_above
from experiments.records import by_number, matching
from experiments.variants import ALTERNATIVES, LEAST, NGINX, PRODUCTION, ROUND_ROBIN, VARIANTS, Variant
from experiments.webpool import pool
from topo.labs.webservers import HEAVY, HEAVY_BYTES, WORK, WORK_BYTES
from topo.plan.load import Load
from topo.plan.network import PoolPlan, pool_of

CAPACITY, COST = "ten servers of unlike capacity", "requests of unlike cost"
CASES = (CAPACITY, COST)
CPUS = {CAPACITY: (0.0125,) * 4 + (0.025,) * 3 + (0.05,) * 3, COST: (0.025,) * 10}
"""CPU limit of each server as a share of a core, in the proportions of the experiment `sim-unlike`. The limits are so
small that the ten servers together leave most of a core free."""
RATES_PER_S = {CAPACITY: 80.0, COST: 32.0}
"""Requests per second. At about 3 ms of CPU time per request, the loads need about 0.8 of the servers' CPU time, so no
server is overloaded."""
HEAVY_SHARE, HEAVY_FACTOR = 0.05, HEAVY_BYTES / WORK_BYTES
"""Share and cost factor of heavy requests: a heavy request costs 21 times as much, so that a twentieth of the requests
causes half of the work."""
COMPARED = tuple(name for name in VARIANTS if name != ROUND_ROBIN.name)
QUICK = (PRODUCTION.name, LEAST.name, NGINX.name)
REPETITIONS = 3
LOAD_S, QUICK_LOAD_S = 60.0, 20.0
GIVEN_UP_S = 5.0
COST_REQUESTS = 20
"""Number of requests to an idle server, which measure the CPU time of a request on an otherwise idle machine."""
SEED = 1


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: the variants of COMPARED (quick form: of QUICK) in both cases. Repetitions are
    interleaved, so that a slow change of the machine's speed affects all variants alike."""
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
        for number in range(REPETITIONS)
        for case in CASES
        for name in (QUICK if quick else COMPARED)
    ]


def key_of(case: str, name: str, seconds: float, number: int) -> str:
    """Return the key (permanent name) of a run."""
    return f"{case}, {name}, {seconds:g} s #{number}"


def asked_for(count: int, heavy_share: float) -> list[str]:
    """Return the paths of `count` requests, of which `heavy_share` are heavy, in a random order that is the same for
    all variants."""
    heavy = round(count * heavy_share)
    paths = [HEAVY] * heavy + [WORK] * (count - heavy)
    random.Random(SEED).shuffle(paths)
    return paths


@contextmanager
def place(group: str, say: Say) -> Generator[Measure]:
    """Open a new lab with ten servers, and yield the measuring function. The lab is new so that no ratios and queues
    remain from earlier runs."""
    case, name, _ = group.split("/")
    plan = pool_of(CPUS[case])
    with pool(VARIANTS[name].open(say, plan)) as web_pool:
        idle_s = web_pool.lab.request_cost_s(plan.names[-1], WORK, COST_REQUESTS)

        def measure(point: Point) -> Values:
            load = Load(point.parameters["rate_per_s"], point.parameters["seconds"], GIVEN_UP_S)
            paths = asked_for(load.connections, point.parameters["heavy_share"])
            before_s = web_pool.lab.used_s()
            run = web_pool.run(load, paths=paths)
            used_s = web_pool.lab.used_s() - before_s
            return {**run, **costs(plan, load, paths, run["httperf"], used_s), "idle_ms": 1000 * idle_s}

        yield measure


def costs(plan: PoolPlan, load: Load, paths: Sequence[str], httperf: Values, used_s: float) -> dict[str, float]:
    """Return the CPU time of a request that is not heavy (`cost_ms`), and the share of all servers' CPU time that the
    load used (`used`).

    ``used_s``: CPU seconds of all servers. The cost is measured under load, because it is then the same for all
    variants. Without load, a request took a fifth more CPU time with a proxy than with sluice, because sluice's
    controller keeps the machine busy.
    """
    units = sum(HEAVY_FACTOR if path == HEAVY else 1.0 for path in paths) * httperf["replies"] / httperf["connections"]
    return {"cost_ms": 1000 * used_s / max(1.0, units), "used": used_s / (load.seconds * sum(plan.cpus))}


def figure_of(records: Sequence[Record], case: str, name: str, kind: str, figure: str) -> Mean:
    """Return the mean over runs of `figure` (`mean_ms` or `p99_ms`) of the connect or transfer times (`kind`) for a
    variant in a case."""
    return mean_of([record.result[kind][figure] for record in matching(records, case=case, variant=name)])


def _used(records: Sequence[Record], case: str, name: str) -> Mean:
    """Return the CPU time that a variant's load used in a case, in percent of the CPU time of all servers.

    NaN for old runs without this figure, whose `cost_ms` was measured without load.
    """
    runs = matching(records, case=case, variant=name)
    return mean_of([100 * record.result["used"] for record in runs if "used" in record.result])


def _table(records: Sequence[Record], case: str) -> Table:
    rows: list[list[str]] = []
    for name in COMPARED:
        runs = matching(records, case=case, variant=name)
        if not runs:
            continue
        transfer = [figure_of(records, case, name, "transfer", figure).text(0) for figure in ("mean_ms", "p99_ms")]
        lost = mean_of(
            [100 * record.result["transfer"]["given_up"] / record.result["transfer"]["begun"] for record in runs]
        )
        cost = mean_of([record.result["cost_ms"] for record in runs if "used" in record.result]).text(2)
        idle = mean_of([record.result.get("idle_ms", record.result["cost_ms"]) for record in runs]).text(2)
        taken = _used(records, case, name)
        used = f"{taken.text(0)} %" if taken.runs else "-"
        rows.append([VARIANTS[name].title, *transfer, f"{lost.text(2)} %", cost, idle, used])
    heading = ["whole transfer, mean (ms)", "p99", "given up"]
    return Table([case, *heading, "CPU time of a request (ms)", "without load", "CPU time used"], rows)


def _known(records: Sequence[Record], case: str) -> list[Variant]:
    """Return the alternatives to sluice that were run in a case."""
    return [variant for variant in ALTERNATIVES if matching(records, case=case, variant=variant.name)]


def _best(records: Sequence[Record], case: str, figure: str) -> tuple[Variant, Mean] | None:
    """Return the alternative to sluice with the lowest `figure` of the transfer time in a case, and that figure; None
    if no alternative was run."""
    means = [(variant, figure_of(records, case, variant.name, "transfer", figure)) for variant in _known(records, case)]
    return min(means, key=lambda entry: entry[1].value, default=None)


def _at_or_below(records: Sequence[Record], case: str, figure: str, what: str) -> Goal:
    ours, best = figure_of(records, case, PRODUCTION.name, "transfer", figure), _best(records, case, figure)
    known = len(_known(records, case)) or "any"
    text = f"{case}: production mode surely above none of {known} alternatives, {what} of transfers"
    if not ours.runs or best is None:
        return Goal(text, None, "-")
    mine, others_runs = (
        by_number(matching(records, case=case, variant=name), "transfer", figure)
        for name in (PRODUCTION.name, best[0].name)
    )
    gap = difference(mine, others_runs)
    seen = f"{ours.text(0)} ms against {best[1].text(0)} ms of {best[0].title}, by pairs {gap.signed(0)} ms"
    loads = ", not at equal loads" if best[0] in _loaded_otherwise(records, case) else ""
    return Goal(text, not surely_above(gap), seen + loads)


def _loaded_otherwise(records: Sequence[Record], case: str) -> list[Variant]:
    """Return the alternatives whose load used another share of the servers' CPU time than the load of production
    mode."""
    ours = _used(records, case, PRODUCTION.name)
    theirs = {variant: _used(records, case, variant.name) for variant in _known(records, case)}
    known = {variant: mean for variant, mean in theirs.items() if mean.runs and ours.runs}
    return [variant for variant, mean in known.items() if mean.value != ours.value and not by_chance(ours, mean)]


def report(records: Sequence[Record]) -> Report:
    """Report a table for each case, and whether production mode is at or below the alternatives."""
    cases = [case for case in CASES if any(record.parameters["case"] == case for record in records)]
    goals = [
        _at_or_below(records, case, figure, what)
        for case in cases
        for figure, what in (("mean_ms", "mean"), ("p99_ms", "p99"))
    ]
    return Report(
        tables=[_table(records, case) for case in cases],
        goals=goals,
        summary={record.key: {kind: record.result[kind] for kind in ("connect", "transfer")} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw mean and p99 of the transfer times, a bar for each variant."""
    for axes, case in zip(figure.subplots(1, 2, sharey=True), CASES, strict=True):
        names = [name for name in COMPARED if matching(records, case=case, variant=name)]
        for place_at, name in enumerate(names):
            mean, p99 = (figure_of(records, case, name, "transfer", quantity) for quantity in ("mean_ms", "p99_ms"))
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
    source="Beyond Ohta & Andou",
    about="Ten servers (4 x 0.0125, 3 x 0.025, 3 x 0.05 of a CPU), or ten alike where each 20th request costs "
    "21-fold. *Used* is the share of all servers' CPU time; pairs are runs of one number.",
    points=points,
    place=place,
    report=report,
    draw=draw,
    needs_root=True,
)
