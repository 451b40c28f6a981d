"""Tests of the lab runs that are labelled with their true cause: the points, the verdict on a run, and the report."""

from __future__ import annotations

from collections import Counter

import pytest

from experiments import lab_verdict
from experiments.experiment import Point, Record
from experiments.tests.small import goal_of, report_text
from experiments.verdicts import values
from topo.plan.causes import CAUSES, CROWDS, FAILING, SICK_NAME, Decision, Judged, Label, judged

ONSET_S = 26.0


def decision(after_s: float, cause: str, *servers: str, limited: bool = False) -> Decision:
    return Decision(ONSET_S + after_s, cause, frozenset(servers), limited)


@pytest.mark.parametrize(("quick", "times"), [(True, 1), (False, 3)])
def test_each_label_is_run_as_often(quick: bool, times: int) -> None:
    runs = Counter(point.parameters["label"] for point in lab_verdict.points(quick))
    assert runs == dict.fromkeys(Label, times)


def test_a_run_is_judged_by_the_verdict_that_held_longest_after_a_settling_time() -> None:
    decisions = [
        decision(9.9, "flood", limited=True),
        decision(10.0, "normal"),
        decision(11.0, "sick server", "s2"),
        decision(12.0, "sick server", "s2", "s4"),
        decision(13.0, "sick server", "s3"),
    ]
    run = judged(decisions, [ONSET_S - 1], ONSET_S)
    assert run == Judged({"normal": 0.25, "sick server": 0.75}, frozenset({"s2"}), limited=True, moved=False)
    assert values(run)["cause"] == "sick server" and values(run)["held"] == 0.75
    assert judged(decisions, [ONSET_S], ONSET_S).moved
    with pytest.raises(ValueError, match="nothing from 10 s after the onset"):
        judged(decisions[:1], [], ONSET_S)


def record(point: Point, cause: str, *, moved: bool = False) -> Record:
    label = Label(point.parameters["label"])
    names = frozenset({SICK_NAME} if label in FAILING else ())
    run = Judged({cause: 1.0}, names, limited=label in CROWDS, moved=moved or label in FAILING)
    return Record(point.key, point.parameters, values(run), 0.0, 60.0, 1.0)


def test_one_wrong_run_of_three_and_one_wrong_move_are_found() -> None:
    points = lab_verdict.points(quick=False)
    right = [record(point, CAUSES[Label(point.parameters["label"])]) for point in points]
    assert all(goal.reached for goal in lab_verdict.EXPERIMENT.report(right).goals)
    lossy = next(place for place, record in enumerate(points) if record.parameters["label"] == Label.LOSSY)
    wrong = [*right[:lossy], record(points[lossy], "sick server", moved=True), *right[lossy + 1 :]]
    report = lab_verdict.EXPERIMENT.report(wrong)
    assert "| lossy link | 2 |  |  | 1 | 67 % | 100 % | weights: 1 |" in report_text(lab_verdict.EXPERIMENT, wrong)
    assert goal_of(report, "right in").seen == "67 % at least (lossy link)"
    assert goal_of(report, "wrong cause").seen == "in 1 of 27 runs (lossy link #1)"
    assert not any(goal.reached for goal in report.goals)
