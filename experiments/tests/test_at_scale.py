"""Tests of the simulations at scale: pools of servers, and crowds with many destinations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments import news_scale, sim_scale
from experiments.experiment import Point, Record
from experiments.tests.small import crowd, goal_of, measured, report_text
from sim.secondlook import SecondLook


def test_pools_are_measured_reported_and_drawn() -> None:
    points = [
        Point(
            f"{variant} {seed}",
            {"servers": 4, "variant": variant, "switches": switches, "end_s": 20.0, "seed": seed},
            1.0,
        )
        for seed in (1, 2)
        for variant, switches in (("fixed", 1), ("paper", 1), ("production-first", 1), ("production", 2))
    ]
    records = measured(sim_scale.EXPERIMENT, points)
    text = report_text(sim_scale.EXPERIMENT, records)
    assert "| 4 | 2 | production |" in text and text.count("\n") == 5, "repeated runs are one row"
    plans = [sim_scale.plan(point.parameters) for point in points[2:4]]
    assert [plan_of_pool.second_look for plan_of_pool in plans] == [None, SecondLook] and plans[0].options == plans[
        1
    ].options
    assert records[0].result["weight_changes"] == 0
    assert records[0].result["loaded_left"] == pytest.approx(1)
    assert records[0].result["failed"] > 0 and " % |" in text
    assert len(records[3].result["shares"]) == 4, "one series, of both switches"


def test_a_share_has_settled_when_it_stays_to_a_tenth_of_its_way() -> None:
    times = [float(second) for second in range(1, 61)]
    assert sim_scale.settled_s(times, [max(0.4, 1 - 0.03 * second) for second in times]) == 18.0
    assert sim_scale.settled_s(times, [1 - 0.001 * second for second in times]) == float("inf"), "it still falls"
    assert sim_scale.settled_s(times, [1.0] * 60) == float("inf")


def pool_run(
    servers: int, variant: str, share: float, *, switches: int = 1, falling: bool = False, **changes: Any
) -> Record:
    """Return a record of the experiment with large pools, with known figures."""
    shares = [[float(second), share * (2 - second / 20 if falling else 1)] for second in range(21)]
    result = {
        "connections": 9,
        "mean_ms": 1.0,
        "p99_ms": 2.0,
        "failed": 0.0,
        "loaded_left": share,
        "loaded_fair": 0.1,
        "settled_s": None if falling else 40.0,
        "swing": 0.0,
        "decide_ms": 5.0,
        "shares": shares,
        **changes,
    }
    return Record(
        f"{servers} {variant} {switches}",
        {"servers": servers, "variant": variant, "switches": switches, "end_s": 180.0, "seed": 1},
        result,
        0.0,
        1.0,
        0.0,
    )


def test_the_simulation_at_scale_says_what_the_loaded_still_get() -> None:
    runs = [
        pool_run(3, "paper", 0.2),
        pool_run(3, "production", 0.8),
        pool_run(300, "paper", 0.6, falling=True, failed=0.02),
        pool_run(300, "production", 0.5),
    ]
    report = sim_scale.report(runs)
    assert report.tables[0].rows[2][6:10] == ["2.00 %", "0.60", "not in 180 s", "0.00"]


def test_the_simulation_at_scale_judges_the_mean_of_repeated_decisions() -> None:
    runs = [pool_run(1000, "production", 0.5, decide_ms=ms) for ms in (80.0, 140.0)]
    goal = sim_scale.report([pool_run(3, "production", 0.5), *runs]).goals[0]
    assert goal.reached is False and goal.seen.startswith("110.0 (0–") and "1,000 servers" in goal.text


def test_news_at_scale_is_measured_reported_and_drawn() -> None:
    (point, *_) = news_scale.points(True)
    small = [
        replace(point, parameters={**point.parameters, **changes})
        for changes in (
            {"period_s": 10.0, "onset_s": 35.0, "end_s": 70.0},
            {"period_s": 10.0, "others": 4, "end_s": 30.0},
        )
    ]
    records = measured(news_scale.EXPERIMENT, small)
    text = report_text(news_scale.EXPERIMENT, records)
    assert "| news-hsi | 0.25 | 17 | 250 |" in text and "| never in 1 of 1 |" in text
    assert records[0].result["named"] == records[0].result["named_right"] > 0
    goals = news_scale.report(records).goals
    assert [goal.reached for goal in goals[:3]] == [False, False, True]
    assert goals[0].seen == "news-hsi, size 0.25, destinations 5: never in 1 of 1", "it ends before the crowd"
    assert goals[1].seen == "news-hsi, size 0.25, destinations 5: 0 of 0"


def scaled(
    size: float,
    others: int = 16,
    *,
    variant: str = "news-hsi",
    period_s: float = news_scale.NEVER_S,
    **changes: float | None,
) -> Record:
    """Return a record of the experiment with large crowds, with known figures."""
    base = crowd("news", 1)
    result = {
        **base.result,
        "clients": round(1000 * size),
        "requests": 100_000,
        "crowd": base.result["crowd"] | {"false_alarms": 0},
        "named": 5,
        "named_right": 5,
        "others_refused": 0.0,
        "flows": 4000 * size,
        "least_share": 0.25,
        "measured_share": 0.9,
        "decide_ms": 10 * size,
        "longest_ms": 50.0,
        "of_a_core": 0.005 * size,
        **changes,
    }
    parameters = {"variant": variant, "size": size, "others": others, "others_period_s": period_s, "seed": 1}
    return Record(f"size {size}, {others} others, {period_s}, {variant} #1", parameters, result, 0.0, 1.0, 0.0)


def test_news_at_scale_says_where_its_goals_are_missed_and_what_size_changes() -> None:
    runs = [scaled(1.0), scaled(16.0, measured_share=0.4, named_right=4), scaled(1.0, 250, others_refused=0.02)]
    report = news_scale.report(runs)
    assert [goal.reached for goal in report.goals] == [True, False, False, False, True]
    assert [goal.seen for goal in report.goals] == [
        "in all 3 runs: sizes 1 to 16, 17 to 251 destinations",
        "news-hsi, size 16, destinations 17: 4 of 5",
        "news-hsi, size 1, destinations 251: 2.00 %",
        "news-hsi, size 16, destinations 17: 8.00 %",
        "in all 3 runs: sizes 1 to 16, 17 to 251 destinations",
    ]


def test_news_at_scale_says_what_part_of_the_responses_is_measured() -> None:
    runs = [scaled(16.0), replace(scaled(16.0, least_share=1 / 64), key="another seed")]
    (_, cost) = news_scale.report(runs).tables
    assert cost.rows[0][cost.heading.index("packets measured")].endswith(" % of 1/64")
    (_, cost) = news_scale.report([scaled(1.0, least_share=1.0)]).tables
    assert cost.rows[0][cost.heading.index("packets measured")].endswith(" %")


def test_news_at_scale_says_of_which_runs_it_speaks() -> None:
    runs = [replace(scaled(0.25, variant=variant), load=16.4) for variant in news_scale.VARIANTS]
    lossy = {**runs[1].result, "crowd": runs[1].result["crowd"] | {"response_loss": 0.086}}
    report = news_scale.report([runs[0], replace(runs[1], result=lossy)])
    assert report.goals[0].seen == "in both runs: size 0.25, 17 destinations"
    loss = goal_of(report, "at most 2% of the packets")
    assert (loss.reached, loss.seen) == (False, "production, size 0.25, destinations 17: 8.6 %")
    assert all(word not in news_scale.EXPERIMENT.about for word in ("sixteen", "250"))
    assert news_scale.report(runs[:1]).goals[0].seen.startswith("in the one run: ")


def test_news_at_scale_says_what_balancing_the_other_services_costs() -> None:
    runs = [scaled(1.0, 250), scaled(1.0, 250, period_s=10.0, of_a_core=0.3)]
    report = news_scale.report(runs)
    assert report.goals[3].seen == "news-hsi, size 1, destinations 251, balanced each 10 s: 30.00 %"
    assert [row[2] for row in report.tables[1].rows] == ["251", "251, balanced each 10 s"]
    periods = [point.parameters["others_period_s"] for point in news_scale.points(False)]
    assert periods.count(10.0) == 3 and all(
        point.parameters["others_period_s"] > 460 for point in news_scale.points(True)
    )
