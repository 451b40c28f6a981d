"""Ohta & Andou's balancing in a lab whose switch is the Tofino model: the demo, its checks and its ratios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments import demoruns
from experiments.experiment import Experiment, Figure, Goal, Point, Record, Report, Say, Table, Values
from experiments.intervals import mean_of
from experiments.labruns import LabRuns, below_results
from topo.demo.__main__ import LOADED
from topo.plan.network import SERVER_NAMES
from topo.testbed.nodes import switch_kind

TOFINO = "tofino"
REPETITIONS = 3
DEMO_S, READ_S = 900.0, 0.1
"""Approximate seconds of a demo, and of reading the records of a demo from disk."""
PHASES = {"equal": "equal split", "r": "R decides"}


def points(quick: bool) -> Sequence[Point]:
    """Return the points to measure: repeated runs of the demo."""
    return [
        Point(
            f"demo #{number}",
            {"run": number},
            DEMO_S,
            "lab",
            lab_run=below_results(f"experiments/r-tofino/demo-{number}", switch_kind()),
            read_s=READ_S,
        )
        for number in range(1 if quick else REPETITIONS)
    ]


def is_there(point: Point, labs: LabRuns) -> bool:
    """Return whether the records of the point's demo are on disk."""
    return demoruns.is_there(labs.at(point.lab_run), labs.since)


def take(point: Point, labs: LabRuns, say: Say) -> Values:
    """Return a demo's summary and the controller's ratios; run the demo first if its records are not on disk."""
    directory = labs.at(point.lab_run)
    if not demoruns.is_there(directory, labs.since):
        demoruns.make(directory, say)
    summary: dict[str, Any] = json.loads((directory / "summary.json").read_text())
    del summary["switch"]  # the switch's name; in results, the key "switch" has the packets that the switch lost
    return {**summary, "ratios": _ratios(directory / "trace.jsonl"), "made": demoruns.made(directory)}


def _ratios(trace: Path) -> list[tuple[float, dict[str, float]]]:
    """Return for each decision of R the seconds since the first decision and the servers' ratios."""
    decisions = [json.loads(line) for line in trace.read_text().splitlines()]
    made = [decision for decision in decisions if decision.get("mode") == "paper" and "servers" in decision]
    return [
        (decision["time"] - made[0]["time"], {name: server["ratio"] for name, server in decision["servers"].items()})
        for decision in made
    ]


def _row(records: Sequence[Record], phase: str) -> list[str]:
    results = [record.result["phases"][phase] for record in records]
    loaded = [result["per_server"][LOADED] for result in results]
    return [
        PHASES[phase],
        *(
            mean_of([result["connect_ms"][figure] for result in results]).text(0)
            for figure in ("mean", "median", "p99")
        ),
        mean_of([counts["r"] for counts in loaded if counts["r"] is not None]).text(2),
        str(sum(counts["syn"] for result in results for counts in result["per_server"].values())),
    ]


def _goal(check: str, outcomes: Sequence[bool]) -> Goal:
    """Return the goal that one of the demo's checks passes in every run."""
    return Goal(check.replace("_", " "), all(outcomes), f"{sum(outcomes)} of {len(outcomes)}")


def report(records: Sequence[Record]) -> Report:
    """Report a table row for each phase of the demo, a table of the final ratio, weight changes and broken connections,
    and the demo's checks as goals."""
    heading = ["", *(f"connect time, {figure} (ms)" for figure in ("mean", "median", "p99")), f"R of {LOADED}", "SYNs"]
    final = [record.result["ratios_final"][LOADED] for record in records]
    checks = records[0].result["checks"] if records else ()
    goals = [_goal(name, [record.result["checks"][name] for record in records]) for name in checks]
    settled = Table(
        [f"ratio of {LOADED} at the end", "weight changes", "broken connections"],
        [
            [
                mean_of(final).text(3),
                str(sum(record.result["weight_changes"] for record in records)),
                str(sum(record.result["broken_connections"] for record in records)),
            ]
        ],
    )
    return Report(
        tables=[Table(heading, [_row(records, phase) for phase in PHASES]), settled],
        goals=goals,
        summary={
            record.key: {key: record.result[key] for key in ("phases", "ratios_final", "checks")} for record in records
        },
    )


def draw(records: Sequence[Record], figure: Figure) -> None:
    """Draw the servers' ratios of each run against time."""
    axes = figure.subplots()
    for color, name in enumerate(SERVER_NAMES):
        for number, record in enumerate(records):
            times = [time for time, _ in record.result["ratios"]]
            ratios = [ratios[name] for _, ratios in record.result["ratios"]]
            label = (f"{name}, loaded" if name == LOADED else name) if number == 0 else None
            axes.step(times, ratios, where="post", color=f"C{color}", label=label)
    axes.set_xlabel("time since R decides (s)")
    axes.set_ylabel("ratio")
    axes.set_ylim(0, None)
    axes.grid(alpha=0.3)
    axes.legend()


EXPERIMENT = Experiment(
    name="r-tofino",
    title="R on Tofino's model",
    source="Ohta & Andou, on the chip's own model",
    about=(
        "The demo behind open-p4studio's model of the chip, its driver and our gateway."
        " A twentieth of the usual load, servers of 0.03 of their CPU, times three times as long; for R, half as many"
        " periods again."
    ),
    points=points,
    report=report,
    draw=draw,
    take=take,
    is_there=is_there,
    needs_root=True,
    switch=TOFINO,
)
