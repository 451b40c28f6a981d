"""Unequal servers and unequal requests for `sim-lab`: production mode in the lab (the runs of `r-unlike`), and
simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluice.balance import BalanceOptions, Mode

from experiments import r_unlike
from experiments.agreement import PART, percent
from experiments.borrowed import SIDES, beside, kept, kept_or_made, point_of, seeds_of, values_of
from experiments.experiment import Goal, Point, Record, Say, Table, Values
from experiments.intervals import Mean, chance, mean_of
from experiments.labruns import LabRuns, simulated_beside
from experiments.records import matching
from experiments.simpool import simulate_load, times_between
from experiments.variants import PERIOD_S, PRODUCTION, WINDOW_S
from sim.arrivals import as_in_the_lab
from sim.pool import PoolPlan, ServerPlan
from sim.secondlook import SecondLook

SEEDS_A_RUN = 5
SIMULATED_S = 5.0
FIGURES = {
    "transfer_ms": ("whole transfer, mean (ms)", 1),
    "transfer_p99_ms": ("whole transfer, p99", 0),
}


def points(number: int) -> list[Point]:
    """Return the points of one repetition: production mode with unequal servers, and with unequal requests."""
    runs = {point.key: point for point in r_unlike.EXPERIMENT.points(False)}
    return [
        beside(
            f"{case}, {PRODUCTION.name} #{number}",
            runs[key],
            SIMULATED_S,
            unlike=key,
            seeds=seeds_of(number, SEEDS_A_RUN),
        )
        for case in r_unlike.CASES
        if (key := r_unlike.key_of(case, PRODUCTION.name, r_unlike.LOAD_S, number)) in runs
    ]


def is_there(point: Point, labs: LabRuns) -> bool:
    """Return whether the lab run of the corresponding point of `r-unlike` exists."""
    return kept(r_unlike.EXPERIMENT, _own(point), labs) is not None


def _own(point: Point) -> Point:
    """Return the point of `r-unlike` with whose lab run the simulation of `point` is compared."""
    return point_of(r_unlike.EXPERIMENT, point.parameters["unlike"])


def measure(point: Point, labs: LabRuns, say: Say) -> Values:
    """Read the lab run of `r-unlike`, or make it if it is missing, and simulate it with the request cost that the lab
    run measured."""
    asked = point.parameters
    run = kept_or_made(r_unlike.EXPERIMENT, _own(point), labs, say)
    work_s = run.result["cost_ms"] / 1000
    return {
        "lab": figures(run.result),
        "simulated": [figures(simulated(asked, work_s, seed)) for seed in asked["seeds"]],
        "cost_ms": run.result["cost_ms"],
        **simulated_beside(began=run.began, load=run.load, program=run.program),
    }


def simulated(asked: Mapping[str, Any], work_s: float, seed: int) -> Values:
    """Simulate a pool of `r-unlike`; `work_s`: CPU seconds of a request that is not heavy."""
    run = simulate_load(
        PoolPlan(
            servers=[ServerPlan(cpus=cpus, work_s=work_s) for cpus in asked["cpus"]],
            options=BalanceOptions(mode=Mode.PRODUCTION, period_s=PERIOD_S, window_s=WINDOW_S),
            rate_per_s=asked["rate_per_s"],
            end_s=asked["seconds"],
            timeout_s=r_unlike.GIVEN_UP_S,
            heavy_share=asked["heavy_share"],
            heavy_factor=r_unlike.HEAVY_FACTOR,
            arrivals=as_in_the_lab,
            second_look=SecondLook,
            seed=seed,
        )
    )
    return times_between(run, 0.0, asked["seconds"])


def figures(run: Values) -> dict[str, float]:
    """Return the compared figures of a lab run or of a simulated run."""
    return {
        "transfer_ms": run["transfer"]["mean_ms"],
        "transfer_p99_ms": run["transfer"]["p99_ms"],
    }


def _sides(records: Sequence[Record], case: str, name: str) -> list[Mean]:
    return [mean_of(values_of(matching(records, case=case), side, name)) for side in SIDES]


def _cases(records: Sequence[Record]) -> list[str]:
    return [case for case in r_unlike.CASES if any(record.parameters["case"] == case for record in records)]


def table(records: Sequence[Record]) -> Table:
    """Return a table with the figures of lab and simulation side by side."""
    rows = [
        [f"{case}: {label}", *(mean.text(digits) for mean in _sides(records, case, name))]
        for case in _cases(records)
        for name, (label, digits) in FIGURES.items()
    ]
    return Table(["production mode with its second look", "lab", "simulated"], rows)


def goals(records: Sequence[Record]) -> list[Goal]:
    """Return the goals that the simulation's mean transfer time agrees with the lab's."""
    made: list[Goal] = []
    for case in _cases(records):
        lab, other = _sides(records, case, "transfer_ms")
        off = other.value / lab.value - 1
        text = f"{case}: mean of the whole transfer within {PART:.0%} of the lab's"
        made.append(Goal(text, abs(off) <= PART, f"{percent(off)}{chance(lab, other)}"))
    return made
