"""The simulations at scale: pools of servers, and crowds with many destinations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from experiments import (
    news_scale,
    sim_scale,
)
from experiments.experiment import Point, Record
from experiments.tests.small import crowd, goal_of, measured, said
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
    text = said(sim_scale.EXPERIMENT, records)
    assert "| 4 | 2 | production |" in text and text.count("\n") == 5, "repeated runs are one row"
    plans = [sim_scale.plan(one.parameters) for one in points[2:4]]
    assert [one.look for one in plans] == [None, SecondLook] and plans[0].options == plans[1].options
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
    """A run at scale whose figures are known."""
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
    settling, swings, against, look, shared = report.text[1:]
    assert "paper leaves 0.20 of 3 (settled: 40), 0.60 of 300 (settled: not in 180 s); production leaves" in settling
    assert settling.endswith("In the last quarter of the runs the share still falls: paper in pools of 300 (by 0.12).")
    assert against.endswith("with paper mode, production takes less in pools of 3 and more in pools of 300.")
    assert swings == look == shared == ""
    assert report.tables[0].rows[2][6:10] == ["2.00 %", "0.60", "not in 180 s", "0.00"]
    even = [pool_run(3, "paper", 0.2), pool_run(3, "production", 0.2)]
    settling, _, against, *_ = sim_scale.report(even).text[1:]
    assert settling.endswith("give at once.") and against == ""
    mixed = [pool_run(3, "paper", 0.2), pool_run(3, "paper", 0.2, settled_s=None)]
    assert "(settled: 40, not in 180 s in 1 of 2)" in sim_scale.report(mixed).text[1]


def test_a_share_still_falls_by_all_runs_of_a_mode_and_for_what_it_has_fallen() -> None:
    def falling(servers: int, variant: str, *ends: float) -> list[Record]:
        """Shares fall evenly from 1 to their ends."""
        made: list[Record] = []
        for end in ends:
            shares = [[5.0 * number, 1 - (1 - end) * number / 35] for number in range(36)]
            made.append(pool_run(servers, variant, (2 * end + 1) / 3, shares=shares, settled_s=None))
        return made

    steady = falling(1000, "paper", 0.88, 0.88, 0.87)
    still = [[5.0 * number, max(0.4, 1 - 0.03 * number)] for number in range(36)]
    alone = [*falling(100, "paper", 0.4), *(pool_run(100, "paper", 0.4, shares=still) for _ in range(4))]
    to_and_fro = [
        pool_run(10, "production", 0.5, shares=falling(10, "paper", end)[0].result["shares"], swing=0.2, settled_s=None)
        for end in (0.2, 1.6, 0.3)
    ]
    settling, swings, *_ = sim_scale.report([*steady, *alone, *to_and_fro]).text[1:]
    assert settling.endswith("the share still falls: paper in pools of 1,000 (by 0.03 ± 0.00)."), "a little, but evenly"
    assert "0.20 ± 0.00 (production, 10 servers)" in swings, "what falls in some runs and rises in others swings"


def test_the_simulation_at_scale_says_what_the_second_look_adds() -> None:
    runs = [pool_run(3, "production-first", 0.8, mean_ms=32.0, failed=0.05), pool_run(3, "production", 0.8)]
    assert "go from 32.0 to 1.0 ms and 5.00 to 0.00 % (pool of 3)." in sim_scale.report(runs).text[4]


def test_the_simulation_at_scale_says_where_a_share_goes_to_and_fro() -> None:
    runs = [
        pool_run(3, "production", 0.4, swing=0.2, settled_s=None),
        pool_run(30, "production", 0.4, swing=0.2),
        pool_run(30, "paper", 0.3),
        pool_run(3, "paper", 0.2, swing=0.01),
    ]
    text = sim_scale.report(runs).text[2]
    assert "over the last third of 0.20 (production, 3 servers): production mode gives ratio back" in text
    assert sim_scale.report([pool_run(3, "paper", 0.5, falling=True, swing=0.2)]).text[2] == "", "it falls"
    shares = [[float(second), (0.3, 0.6)[second % 2]] for second in range(20)]
    assert "still falls" not in sim_scale.report([pool_run(3, "production", 0.45, shares=shares)]).text[1]


def test_the_simulation_at_scale_says_what_sharing_a_pool_costs() -> None:
    def text(shares: Sequence[float]) -> str:
        runs = [
            pool_run(30, "paper", share, switches=number, settled_s=40.0 * number)
            for number, share in zip((1, 2, 4), shares, strict=True)
        ]
        return sim_scale.report(runs).text[5]

    grows = text((0.3, 0.4, 0.5))
    assert (
        "paper leaves 0.30 behind 1 (settled: 40), 0.40 behind 2 (settled: 80), 0.50 behind 4 (settled: 160)" in grows
    )
    assert grows.endswith(": the more switches, the more.")
    assert "0.20 behind 4 (settled: 160): in no order of their number" in text((0.3, 0.4, 0.2))
    scattered = [
        pool_run(30, "paper", share + off, switches=number)
        for number, share in ((1, 0.61), (2, 0.652), (4, 0.649))
        for off in (-0.02, 0.0, 0.02)
    ]
    text_of_several = sim_scale.report(scattered).text[5]
    assert text_of_several.endswith("0.65 behind 4 (settled: 40 ± 0): no further apart than chance.")


def test_the_simulation_at_scale_judges_the_mean_of_repeated_decisions() -> None:
    runs = [pool_run(1000, "production", 0.5, decide_ms=ms) for ms in (80.0, 140.0)]
    goal = sim_scale.report([pool_run(3, "production", 0.5), *runs]).goals[0]
    assert goal.reached is False and goal.seen.startswith("110.0 ± ") and "1,000 servers" in goal.text


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
    text = said(news_scale.EXPERIMENT, records)
    assert "| news-hsi | 0.25 | 17 | 250 |" in text and "| never in 1 of 1 |" in text
    assert records[0].result["named"] == records[0].result["named_right"] > 0
    goals = news_scale.report(records).goals
    assert [one.reached for one in goals[:3]] == [False, False, True]
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
    """A crowd of some size whose figures are known."""
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
    assert [one.reached for one in report.goals] == [True, False, False, False, True]
    assert [one.seen for one in report.goals] == [
        "in all 3 runs: sizes 1 to 16, 17 to 251 destinations",
        "news-hsi, size 16, destinations 17: 4 of 5",
        "news-hsi, size 1, destinations 251: 2.00 %",
        "news-hsi, size 16, destinations 17: 8.00 %",
        "in all 3 runs: sizes 1 to 16, 17 to 251 destinations",
    ]
    assert (
        "news-hsi keeps of AR 0.95 at 1, 0.95 at 16, and measures 90 %, 40 % of the responses' packets"
        in report.text[1]
    )
    assert "10.0 ms of CPU time (news-hsi, size 1, destinations 17) to 160.0 ms (news-hsi, size 16," in report.text[2]
    assert news_scale.report(runs[:1]).text[1:4] == ["", "", ""]


def test_news_at_scale_says_of_which_runs_it_speaks() -> None:
    runs = [replace(scaled(0.25, variant=variant), load=16.4) for variant in news_scale.VARIANTS]
    lossy = {**runs[1].result, "crowd": runs[1].result["crowd"] | {"response_loss": 0.086}}
    report = news_scale.report([runs[0], replace(runs[1], result=lossy)])
    assert report.goals[0].seen == "in both runs: size 0.25, 17 destinations"
    loss = goal_of(report, "at most 2% of the packets")
    assert (loss.reached, loss.seen) == (False, "production, size 0.25, destinations 17: 8.6 %")
    assert report.text[-1] == "The machine's load average was 16 to 16 at the end of the runs."
    assert "4 Mbit/s (ours: the paper gives no rate)" in report.text[0]
    assert all(word not in news_scale.EXPERIMENT.about for word in ("sixteen", "250"))
    assert news_scale.report(runs[:1]).goals[0].seen.startswith("in the one run: ")


def test_news_at_scale_says_what_balancing_the_other_services_costs() -> None:
    runs = [scaled(1.0, 250), scaled(1.0, 250, period_s=10.0, of_a_core=0.3)]
    report = news_scale.report(runs)
    assert report.text[3].endswith("take 30.00 % of a core rather than 0.50 % with 251 each 10 s.")
    assert report.goals[3].seen == "news-hsi, size 1, destinations 251, balanced each 10 s: 30.00 %"
    assert [row[2] for row in report.tables[1].rows] == ["251", "251, balanced each 10 s"]
    periods = [one.parameters["others_period_s"] for one in news_scale.points(False)]
    assert periods.count(10.0) == 3 and all(one.parameters["others_period_s"] > 460 for one in news_scale.points(True))
