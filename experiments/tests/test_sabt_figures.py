"""Figures of shared buffers: what is said of runs that are known, and the simulated flows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments import sabt_fig5, sabt_fig8, sabt_shares
from experiments.experiment import Point, Record
from experiments.renoflows import Flow
from experiments.tests.small import goal_of, measured, said


def run(result: dict[str, Any], **parameters: Any) -> Record:
    """A run with this result."""
    return Record(str(parameters), parameters, result, 0.0, 1.0, 0.0)


# -- sabt-shares


def test_a_flow_without_losses_keeps_to_its_limit() -> None:
    flow = Flow(0.0, 5, 1)
    assert [flow.step(20.0) for _ in range(60)][-1] == 20
    assert flow.window <= 2 * 20, "no more than slow start's last step beyond it"


def test_a_loss_in_a_small_window_costs_a_timeout() -> None:
    flow = Flow(1.0, 5, 1)
    assert [flow.step(100.0) for _ in range(7)] == [0] * 7
    assert flow.interval() == (3, 2, 2), "2 segments, silence of 5 round trips, then one"


def test_equal_shares_do_not_swing_and_others_are_reported() -> None:
    places = [Point(how, {"how": how, "loss": 0.01, "part": 1.0, "seed": 1}, 1.0) for how in sabt_shares.HOW]
    records = measured(sabt_shares.EXPERIMENT, places)
    assert records[0].result["swing"] == 0.0
    assert all(one.result["fair"] > 0.9 for one in records)
    assert len(said(sabt_shares.EXPERIMENT, records).splitlines()) == 2 + len(records)


@pytest.mark.parametrize(("swing", "holds"), [(0.33, True), (0.34, False)])
def test_a_third_of_abts_deviation_is_the_limit(swing: float, holds: bool) -> None:
    swings = {sabt_shares.EQ: 0.0, sabt_shares.ABT: 1.0, sabt_shares.SABT: swing, sabt_shares.SLOW: 0.1}
    records = [
        run(
            {"swing": swings[how], "fair": 0.99, "fair_shares": 0.9, "mbit_s": 1.0, "first": [1.0]},
            how=how,
            loss=0.01,
            part=1.0,
            seed=1,
        )
        for how in sabt_shares.HOW
    ]
    assert goal_of(sabt_shares.EXPERIMENT.report(records), "SABT's deviation").reached is holds


# -- sabt-fig8


def beside(fast: dict[str, float]) -> list[Record]:
    """Runs in which the fast one has 40 Mbit/s alone, and this beside others."""
    rates = {0: dict.fromkeys(sabt_fig8.SENDS, 40.0), 15: fast}
    return [run({"mbit_s": [rates[slow][how], 9.0]}, how=how, slow=slow) for slow in rates for how in sabt_fig8.SENDS]


def test_a_fast_one_that_loses_a_tenth_is_said() -> None:
    fast = dict.fromkeys(sabt_fig8.SENDS, 36.0) | {"EQ": 10.0, "fixed 16 KB": 9.0}
    report = sabt_fig8.EXPERIMENT.report(beside(fast))
    assert [goal.reached for goal in report.goals] == [True] * 5
    worse = sabt_fig8.EXPERIMENT.report(beside({**fast, "SABT, headroom 1": 35.0, "EQ": 18.0}))
    assert [goal.reached for goal in worse.goals] == [False, False, True, True, False]
    assert "|" in said(sabt_fig8.EXPERIMENT, beside(fast))


# -- sabt-fig5


def test_the_least_budget_lies_between_those_measured() -> None:
    assert sabt_fig5.least_kb([(100, 50.0), (200, 90.0), (300, 100.0)], 100.0) == pytest.approx(250.0)
    assert sabt_fig5.least_kb([(100, 99.0), (200, 90.0), (300, 100.0)], 100.0) == 100.0
    assert math.isnan(sabt_fig5.least_kb([(100, 50.0)], 100.0))


def budgets(sabt: float, sabt_half: float) -> list[Record]:
    """Runs in which EQ needs 275 KB, ABT 200 KB; SABT has this rate at 200 KB, and at 140 KB with headroom 1."""
    curves = {
        "EQ": {140: 60.0, 200: 80.0, 280: 96.0, 400: 100.0},
        "ABT": {140: 70.0, 200: 95.0, 280: 98.0, 400: 100.0},
        "SABT": {140: 70.0, 200: sabt, 280: 98.0, 400: 100.0},
    }
    known = [(how, kb, "production", rate) for how, curve in curves.items() for kb, rate in curve.items()]
    known += [("EQ", 140, "paper", 50.0), ("ABT", 140, "paper", 60.0), ("SABT", 140, "paper", sabt_half)]
    known += [("plain Linux", 0, "production", 104.0)]
    return [run({"mbit_s": [rate, 0.0, 0.0]}, how=how, kb=kb, needs=needs) for how, kb, needs, rate in known]


@pytest.mark.parametrize(("sabt", "half", "holds"), [(95.0, 59.0, True), (80.0, 58.0, False)])
def test_what_is_enough_and_what_half_of_it_gives_are_held_against_the_others(
    sabt: float, half: float, holds: bool
) -> None:
    records = budgets(sabt, half)
    report = sabt_fig5.EXPERIMENT.report(records)
    assert [goal.reached for goal in report.goals] == [holds, holds, holds, True]
    sabt_fig5.EXPERIMENT.draw([replace(one) for one in records], Figure())


@pytest.mark.parametrize("figure", [sabt_shares, sabt_fig5, sabt_fig8])
def test_the_quick_form_takes_less_than_ten_minutes(figure: Any) -> None:
    assert sum(point.seconds for point in figure.points(True)) < 600
