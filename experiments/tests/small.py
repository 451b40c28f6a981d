"""Helpers that measure, report and draw experiments at a small size."""

from __future__ import annotations

import json
from collections.abc import Sequence

from matplotlib.figure import Figure

from experiments.experiment import Experiment, Goal, Point, Record, Report
from experiments.store import without_nan


def measured(experiment: Experiment, points: Sequence[Point]) -> list[Record]:
    """Measure points, and return the records as the store would return them."""
    assert experiment.compute is not None
    return [
        Record(
            point.key, point.parameters, json.loads(json.dumps(without_nan(experiment.compute(point)))), 0.0, 1.0, 0.0
        )
        for point in points
    ]


def report_text(experiment: Experiment, records: Sequence[Record]) -> str:
    """Make an experiment's report and picture; return the report's tables as text."""
    experiment.draw(records, Figure())
    report = experiment.report(records)
    json.dumps(without_nan(report.summary))
    return tables_of(report)


def tables_of(report: Report) -> str:
    """Return the tables of a report as text."""
    return "\n".join(
        "| " + " | ".join(row) + " |" for table in report.tables for row in (table.heading, ["---"], *table.rows)
    )


def goal_of(report: Report, words: str) -> Goal:
    """Return the only goal of a report whose text contains `words`."""
    (goal,) = [goal for goal in report.goals if words in goal.text]
    return goal


def crowd(name: str, seed: int, *, ar_kbps: float | None = 90.0, alarm: float | None = 1 / 3) -> Record:
    """Return a record of the experiment on Table I with known figures; `alarm` is the time in intervals after the
    onset."""
    variant, _, rate = name.partition(" ")
    parameters = {
        "variant": "none" if rate else variant,
        "seed": seed,
        **({"static_per_s": float(rate)} if rate else {}),
    }
    figures = {
        "admitted_per_s": 100.0,
        "turned_away": 0.3,
        "ar_kbps": ar_kbps,
        "response_loss": 0.3 if variant == "none" else 0.01,
        "bottleneck_used": 0.9,
        "detected_after_intervals": alarm,
    }
    result = {
        "crowd": figures,
        "quiet": {"ar_kbps": 95.0},
        "period_s": 60.0,
        "onset_s": 1000.0,
        "rows": [
            [900.0, 9e4, 35.0, 35.0, None, 0],
            [960.0, 8e4, 40.0, 35.0, None, 0],
            [1020.0, 6e4, 200.0, 80.0, 79.0, 1],
            [1080.0, 6e4, 200.0, 80.0, 63.0, 1],
        ],
        "hot_spot": {"named": 0, "right": 0},
    }
    return Record(f"{name} #{seed}", parameters, result, 0.0, 1.0, 0.0)
