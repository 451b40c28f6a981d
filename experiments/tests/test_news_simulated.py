"""Tests of the experiments that simulate Chen & Heidemann's topology, at a small size: results can be stored as JSON,
reported and drawn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments import news_fig15, news_fig16, news_scale, news_table1, sim_lab, sim_scale, sim_unlike, simulated
from experiments.experiment import Experiment, Record
from experiments.tests.small import crowd, goal_of, measured, report_text
from sim.clock import Clock
from topo.plan.crowd.network import TARGET

SMALL = {"period_s": 10.0, "onset_s": 35.0, "end_s": 70.0, "crowd_per_s": 100.0, "link_bit_per_s": 1.5e6}


@pytest.mark.parametrize("experiment", [news_table1.EXPERIMENT, news_fig15.EXPERIMENT, news_fig16.EXPERIMENT])
def test_a_crowd_is_measured_reported_and_drawn(experiment: Experiment) -> None:
    points = experiment.points(True)
    small = [replace(record, parameters={**record.parameters, **SMALL}) for record in (points[0], points[-1])]
    records = measured(experiment, small)
    text = report_text(experiment, records)
    assert text.count("\n") >= 2
    for record in records:
        assert record.result["crowd"]["response_loss"] is not None
        assert [row[0] for row in record.result["rows"]] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def test_table1_compares_the_alarms_of_repeated_runs() -> None:
    runs = [crowd(name, seed) for seed in (1, 2, 3) for name in ("none", "news")]
    alarm = goal_of(news_table1.report(runs), "alarm 20 s")
    assert alarm.reached and alarm.seen == "20 ± 0"
    late = [*runs, crowd("news", 4, alarm=4 / 3)]
    assert goal_of(news_table1.report(late), "alarm 20 s").reached is False
    never = goal_of(news_table1.report([*runs, crowd("news", 4, alarm=None)]), "alarm 20 s")
    assert never.reached is False and never.seen == "20 ± 0, never in 1 of 4"


def test_table1_does_not_take_a_higher_loss_for_the_papers() -> None:
    def losses(loss: float) -> tuple[bool | None, bool | None]:
        none = crowd("none", 1)
        lost = {**none.result, "crowd": none.result["crowd"] | {"response_loss": loss}}
        report = news_table1.report([replace(none, result=lost), crowd("news", 1)])
        return goal_of(report, "are lost under NEWS").reached, goal_of(report, "the paper's 25%").reached

    assert [losses(loss) for loss in (0.58, 0.27, 0.2)] == [(True, False), (True, True), (False, True)]


def test_table1_holds_news_against_the_best_static_limit() -> None:
    runs = [crowd("none", 1), crowd("news", 1, ar_kbps=90.0), crowd("static 60", 1, ar_kbps=101.0)]
    best = goal_of(news_table1.report([*runs, crowd("static 120", 1, ar_kbps=70.0)]), "best static")
    assert best.reached and best.seen == "90.0 against 101.0 of static 60"
    better = [*runs, crowd("static 80", 1, ar_kbps=102.0)]
    assert goal_of(news_table1.report(better), "best static").reached is False
    assert not any("static" in goal.text for goal in news_table1.report(runs[:2]).goals), "nothing to hold it against"


def test_table1_has_goals_of_production_mode() -> None:
    runs = [crowd("production", 1, alarm=0.25), crowd("production", 2, alarm=0.5, ar_kbps=80.0)]
    goals = news_table1.report(runs).goals
    assert [goal.reached for goal in goals] == [False, True, False], (
        "one alarm after 30 s, 90 % of the link, 0.84 of AR"
    )
    assert [goal.seen for goal in goals] == ["22 (0–118)", "90%", "0.84"]


def test_table1_says_how_long_the_runs_with_a_wider_link_are() -> None:
    def lossy(record: Record, loss: float) -> Record:
        return replace(record, result={**record.result, "crowd": record.result["crowd"] | {"response_loss": loss}})

    none = lossy(crowd("none", 1), 0.58)
    wide = lossy(crowd("none", 1, alarm=4 / 3), 0.26)
    wide = replace(wide, key="wide #1", parameters={**wide.parameters, "link_bit_per_s": news_table1.WIDER_BIT_PER_S})
    report = news_table1.report([none, wide])
    assert [row[0] for row in report.tables[0].rows] == ["none", "none, link of 7 Mbit/s, 4,000 s"]
    assert [row[3] for row in report.tables[0].rows] == ["95.0", "95.0"], "AR before"
    short = replace(wide, parameters={**wide.parameters, **simulated.QUICK_TIMES})
    silent = replace(short, result={**short.result, "crowd": crowd("none", 2, alarm=None).result["crowd"]})
    report = news_table1.report([none, short, silent])
    assert [row[0] for row in report.tables[0].rows] == ["none", "none, link of 7 Mbit/s, 760 s"]


def test_a_figure_that_some_runs_lack_says_so() -> None:
    runs = [crowd("news", seed, ar_kbps=None if seed == 3 else 90.0) for seed in (1, 2, 3)]
    assert simulated.text(runs, "ar_kbps") == "90.0 ± 0.0 in 2 of 3"
    assert simulated.percent(runs, "turned_away") == "30 ± 0 %"
    assert simulated.text(runs[2:], "ar_kbps") == "-"


def at_period(period_s: float, **changes: float) -> Record:
    base = crowd("news", 1)
    figures = {**base.result["crowd"], "false_alarms": 0, **changes}
    parameters = {"period_s": period_s, "variant": "news"}
    return replace(base, parameters=parameters, result={**base.result, "crowd": figures})


def test_fig15_has_a_goal_for_each_interval_with_false_alarms() -> None:
    runs = [at_period(15, false_alarms=1), at_period(15), at_period(30)]
    fifteen, thirty = (goal_of(news_fig15.report(runs), f"false alarms at {period} s") for period in (15, 30))
    assert (fifteen.reached, fifteen.seen) == (True, "0.5 a run, in 1 of 2")
    assert (thirty.reached, thirty.seen) == (False, "0.0 a run, in 0 of 1")
    assert goal_of(news_fig15.report(runs[:2]), "false alarms at 30 s").reached is None


def test_fig15_holds_the_papers_best_interval_against_the_best_ar() -> None:
    def best(at_60: float, at_120: float) -> tuple[bool | None, str]:
        goal = news_fig15.report([at_period(60, ar_kbps=at_60), at_period(120, ar_kbps=at_120)]).goals[-1]
        return goal.reached, goal.seen

    assert best(98.3, 105.6) == (True, "98 against 106 at 120 s")
    assert best(90.0, 105.6) == (False, "90 against 106 at 120 s")
    assert news_fig15.report([at_period(120)]).goals[-1].reached is None


def test_an_alarm_in_words_says_in_how_many_runs_there_was_none() -> None:
    runs = [crowd("news", seed, alarm=alarm) for seed, alarm in enumerate((4 / 3, None, None))]
    assert simulated.alarm(runs) == "alarm after 80 s in 1 of 3 runs, never in the others"
    assert simulated.alarm(runs[:2]).endswith("in 1 of 2 runs, never in the other")
    assert simulated.alarm(runs[:1]) == "alarm after 80 s" and simulated.alarm(runs[1:]) == "no alarm"


def test_fig15_says_that_production_mode_does_not_depend_on_the_interval() -> None:
    def production(period_s: float, step_s: float) -> Record:
        record = at_period(period_s)
        rows = [[1000 + number * step_s, 9e4, 35.0, 35.0, None, 0] for number in range(5)]
        parameters = {"period_s": period_s, "variant": "production"}
        return replace(record, parameters=parameters, result={**record.result, "rows": rows})

    report = news_fig15.report([at_period(60), production(15, 1.0), production(120, 1.0)])
    assert [row[0] for row in report.tables[0].rows] == ["60", "production mode, 15", "production mode, 120"]
    keys = [point.key for point in news_fig15.points(False)]
    assert sum("production" in key for key in keys) == 6
    assert not any("production" in point.key for point in news_fig15.points(True))


def bystanders(name: str, **changes: float) -> Record:
    """Return a record of the experiment on Fig. 16 with known figures; `changes` replaces figures."""
    known = next(point for point in news_fig16.points(False) if point.key in (f"{name} #1", f"{name} quick #1"))
    base = crowd("news", 1)
    figures = {
        **base.result["crowd"],
        "false_alarms": 0,
        "bystander_goodput_kbps": 337.0,
        "goodput_kbps": 4000.0,
        "finished_per_s": 120.0,
        **changes,
    }
    quiet = {"ar_kbps": 100.0, "bystander_goodput_kbps": 337.0}
    result = {**base.result, "crowd": figures, "quiet": quiet}
    return Record(known.key, known.parameters, result, 0.0, 1.0, 0.0)


def test_fig16_holds_half_and_double_of_delta_and_p_against_the_papers_values() -> None:
    runs = [
        bystanders("as published"),
        bystanders("delta 0.05", false_alarms=1),
        bystanders("delta 0.2", ar_kbps=70.0),
        bystanders("p 5 %"),
        bystanders("p 50 %", detected_after_intervals=4 / 3, bottleneck_used=0.5),
    ]
    report = news_fig16.report(runs)
    goal = report.goals[0]
    assert goal.reached is False
    assert goal.seen == "delta 0.05: 1.0 false alarms a run; delta 0.2: AR keeps 70% rather than 90%"
    assert [row[0] for row in report.tables[0].rows] == ["as published", "delta 0.05", "delta 0.2", "p 5 %", "p 50 %"]
    assert [row[-1] for row in report.tables[0].rows] == ["-"] * 5, "nobody was named"
    alike = news_fig16.report([runs[0], runs[3]])
    assert alike.goals[0].reached and alike.goals[0].seen == "all of p 5 %"


def full_fig16(**changed: dict[str, Any]) -> list[Record]:
    """Return a record for every run of the full form; `changed` contains figures that differ, by the name of the
    run."""
    made: list[Record] = []
    for point in news_fig16.points(False):
        name = point.key.rpartition(" #")[0].removesuffix(" quick")
        made.append(replace(bystanders(name, **changed.get(name, {})), key=point.key, parameters=point.parameters))
    return made


def test_fig16_reports_its_full_form() -> None:
    changed = {
        "FTP bystander, production": {"bystander_goodput_kbps": 100.0, "bottleneck_used": 0.97},
        "slow server, buffer of 1,000, none": {"admitted_per_s": 200.0, "bottleneck_used": 1.0, "turned_away": 0.1},
        "p 50 %": {"detected_after_intervals": None},
        "N 64, 100 others": {"ar_kbps": 60.0},
        "N 8, 100 others": {"ar_kbps": 60.0},
    }
    report = news_fig16.report(full_fig16(**changed))
    cases, parameters = report.tables
    assert len(cases.rows) == 8 + 2 and len(parameters.rows) == len(news_fig16.SENSITIVE)
    assert all("±" in row[1] for row in cases.rows)
    under_news, production, half_and_double = report.goals
    assert under_news.reached and production.reached is False and production.seen == "30%" and half_and_double.reached
    bulk = [[0.0, 2_500_000], [60.0, 2_500_000]]
    news_fig16.EXPERIMENT.draw(
        [replace(record, result={**record.result, "bulk": bulk}) for record in full_fig16()], Figure()
    )


def test_fig16_has_both_modes_and_then_the_parameters_behind_the_cases() -> None:
    keys = [point.key for point in news_fig16.points(False)]
    cases, parameters = keys[: 3 * 8 + 6], keys[3 * 8 + 6 :]
    both = [f"{case}, production #{seed}" for seed in (1, 2, 3) for case in ("FTP bystander", "impatient users")]
    assert cases[-6:] == both and "impatient users, none #1" in cases
    assert len(parameters) == 5 * len(news_fig16.SENSITIVE)
    assert all(key.rpartition(" #")[0].endswith(" quick") for key in parameters)
    for words, least in (("delta ", 4), ("p ", 4), ("step ", 3), ("bucket ", 3), ("N ", 4)):
        assert sum(name.startswith(words) for name in news_fig16.SENSITIVE) >= least
    quick = [point.key for point in news_fig16.points(True)]
    assert quick == ["FTP bystander, NEWS quick #1", "FTP bystander, none quick #1", "impatient users, NEWS quick #1"]


def test_what_fig16_changes_reaches_the_simulated_controller_and_server() -> None:
    by_key = {point.key: point for point in news_fig16.points(False)}

    def news(name: str) -> tuple[float, float, float, float, int]:
        options = simulated.planned(by_key[f"{name} quick #1"]).config.news
        assert options is not None
        return options.tolerance, options.fast_share, options.step, options.bucket_s, options.table_size

    assert news("as published") == (0.1, 0.1, 0.2, 0.25, 64)
    assert news("delta 0.4") == (0.4, 0.1, 0.2, 0.25, 64)
    assert news("p 20 %") == (0.1, 0.2, 0.2, 0.25, 64)
    assert news("step 0.05") == (0.1, 0.1, 0.05, 0.25, 64)
    assert news("bucket 4 s") == (0.1, 0.1, 0.2, 4.0, 64)
    assert news("N 8, 100 others") == (0.1, 0.1, 0.2, 0.25, 8)
    many = simulated.planned(by_key["N 8, 100 others quick #1"]).config
    assert len(many.services) == 102 and many.news is not None and many.news.identify
    server = simulated.planned(by_key["slow server, buffer of 1,000, NEWS #1"]).servers(Clock())[TARGET][0]
    taken = 0
    while server.syn():
        server.request(2048, lambda _: None, lambda: True)
        taken += 1
    assert taken == 1 + 1001, "one is served, and as with Linux one more waits than the buffer has room for"


def test_points_are_distinguished_by_their_keys() -> None:
    for experiment in (news_table1, news_fig15, news_fig16, news_scale, sim_scale, sim_unlike, sim_lab):
        for quick in (True, False):
            keys = [point.key for point in experiment.EXPERIMENT.points(quick)]
            assert len(set(keys)) == len(keys)


def test_a_point_has_the_length_of_its_form() -> None:
    full = simulated.point("x", "news", quick=False)
    quick = simulated.point("x", "news", quick=True)
    assert quick.key != full.key
    assert quick.seconds < full.seconds / 4
