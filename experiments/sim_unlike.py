"""Two cases that Ohta & Andou do not measure, simulated: ten servers of unequal capacity, and requests of unequal
cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.balance import BalanceOptions, Mode

from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report, Table, Values
from experiments.intervals import Mean, difference, mean_of, surely_above
from experiments.records import by_number, matching
from experiments.simpool import times_between
from sim.leastconnections import LeastConnections
from sim.pool import PoolPlan, PoolRun, ServerPlan, simulate
from sim.secondlook import SecondLook, TwoLooks

GIVEN_UP_S = 5.0
CAPACITY, COST, SMALL = "ten servers of unlike capacity", "requests of unlike cost", "as small as the lab's"
WORK_S = {CAPACITY: 2e-3, COST: 2e-3, SMALL: 2.9e-3}
CPUS = {
    CAPACITY: (0.05,) * 4 + (0.1,) * 3 + (0.2,) * 3,
    COST: (0.1,) * 10,
    SMALL: (0.0125,) * 4 + (0.025,) * 3 + (0.05,) * 3,
}
RATES_PER_S = {CAPACITY: 385.0, COST: 200.0, SMALL: 80.0}
HEAVY_SHARE, HEAVY_FACTOR = 0.05, 21.0
"""Share and cost factor of heavy requests: a twentieth of the requests causes half of the work."""


def asked(case: str) -> float:
    """Return the share of the servers' CPU time that a case's load needs."""
    heavy_share = _heavy_share(case)
    each_s = WORK_S[case] * (1 + heavy_share * (HEAVY_FACTOR - 1))
    return RATES_PER_S[case] * each_s / sum(CPUS[case])


def _heavy_share(case: str) -> float:
    return HEAVY_SHARE if case == COST else 0.0


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of load balancing that is simulated."""

    mode: Mode
    second_look: type[SecondLook] | None = None
    capacity_configured: bool = False
    """Whether the servers' true capacities are configured, instead of equal capacities."""


EQUAL, PAPER, WITHOUT = "equal split", "R, paper mode", "R, production mode without the second look"
PRODUCTION, LEAST = "R, production mode", "least connections of all, as a proxy"
TWO = "R, production mode, two looks"
TOLD = "R, production mode, told the capacities"
VARIANTS = {
    EQUAL: Variant(Mode.FIXED),
    PAPER: Variant(Mode.PAPER),
    WITHOUT: Variant(Mode.PRODUCTION),
    TWO: Variant(Mode.PRODUCTION, TwoLooks),
    PRODUCTION: Variant(Mode.PRODUCTION, SecondLook),
    TOLD: Variant(Mode.PRODUCTION, SecondLook, capacity_configured=True),
    LEAST: Variant(Mode.FIXED, LeastConnections),
}
SEEDS, QUICK_SEEDS = (1, 2, 3, 4, 5), (1, 2, 3)
CONNECTIONS_PER_S = 20_000.0
"""Approximate number of connections that are simulated per second of computing, to estimate the time left."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: each variant in each case, except the variants with configured capacities in the
    case COST, in which all servers have the same capacity."""
    end_s = 60.0 if quick else 300.0
    return [
        Point(
            f"{case}, {variant}, {end_s:g} s #{seed}",
            {"case": case, "variant": variant, "end_s": end_s, "seed": seed},
            RATES_PER_S[case] * end_s / CONNECTIONS_PER_S,
        )
        for case in CPUS
        for variant, choice in VARIANTS.items()
        for seed in (QUICK_SEEDS if quick else SEEDS)
        if not (choice.capacity_configured and case == COST)
    ]


def plan(parameters: Mapping[str, Any]) -> PoolPlan:
    """Return the simulation's plan. The balancer is configured with equal capacities, unless the variant configures the
    true capacities."""
    case, variant = parameters["case"], VARIANTS[parameters["variant"]]
    smallest = min(CPUS[case])
    return PoolPlan(
        servers=[
            ServerPlan(
                cpus=cpus,
                work_s=WORK_S[case],
                capacity=cpus / smallest if variant.capacity_configured else 1.0,
            )
            for cpus in CPUS[case]
        ],
        options=BalanceOptions(mode=variant.mode, period_s=1.0, window_s=10.0),
        rate_per_s=RATES_PER_S[case],
        end_s=parameters["end_s"],
        timeout_s=GIVEN_UP_S,
        heavy_share=_heavy_share(case),
        heavy_factor=HEAVY_FACTOR,
        second_look=variant.second_look,
        seed=parameters["seed"],
    )


def measure(point: Point) -> Values:
    """Simulate a point, and return the figures of the run."""
    return values(simulate(plan(point.parameters)))


def values(run: PoolRun) -> Values:
    """Return connect and transfer times of the connections that begin in the second half of the run, and the servers'
    final ratios. Connections that begin in the last GIVEN_UP_S seconds are left out, because the run ends before their
    outcome is certain."""
    start, end = run.plan.end_s / 2, run.plan.end_s - GIVEN_UP_S
    return {
        **times_between(run, start, end),
        "ratios": list(run.decisions[0][-1].ratios.values()),
    }


def _mean(records: Sequence[Record], figure: str) -> Mean:
    return mean_of([record.result["transfer"][figure] for record in records])


def _row(variant: str, runs: Sequence[Record]) -> list[str]:
    cells = [_mean(runs, figure).text(0) for figure in ("mean_ms", "p99_ms")]
    given_up = mean_of(
        [100 * record.result["transfer"]["given_up"] / record.result["transfer"]["begun"] for record in runs]
    )
    return [variant, *cells, f"{given_up.text(2)} %"]


def _not_above(case: str, known: Mapping[str, Sequence[Record]], figure: str, what: str) -> Goal | None:
    """Return the goal that production mode is at or below the best other variant that is configured with equal
    capacities, compared by runs with the same seed. None if production mode or all of these variants were not run."""
    means = {name: _mean(runs, figure) for name, runs in known.items() if not VARIANTS[name].capacity_configured}
    ours = means.pop(PRODUCTION, None)
    if ours is None or not means:
        return None
    best = min(means, key=lambda name: means[name].value)
    mine, theirs = (by_number(known[name], "transfer", figure) for name in (PRODUCTION, best))
    gap = difference(mine, theirs)
    text = f"{case}: production mode surely above no other, {what}"
    whose = "a proxy" if best == LEAST else best
    seen = f"{ours.text(0)} against {means[best].text(0)} ms of {whose}, by pairs {gap.signed(0)}"
    return Goal(text, not surely_above(gap), seen)


def report(records: Sequence[Record]) -> Report:
    """Report a table for each case, and whether production mode is at or below the other variants."""
    tables: list[Table] = []
    goals: list[Goal] = []
    for case in CPUS:
        known = {variant: runs for variant in VARIANTS if (runs := matching(records, case=case, variant=variant))}
        if not known:
            continue
        heading = [case, "whole transfer, mean (ms)", "p99", "given up"]
        tables.append(Table(heading, [_row(variant, runs) for variant, runs in known.items()]))
        goals += [
            goal
            for figure, what in (("mean_ms", "mean"), ("p99_ms", "p99"))
            if (goal := _not_above(case, known, figure, what)) is not None
        ]
    return Report(
        tables=tables,
        goals=goals,
        summary={record.key: {kind: record.result[kind] for kind in ("connect", "transfer")} for record in records},
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the mean transfer time of each variant, and the final ratios of the servers with unequal capacities."""
    left, right = figure.subplots(1, 2)
    for place, case in enumerate(CPUS):
        for number, variant in enumerate(VARIANTS):
            if runs := matching(records, case=case, variant=variant):
                value = _mean(runs, "mean_ms").value
                label = variant if place == 0 else None
                left.bar([place + 0.12 * (number - 3)], [value], 0.12, color=f"C{number}", label=label)
    left.set_xticks(range(len(CPUS)), ["unlike capacity", "unlike cost", "small servers"], fontsize="small")
    left.set_ylabel("whole transfer, mean (ms)")
    left.set_yscale("log")
    cpus = [cpus_of_server / sum(CPUS[CAPACITY]) for cpus_of_server in CPUS[CAPACITY]]
    right.step(range(10), cpus, where="mid", color="black", lw=1, label="of the CPU time")
    for number, variant in enumerate(VARIANTS):
        if variant != LEAST and (runs := matching(records, case=CAPACITY, variant=variant)):
            right.plot(range(10), runs[0].result["ratios"], "o", ms=4, color=f"C{number}")
    right.set_xlabel("server")
    right.set_ylabel("ratio at the end")
    right.legend(fontsize="x-small")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize="x-small")


EXPERIMENT = Experiment(
    name="sim-unlike",
    title="Servers and requests that are not alike, simulated",
    source="Beyond Ohta & Andou",
    about="Ten servers behind one switch, simulated with the controller's algorithms and the second look; 0.70, "
    "0.80 and 0.84 of the CPU time are asked for. Nobody tells the balancer the capacities unless the row "
    "says so.",
    points=points,
    compute=measure,
    report=report,
    draw=draw,
)
