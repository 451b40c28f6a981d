"""The simulation compared with the lab: the demo, Fig. 5 of Ohta & Andou, production mode, and flash crowds."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from experiments import demoruns
from experiments import sim_lab_crowds as crowds
from experiments import sim_lab_fig5 as fig5
from experiments import sim_lab_unlike as unlike
from experiments.agreement import PART, percent
from experiments.borrowed import SIDES, seeds_of, values_of
from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report, Say, Table, Values
from experiments.intervals import chance, mean_of
from experiments.labruns import LabRuns, below_results, simulated_beside
from experiments.ratios import NEAR
from experiments.variants import EQUAL, PAPER, PRODUCTION, WITHOUT
from sim.demo import EQUAL_S, Phases, simulate_demo
from topo.plan.crowd.scenarios import NETWORK, SERVER
from topo.testbed.nodes import switch_kind

SEEDS_A_RUN = 5
"""Number of simulations for each lab run of the demo; the seeds differ between lab runs."""
REPETITIONS, DEMO_REPETITIONS = 3, 6
"""Repetitions of the lab runs that other experiments make (Fig. 5, production mode and crowds), and of the demo. The
demo has more repetitions, because its connect time under R depends on the few seconds in which a queue is full."""
KINDS = {"crowd": "scenario", "fig5": "fig5", "unlike": "unlike"}
"""Kinds of points except the demo, each with the parameter that only points of this kind have."""
DEMO_LAB_S, DEMO_SIMULATED_S = 165.0, 5.0
"""Approximate seconds of the demo in the lab and of its simulations."""


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: the demo; in the full form also Fig. 5, production mode and every crowd,
    repeated."""
    made: list[Point] = []
    for number in range(1 if quick else DEMO_REPETITIONS):
        parameters: dict[str, Any] = {"seeds": seeds_of(number, SEEDS_A_RUN), "run": number}
        made.append(
            Point(
                f"demo #{number}",
                parameters,
                DEMO_LAB_S + DEMO_SIMULATED_S,
                "lab",
                lab_run=below_results(f"experiments/sim-lab/demo-{number}", switch_kind()),
                read_s=DEMO_SIMULATED_S,
            )
        )
    if not quick:
        for number in range(REPETITIONS):
            made += [*fig5.points(number), *unlike.points(number), *crowds.points(number)]
    return made


def is_there(point: Point, labs: LabRuns) -> bool:
    """Return whether the lab run of a point is on disk, so that the point only needs simulations."""
    kind = _kind(point.parameters)
    if kind == "demo":
        return demoruns.is_there(labs.at(point.lab_run), labs.since)
    return {"crowd": crowds.is_there, "fig5": fig5.is_there, "unlike": unlike.is_there}[kind](point, labs)


def take(point: Point, labs: LabRuns, say: Say) -> Values:
    """Run the lab, unless the lab run is on disk; then run the simulations, and return the figures of both."""
    measures = {"crowd": crowds.measure, "fig5": fig5.measure, "unlike": unlike.measure, "demo": demo}
    return measures[_kind(point.parameters)](point, labs, say)


def _kind(parameters: Mapping[str, Any]) -> str:
    """Return the kind of a point or a record: each kind, except the demo, has a parameter that no other kind has."""
    return next((kind for kind, parameter in KINDS.items() if parameter in parameters), "demo")


# -- the demo


def demo(point: Point, labs: LabRuns, say: Say) -> Values:
    """Run the demo in the lab, or read the run from disk, and simulate the demo at the rate of the lab run."""
    directory = labs.at(point.lab_run)
    if not is_there(point, labs):
        demoruns.make(directory, say)
    lab: Mapping[str, Any] = json.loads((directory / "summary.json").read_text())
    equal, by_r = lab["phases"]["equal"], lab["phases"]["r"]
    runs = [simulate_demo(equal["offered_per_s"], seed) for seed in point.parameters["seeds"]]
    return {
        "rate_per_s": equal["offered_per_s"],
        "lab": {
            "equal_ms": equal["connect_ms"]["mean"],
            "r_ms": by_r["connect_ms"]["mean"],
            "equal_failed": equal["failed"] / equal["connections"],
            "equal_syn": equal["per_server"]["s3"]["syn"] / equal["connections"],
            "loaded_ratio": lab["ratios_final"]["s3"],
            "weight_changes": lab["weight_changes"],
            **bursts(_answers(directory / "trace.jsonl")),
        },
        "simulated": [demo_figures(phases) for phases in runs],
        "ratios": [[decision.time_s - EQUAL_S, *decision.ratios.values()] for decision in runs[0].run.decisions[0]],
        **simulated_beside(**demoruns.made(directory)),
    }


def demo_figures(phases: Phases) -> dict[str, float]:
    """Return the figures of a simulated demo."""
    return {
        "equal_ms": _connect_ms(phases, "equal"),
        "r_ms": _connect_ms(phases, "by_r"),
        "equal_failed": sum(connection.done_s is None for connection in phases.equal) / len(phases.equal),
        "equal_syn": (sum(connection.syns for connection in phases.equal) - 2 * len(phases.equal) / 3)
        / len(phases.equal),
        "loaded_ratio": phases.run.decisions[0][-1].ratios[2],
        "weight_changes": phases.run.weight_changes,
        **bursts(
            [decision.differences[2].synack for decision in phases.run.decisions[0] if decision.time_s <= EQUAL_S]
        ),
    }


def _answers(trace: Path) -> list[int]:
    """Return the number of the loaded server's SYN-ACKs in each interval (1 s) of the demo's equal split, without the
    intervals before the load and after the load."""
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    fixed = list(takewhile(lambda row: row["mode"] == "fixed", rows))
    answers = [row["servers"]["s3"]["interval"]["synack"] for row in fixed]
    while answers and answers[-1] == 0:
        answers.pop()
    return answers[-round(EQUAL_S) :]


def bursts(answers: Sequence[int]) -> dict[str, float]:
    """Return mean and standard deviation of the answers per second from the tenth second on; until then, the accept
    queue fills."""
    return {"answers_per_s": statistics.fmean(answers[10:]), "answers_spread": statistics.pstdev(answers[10:])}


def _connect_ms(phases: Phases, name: str) -> float:
    connections = phases.equal if name == "equal" else phases.by_r
    return 1000 * statistics.fmean(
        connection.connect_s for connection in connections if connection.connect_s is not None
    )


# -- the report

DEMO_ROWS = {
    "equal_ms": ("connect time, equal split (ms)", 0),
    "r_ms": ("connect time, R decides (ms)", 0),
    "equal_failed": ("given up, equal split (share)", 3),
    "equal_syn": ("SYNs to the loaded server, equal split, a request", 2),
    "loaded_ratio": ("loaded server's ratio at the end", 3),
    "weight_changes": ("weight changes", 0),
    "answers_per_s": ("loaded server answers a second, equal split", 0),
    "answers_spread": ("their spread from second to second", 0),
}


def _demo_table(runs: Sequence[Record]) -> Table:
    rows: list[list[str]] = []
    for name, (label, digits) in DEMO_ROWS.items():
        rows.append([label, *(mean_of(values_of(runs, side, name)).text(digits) for side in SIDES)])
    return Table(["the demo", *SIDES], rows)


TO_REACH_RATIO = f"R decides: the loaded server's ratio at the end within {NEAR:g} of the lab's"


def _near(demos: Sequence[Record], name: str, title: str) -> Goal:
    """Return the goal that a phase's mean connect time in the simulation agrees with the lab's."""
    lab, simulated = (mean_of(values_of(demos, side, name)) for side in SIDES)
    off = simulated.value / lab.value - 1
    seen = f"{percent(off)}{chance(lab, simulated)}"
    return Goal(f"{title}: connect time within {PART:.0%} of the lab's", abs(off) <= PART, seen)


def _ratio(demos: Sequence[Record]) -> Goal:
    lab, simulated = _sides(demos, "loaded_ratio")
    off = simulated - lab
    return Goal(TO_REACH_RATIO, abs(off) <= NEAR, f"{off:+.3f}; {lab:.3f} in the lab")


def _sides(demos: Sequence[Record], name: str) -> tuple[float, float]:
    """Return a figure's mean in the lab and its mean in the simulation."""
    lab, simulated = (statistics.fmean(values_of(demos, side, name)) for side in SIDES)
    return lab, simulated


def _goals(of: Mapping[str, Sequence[Record]]) -> list[Goal]:
    """Return the goals of the demo and of Fig. 5, then those of unequal servers and of crowds."""
    demos, figure = of["demo"], of["fig5"]
    return [
        *([_near(demos, "equal_ms", "equal split")] if demos else []),
        *fig5.goals(figure, EQUAL.name),
        *([_near(demos, "r_ms", "R decides"), _ratio(demos)] if demos else []),
        *(goal for name in (PAPER.name, WITHOUT.name, PRODUCTION.name) for goal in fig5.goals(figure, name)),
        *unlike.goals(of["unlike"]),
        *(goal for scenario in (NETWORK, SERVER) for goal in crowds.goals(of["crowd"], scenario.name)),
    ]


def _by_kind(records: Sequence[Record]) -> Mapping[str, Sequence[Record]]:
    return {kind: [record for record in records if _kind(record.parameters) == kind] for kind in ("demo", *KINDS)}


def report(records: Sequence[Record]) -> Report:
    """Report tables with the figures of lab and simulation side by side."""
    of = _by_kind(records)
    return Report(
        tables=[
            *([_demo_table(of["demo"])] if of["demo"] else []),
            *(fig5.tables(of["fig5"]) if of["fig5"] else []),
            *([unlike.table(of["unlike"])] if of["unlike"] else []),
            *([crowds.table(of["crowd"])] if of["crowd"] else []),
        ],
        goals=_goals(of),
        summary={
            record.key: {side: record.result[side] for side in SIDES if side in record.result} for record in records
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw connect times of the demo and AR (the response rate of the fastest flows) of the crowds, in lab and
    simulation."""
    left, right = figure.subplots(1, 2)
    of = _by_kind(records)
    demos, flash = of["demo"], of["crowd"]
    if demos:
        for offset, side in zip((-0.2, 0.2), SIDES, strict=True):
            values = [statistics.fmean(values_of(demos, side, name)) for name in ("equal_ms", "r_ms")]
            left.bar([0 + offset, 1 + offset], values, 0.4, label=side)
        left.set_xticks([0, 1], ["equal split", "R decides"])
        left.set_ylabel("mean connect time, ms")
        left.legend()
    known = crowds.by_crowd(flash)
    for number, runs in enumerate(known.values()):
        for offset, side, colour in ((-0.2, "lab", "C0"), (0.2, "simulated", "C1")):
            right.bar([number + offset], [crowds.seen(runs, side, "ar_kbps").value], 0.4, color=colour)
    labels = [f"{scenario.partition('-')[0]}, {variant}" for scenario, variant in known]
    right.set_xticks(range(len(known)), labels, rotation=30, ha="right", fontsize="small")
    right.set_ylabel("AR, kbit/s, in the paper's scale")


EXPERIMENT = Experiment(
    name="sim-lab",
    title="The simulation against the lab",
    source="Control of the simulation",
    about="The demo, the runs of `r-fig5` and `r-unlike` through the switch, and crowds of `news-lab`, each in "
    "the lab and simulated. Only the time of a page on its way is fitted to the lab.",
    points=points,
    take=take,
    is_there=is_there,
    report=report,
    draw=draw,
    needs_root=True,
)
