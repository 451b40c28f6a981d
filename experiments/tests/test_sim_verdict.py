"""Tests of the simulated runs that are labelled with their true cause: the verdicts on runs, and the report."""

from dataclasses import replace

import pytest

from experiments import sim_verdict
from experiments.experiment import Point, Values
from experiments.tests.small import measured, report_text
from topo.plan.causes import CAUSES, Label


@pytest.mark.parametrize("label", [Label.UNANSWERED, Label.SLOW, Label.SERVERS])
def test_cases_once_taken_for_a_crowd_or_a_sick_server_are_distinguished(label: Label) -> None:
    """Three causes that were once confused have the right verdict: a SYN flood without answers, a slow server whose
    clients retransmit, and a crowd at the servers, whose first sign is a full accept queue."""
    (point,) = [point for point in sim_verdict.EXPERIMENT.points(True) if point.key == f"{label} #1"]
    result = sim_verdict.measure(point)
    assert result["cause"] == CAUSES[label]
    assert result["limited"] is (label is Label.SERVERS)
    assert result["moved"] is (label is Label.SLOW)


def test_the_report_counts_what_is_wrong() -> None:
    points = [point for point in sim_verdict.EXPERIMENT.points(True) if point.parameters["seed"] == 1]

    def wrong(_: Point) -> Values:
        return {"cause": "normal", "held": 0.9, "named": [], "limited": True, "moved": True}

    records = measured(replace(sim_verdict.EXPERIMENT, compute=wrong), points)
    text = report_text(sim_verdict.EXPERIMENT, records)
    assert "| lossy link | 1 |" in text and "a limit: 1, weights: 1" in text
    matrix, moved = sim_verdict.EXPERIMENT.report(records).goals
    assert not matrix.reached and matrix.seen.startswith("0 % at least")
    assert not moved.reached and moved.seen.startswith(f"in {len(points) - 1} of {len(points)} runs")
