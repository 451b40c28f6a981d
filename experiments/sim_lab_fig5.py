"""Fig. 5 of Ohta & Andou for `sim-lab`: three servers at all rates, in the lab (the runs of `r-fig5`) and simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice.balance import Mode

from experiments import r_fig5
from experiments.agreement import PART, percent
from experiments.borrowed import SIDES, beside, kept, kept_or_made, point_of, seeds_of, values_of
from experiments.experiment import Goal, Point, Record, Say, Table, Values
from experiments.intervals import Mean, chance, mean_of
from experiments.labruns import LabRuns, simulated_beside
from experiments.records import matching
from experiments.simpool import simulated
from experiments.variants import EQUAL, PAPER, PERIOD_S, PRODUCTION, VARIANTS, WINDOW_S, WITHOUT

MODES = {
    EQUAL.name: Mode.FIXED,
    PAPER.name: Mode.PAPER,
    WITHOUT.name: Mode.PRODUCTION,
    PRODUCTION.name: Mode.PRODUCTION,
}
DELTA = 0.1
SEEDS_A_RUN = 3
SIMULATED_S = 3.0
CONNECT, TRANSFER = "connect_ms", "transfer_ms"
TITLES = {CONNECT: "connect time, mean (ms)", TRANSFER: "whole transfer, mean (ms)"}
HELD = {EQUAL.name: CONNECT, PAPER.name: CONNECT, WITHOUT.name: CONNECT, PRODUCTION.name: TRANSFER}
"""The figure that the goal of a variant compares, by the variant's name. In production mode with a second look (choice
by load) no SYN is lost, so the connect time is negligible and the goal compares the transfer time."""


def points(number: int) -> list[Point]:
    """Return the points of one repetition: every variant of sluice at every rate."""
    runs = {point.key: point for point in r_fig5.EXPERIMENT.points(False)}
    return [
        beside(f"fig. 5 {key}", runs[key], SIMULATED_S, fig5=key, delta=DELTA, seeds=seeds_of(number, SEEDS_A_RUN))
        for name in MODES
        for rate in r_fig5.RATES_PER_S
        if (key := r_fig5.key_of(name, rate, r_fig5.LOAD_S, number)) in runs
    ]


def is_there(point: Point, labs: LabRuns) -> bool:
    """Return whether the lab run of the corresponding point of `r-fig5` exists."""
    return kept(r_fig5.EXPERIMENT, _own(point), labs) is not None


def _own(point: Point) -> Point:
    """Return the point of `r-fig5` with whose lab run the simulation of `point` is compared."""
    return point_of(r_fig5.EXPERIMENT, point.parameters["fig5"])


def measure(point: Point, labs: LabRuns, say: Say) -> Values:
    """Read the lab run of `r-fig5`, or make it if it is missing, and simulate the same load."""
    run = kept_or_made(r_fig5.EXPERIMENT, _own(point), labs, say)
    asked = {
        **point.parameters,
        "mode": MODES[point.parameters["variant"]],
        "second_look": point.parameters["variant"] == PRODUCTION.name,
        "period_s": PERIOD_S,
        "window_s": WINDOW_S,
        "httperf": True,
    }
    runs = [simulated({**asked, "seed": seed}) for seed in point.parameters["seeds"]]
    return {
        "lab": figures(run.result),
        "simulated": [figures(run) for run in runs],
        **simulated_beside(began=run.began, load=run.load, program=run.program),
    }


def figures(run: Values) -> dict[str, float]:
    """Return the compared figures of a lab run or of a simulated run."""
    return {CONNECT: run["connect"]["mean_ms"], TRANSFER: run["transfer"]["mean_ms"]}


def _of(records: Sequence[Record], name: str) -> dict[float, list[Record]]:
    """Return a variant's records by rate."""
    return {rate: runs for rate in r_fig5.RATES_PER_S if (runs := matching(records, variant=name, rate_per_s=rate))}


def tables(records: Sequence[Record]) -> list[Table]:
    """Return tables of connect and transfer times, with two adjacent rows for each variant: lab and simulation."""
    rates = [rate for rate in r_fig5.RATES_PER_S if any(record.parameters["rate_per_s"] == rate for record in records)]
    return [
        Table(
            [title, *(f"{rate:g}/s" for rate in rates)],
            [
                [
                    f"{VARIANTS[name].title}, {side}",
                    *(mean_of(values_of(of.get(rate, []), side, figure)).text(0) for rate in rates),
                ]
                for name in MODES
                if HELD[name] == figure and (of := _of(records, name))
                for side in SIDES
            ],
        )
        for figure, title in TITLES.items()
    ]


def _over_rates(of: Mapping[float, Sequence[Record]], side: str, figure: str) -> Mean:
    """Compute a figure's mean over all rates for each repetition on one side (`lab` or `simulated`); return the mean of
    these means."""
    return mean_of(
        [
            sum(runs) / len(runs)
            for runs in zip(*(values_of(runs_at, side, figure) for runs_at in of.values()), strict=False)
        ]
    )


def goals(records: Sequence[Record], name: str) -> list[Goal]:
    """Return the goal that a variant's mean over all rates in the simulation agrees with the lab's."""
    of = _of(records, name)
    if not of:
        return []
    figure = HELD[name]
    lab, other = (_over_rates(of, side, figure) for side in SIDES)
    off = other.value / lab.value - 1
    what = TITLES[figure].partition(",")[0]
    text = f"{VARIANTS[name].title}: {what}, mean over the rates of Fig. 5, within {PART:.0%} of the lab's"
    seen = f"{lab.text()} ms in the lab, {other.text()} simulated ({percent(off)}){chance(lab, other)}"
    return [Goal(text, abs(off) <= PART, seen)]
