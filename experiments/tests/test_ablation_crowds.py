"""Tests of the ablation of production mode's mechanisms against crowds."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from sluice.news import NewsOptions, baseline_detector, modes, news, production, search, window

from experiments import ablation_crowds, crowd_cases
from experiments.crowd_cases import BOTH, CASES, DURING, NOTHING, SERVER, SMALL, SUDDEN, Busy, Case, Surge
from experiments.experiment import Point, Record, Values
from experiments.tests.small import measured, report_text, tables_of
from sim.crowd import simulate
from topo.plan.outcomes import Ending

SHORT = Case([Surge(50.0, 70.0, 80.0, 5.0)], {"web": 8.0})


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace some of the cases by short ones of one to two minutes."""
    both = [Surge(40.0, 70.0, 60.0, 5.0), Surge(40.0, 90.0, 40.0, 5.0, "other")]
    short = {
        NOTHING: Case((), {"web": 8.0}, quiet_s=120.0),
        SUDDEN: SHORT,
        SERVER: replace(SHORT, slow=True),
        DURING: replace(SHORT, restart_s=110.0),
        BOTH: Case(both, {"web": 4.0, "other": 4.0}),
    }
    monkeypatch.setattr(ablation_crowds, "CASES", {**CASES, **short})


def point(case: str, without: str) -> Point:
    return Point(f"{case}, without {without} #1", {"case": case, "without": without, "seed": 1}, 1.0)


@cache
def run(case: str, without: str) -> Values:
    return ablation_crowds.measure(point(case, without))


SHOWS = {
    "search": SUDDEN,
    ablation_crowds.BY_AR: SUDDEN,
    "split": SUDDEN,
    "lifting": SUDDEN,
    "clean baseline": SUDDEN,
    "baseline file": DURING,
    "hot spot": BOTH,
    "a limit for each crowd": BOTH,
    ablation_crowds.NONE: SUDDEN,
}
"""For each mechanism, a short case in which the mechanism has an effect."""


def _places() -> list[object]:
    parts = {
        (id(owner), name): (owner, name)
        for mechanism in ablation_crowds.MECHANISMS.values()
        for owner, name, _ in mechanism.parts
    }
    return [getattr(owner, name) for owner, name in parts.values()]


@pytest.mark.parametrize("mechanism", SHOWS)
def test_a_mechanism_that_is_switched_off_is_missed(mechanism: str) -> None:
    before = _places()
    assert run(SHOWS[mechanism], ablation_crowds.WHOLE) != run(SHOWS[mechanism], mechanism)
    assert before == _places(), "the parts are in their places again"


def test_every_substitute_has_the_name_of_what_it_stands_for() -> None:
    owners = {production, search, window, baseline_detector, modes, news, NewsOptions}
    for name, variant in ablation_crowds.MECHANISMS.items():
        for owner, attribute, _ in variant.parts:
            assert hasattr(owner, attribute), name
            assert owner in owners or attribute == "chance"


def test_points_are_of_the_cases_in_which_a_mechanism_can_matter() -> None:
    points = ablation_crowds.points(False)
    assert len({point.key for point in points}) == len(points)
    files = {point.parameters["case"] for point in points if point.parameters["without"] == "baseline file"}
    assert files == {crowd_cases.RESTARTED, DURING}
    assert {point.parameters["case"] for point in points} == {*CASES}
    assert sum(point.seconds for point in points) < 30 * 60


def test_a_crowd_that_ends_gives_normal_service_and_no_limit() -> None:
    whole, none = run(SUDDEN, ablation_crowds.WHOLE), run(SUDDEN, ablation_crowds.NONE)
    assert whole["lifted_s"] < 40 and none["lifted_s"] == 0
    assert whole["bytes"] > none["bytes"] and whole["lost"] < none["lost"]
    assert 0 < whole["answered"] < 1 and whole["alarm_s"] < 45


def test_the_slow_servers_use_is_of_its_cpu() -> None:
    used = run(SERVER, ablation_crowds.NONE)["used"]
    assert 0.7 < used <= 1.01


def test_nothing_is_refused_or_alarmed_without_a_crowd() -> None:
    quiet = run(NOTHING, ablation_crowds.WHOLE)
    assert quiet["false_alarms"] == 0 and quiet["answered"] > 0.95
    assert quiet["alarm_s"] is None and quiet["normal_s"] is None


def test_a_restarted_controller_continues_from_the_limit_with_its_baseline() -> None:
    """In its first decision, a restarted controller still has the limit from before the restart. It has the usual
    rate only if it has its baseline file."""
    case = ablation_crowds.CASES[DURING]
    for keeps in (True, False):
        plan = crowd_cases.plan(case, crowd_cases.configuration(case), 1, Busy(), keeps_usual=keeps)
        decisions = simulate(plan).decisions
        first = next(decision for decision in decisions if decision.time_s > case.restart_s)
        assert first.limits, "the limit is adopted"
        assert (first.detection.request_average is not None) is keeps


def test_the_same_seed_has_the_same_requests_whatever_is_switched_off() -> None:
    case = CASES[SMALL]
    first, second = (list(crowd_cases.requests(case, seed)) for seed in (1, 2))
    assert first == list(crowd_cases.requests(case, 1)) != second
    assert len(first) == pytest.approx(case.requests, rel=0.1)
    assert [decision.time_s for decision in first] == sorted(decision.time_s for decision in first)


def test_figures_are_of_the_requests_of_the_crowds() -> None:
    case = ablation_crowds.CASES[SUDDEN]
    result = simulate(crowd_cases.plan(case, crowd_cases.configuration(case), 1, Busy(), keeps_usual=True))
    answers = [outcome for outcome in result.outcomes if case.crowded(outcome.due_s)]
    finished = [outcome for outcome in answers if outcome.ending is Ending.FINISHED and (outcome.done_s or 0) <= 10.0]
    assert crowd_cases.values(case, result, Busy())["answered"] == len(finished) / len(answers)


def test_the_report_names_what_pays_and_what_harms() -> None:
    def made(without: str, shares: list[float]) -> list[Record]:
        parameters = {"case": SUDDEN, "without": without}
        empty = {figure.name: None for figure in ablation_crowds.FIGURES}
        return [
            Record(f"{without} #{seed}", {**parameters, "seed": seed}, {**empty, "bytes": share}, 0.0, 1.0, 0.0)
            for seed, share in enumerate(shares, start=1)
        ]

    records = [
        *made(ablation_crowds.WHOLE, [0.50, 0.55, 0.45]),
        *made("knee", [0.40, 0.452, 0.348]),
        *made("split", [0.60, 0.652, 0.548]),
        *made("long mean", [0.51, 0.56, 0.46]),
        *made("search", [0.50, 0.90, 0.30]),
    ]
    text = tables_of(ablation_crowds.report(records))
    cells = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()}
    assert cells["without knee"].endswith("| pays in 1, harms in 0 |") and "**-10.0 ± 0.5**" in cells["without knee"]
    assert cells["without split"].endswith("| pays in 0, harms in 1 |")
    for mechanism in ("long mean", "search"):
        assert cells[f"without {mechanism}"].endswith("| makes no difference |"), "too little, or not sure"


def test_runs_are_reported_and_drawn() -> None:
    wanted = [ablation_crowds.WHOLE, "knee", ablation_crowds.NONE]
    records = measured(ablation_crowds.EXPERIMENT, [point(SUDDEN, name) for name in wanted])
    text = report_text(ablation_crowds.EXPERIMENT, records)
    assert text.count("| no control |") == text.count("| without knee |") == len(ablation_crowds.FIGURES)
