"""Tests of the lab's flash crowds: the runs that are made, and the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments import news_lab
from experiments.conditions import times
from experiments.experiment import Point, Record
from experiments.labruns import LabRuns
from experiments.news_lab import EXPERIMENT
from experiments.news_lab_runs import set_ups
from experiments.news_lab_verdicts import findings
from experiments.runner import recorded
from experiments.store import without_nan
from experiments.tests.small import tables_of
from topo.labs.crowds.run import Run
from topo.plan.crowd.measures import Records
from topo.plan.crowd.readings import Row, Sample
from topo.plan.crowd.scenarios import Settings
from topo.plan.outcomes import Ending, Outcome
from topo.testbed.errors import SetupError
from topo.testbed.nodes import KERNEL

QUIET_AR, PERIOD_S, ONSET_S, END_S = 1e6, 8.0, 80.0, 160.0


def records(*, ar_bps: float, limit_per_s: float, latency_s: float, drops: int) -> Records:
    """Return the records of a run with constant figures during the crowd; before the crowd, all runs are equal."""

    def web(due: float) -> Outcome:
        took = 0.02 if due < ONSET_S else latency_s
        return Outcome(due, 1, "bystander", 1000, 0.01, 0.01, took, 1000, Ending.FINISHED, 0, 0.001)

    def decided(moment: float) -> Row:
        crowd = moment > ONSET_S
        limit = limit_per_s if crowd else math.nan
        return Row(moment, ar_bps if crowd else QUIET_AR, moment, 1.0, 0.0, crowd, limit, "", "")

    def sampled(moment: float) -> Sample:
        lost = round(drops * max(0.0, moment - ONSET_S))
        return Sample(moment, round(1000 * moment), round(1e5 * moment), lost, moment / 8, 1, moment / 16, 1, 1, 0)

    return Records(
        period_s=PERIOD_S,
        onset_s=ONSET_S,
        end_s=END_S,
        link_bit_per_s=2e6,
        controls=not math.isnan(limit_per_s),
        crowd=True,
        outcomes=[web(1.0 + second) for second in range(150)],
        bulk=[(float(second), 5000) for second in range(160)],
        samples=[sampled(4.0 * number) for number in range(41)],
        rows=[decided(PERIOD_S * number + 5) for number in range(1, 20)],
    )


def of(point: Point) -> Records:
    """Return plausible records for a point: AR (the response rate of the fastest flows) is low without control and
    under the static limit of 60, higher under all other variants, and highest at T = 128 s."""
    variant, period_s = point.parameters["variant"], point.parameters["period_s"]
    if point.parameters["switch"] == KERNEL:
        return replace(records(ar_bps=2e5, limit_per_s=math.nan, latency_s=1.0, drops=700), rows=[])
    if variant in ("none", "static-60"):
        return records(ar_bps=2e5, limit_per_s=math.nan, latency_s=1.0, drops=700)
    ar_bps = 1.1e6 if period_s == 128.0 else 9e5
    return records(ar_bps=ar_bps, limit_per_s=240.0, latency_s=0.03, drops=1)


def test_the_full_form_is_the_news_programme_and_the_sweep_of_t_several_times() -> None:
    points = EXPERIMENT.points(False)
    directories = [point.parameters["directory"] for point in points]
    assert len(set(directories)) == len(points) == 22 * news_lab.REPETITIONS
    assert all(point.parameters["k"] == 8 for point in points)
    first, second = points[:22], points[22:44]
    assert {"news/runs/server-limited/static-40", "overhead/runs/T256"} < {
        point.parameters["directory"] for point in first
    }
    assert all(point.parameters["directory"].startswith("experiments/news-lab/series-2/") for point in second)
    assert {point.parameters["seed"] for point in first} == {Settings().seed}, "as `make news` has it"
    assert len({point.parameters["seed"] for point in points}) == news_lab.REPETITIONS
    assert [point.key.rpartition(" #")[0] for point in first] == [point.key.rpartition(" #")[0] for point in second]
    assert times(measured(points)) == "3"
    (without,) = [point for point in first if point.parameters["switch"] == KERNEL]
    assert (without.parameters["scenario"], without.parameters["variant"]) == ("network-limited", "none")


def test_the_quick_form_is_with_and_without_control_once() -> None:
    assert [point.parameters["variant"] for point in EXPERIMENT.points(True)] == ["none", "news"], "as published"
    assert sum(point.seconds for point in EXPERIMENT.points(True)) < 160


def test_bmv2_has_its_own_compression_and_results_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCH", "bmv2")
    points = EXPERIMENT.points(False)
    factors = {point.parameters["directory"]: point.parameters["k"] for point in points}
    assert factors["news-bmv2/runs/network-limited/none"] == 2
    assert factors["experiments-bmv2/news-lab/series-1/without-switch"] == 2
    assert set(factors.values()) == {2, 4}
    production = next(point for point in points if point.parameters["variant"] == "production")
    assert production.parameters["ramp_s"] == 30, "in the seconds of this clock, as on the embedded switch"
    monkeypatch.setenv("SWITCH", "embedded")
    assert not set(factors) & {point.parameters["directory"] for point in EXPERIMENT.points(False)}


def measured(points: Sequence[Point]) -> list[Record]:
    def result(point: Point) -> dict[str, Any]:
        passed = {"received": 9, "dropped": 1, "lost_before": 0, "lost_after": 1}
        more = {"conditions": "distance: netem; initial window: 2 segments; congestion control: reno"}
        with_switch = point.parameters["switch"] != KERNEL
        return without_nan({**news_lab.simulated.values(of(point)), **more, "switch": passed if with_switch else None})

    return [Record(point.key, point.parameters, result(point), 0.0, 1.0, 0.5) for point in points]


def once() -> list[Point]:
    """Return the points of the first series (repetition) of the full form."""
    return [point for point in EXPERIMENT.points(False) if point.key.endswith("#0")]


def test_the_report_has_the_labs_numbers() -> None:
    report = EXPERIMENT.report(measured(once()))
    text = tables_of(report)
    assert "| NEWS + hot spot | 0.24 | 0.24 | 1.5 |" in text  # 30 ms at the compression k = 8
    assert "| before the crowd | 0.16 | 0.16 | 1.0 |" in text
    assert "| NEWS, production | 0.24 | 0.24 | 1.5 |" in text
    assert "| no control, without the switch | 0 | 0 | 0 | - | 41.2 % |" in text
    by_text = {goal.text.partition(":")[0]: goal for goal in report.goals}
    assert by_text["Fig. 19"].seen == by_text["Fig. 22"].seen == "4.50 times"
    assert [goal.text for goal in report.goals if not goal.reached] == [
        by_text["Figs. 12 and 20"].text,
        by_text["Table II"].text,
    ]
    assert report.goals[-1].seen == "at 128 s"
    figure = Figure()
    EXPERIMENT.draw(measured(once()), figure)
    network, requests, server, _ = figure.axes
    assert [len(axes.lines) for axes in (network, requests, server)] == [4, 8, 4], "both modes, in both scenarios"


def test_repeated_runs_are_one_row_with_an_interval() -> None:
    report = EXPERIMENT.report(measured(EXPERIMENT.points(False)))
    assert len(report.tables[0].rows) == 1 + 8 + 1 and len(report.tables[3].rows) == 5
    text = tables_of(report)
    assert "| NEWS + hot spot | 0.24 ± 0.00 | 0.24 ± 0.00 | 1.5 ± 0.0 |" in text
    EXPERIMENT.report(measured(EXPERIMENT.points(False)[:30]))
    EXPERIMENT.draw(measured(EXPERIMENT.points(False)), Figure())


FIGURES = ("offered", "admitted", "finished", "rejected", "loss", "ar", "used", "bulk", "mean_s", "median_s", "memory")
BEFORE = (20, 20, 20, 0, 0.1, 131, 56, 327, 0.24, 0.20, 53)
SEEN = {
    ("network-limited", "none"): (121, 109, 83, 1, 46.8, 27, 100, 0, 3.71, 0.58, 0),
    ("network-limited", "news"): (549, 33, 32, 66, 0.2, 128, 70, 327, 4.00, 0.24, 0),
    ("network-limited", "news-hsi"): (565, 30, 30, 69, 0.3, 130, 72, 327, 0.27, 0.23, 0),
    ("network-limited", "static-news"): (559, 29, 29, 69, 0.2, 133, 72, 327, 0.26, 0.22, 0),
    ("network-limited", "static-30"): (558, 30, 30, 69, 0.2, 130, 72, 327, 0.26, 0.22, 0),
    ("network-limited", "static-40"): (508, 40, 40, 59, 1.0, 124, 88, 327, 0.3, 0.3, 0),
    ("network-limited", "static-60"): (410, 60, 58, 41, 25.8, 54, 100, 5, 2.0, 0.6, 0),
    ("network-limited", "production"): (530, 41, 41, 59, 1.3, 135, 89, 326, 0.39, 0.32, 0),
    ("server-limited", "none"): (488, 47, 44, 53, 1.1, 32, 97, 328, 0.4, 0.3, 96),
    ("server-limited", "news"): (553, 32, 32, 67, 0.1, 121, 69, 327, 4.0, 0.23, 54),
    ("server-limited", "news-hsi"): (565, 30, 29, 69, 0.1, 124, 70, 327, 0.3, 0.23, 53),
}
"""Figures of one series of runs by scenario and variant, in the order of FIGURES and in Chen & Heidemann's time scale;
shares are in percent, and latencies in seconds."""
SWEEP = {
    16.0: (26, 34, 126, 59, 491, 3.6),
    32.0: (52, 61, 49, 35, 390, 4.6),
    64.0: (38, 30, 130, 65, 554, 2.8),
    128.0: (77, 46, 112, 52, 489, 3.8),
    256.0: (154, 58, 64, 42, 426, 4.2),
}
"""Figures by T in seconds: alarm (s), connected requests/s, AR (kbit/s), rejected requests (%), offered requests/s, and
the controller's CPU use in the crowd (%)."""


def seen(point: Point) -> Record | None:
    """Return a point's record with the figures of SEEN or SWEEP, converted to the lab's compressed time scale (factor
    k); None for other points."""
    parameters = point.parameters
    k, period_s = parameters["k"], parameters["period_s"]

    def window(values: Sequence[float]) -> dict[str, Any]:
        figures_of_run = dict(zip(FIGURES, values, strict=True))
        return {
            **{f"{name}_per_s": k * figures_of_run[name] for name in ("offered", "admitted", "finished")},
            "rejected_share": figures_of_run["rejected"] / 100,
            "response_loss": figures_of_run["loss"] / 100,
            "ar_kbps": k * figures_of_run["ar"],
            "bottleneck_used": figures_of_run["used"] / 100,
            "bystander_goodput_kbps": k * figures_of_run["bulk"],
            "bystander_latency_mean_ms": 1000 * figures_of_run["mean_s"] / k,
            "bystander_latency_median_ms": 1000 * figures_of_run["median_s"] / k,
            "slow_memory_share": figures_of_run["memory"] / 100,
            "detected_after_intervals": 0.6,
            "false_alarms": 0,
            "late_p99_ms": 4.0,
            **dict.fromkeys(("controller_cpu", "switch_cpu"), 0.02),
            **dict.fromkeys(("controller_mb", "switch_mb"), 83.0),
        }

    if parameters["sweep"]:
        after_s, connected, ar, rejected, offered, cpu = SWEEP[period_s]
        crowd = window(SEEN["network-limited", "news-hsi"]) | {
            "detected_after_intervals": after_s / period_s,
            "admitted_per_s": k * connected,
            "ar_kbps": k * ar,
            "rejected_share": rejected / 100,
            "offered_per_s": k * offered,
            "controller_cpu": cpu / 100,
        }
    elif (parameters["scenario"], parameters["variant"]) in SEEN and parameters["switch"] != KERNEL:
        crowd = window(SEEN[parameters["scenario"], parameters["variant"]])
    else:
        return None
    result = {"quiet": window(BEFORE), "crowd": crowd, "rows": []}
    return Record(point.key, parameters, result, 0.0, 1.0, 0.5)


def test_verdicts_tell_the_points_in_which_the_lab_agrees_from_those_in_which_it_does_not() -> None:
    records = [record for point in once() if (record := seen(point))]
    findings_by_key = {(finding.figure, finding.what): finding for finding in findings(set_ups(records))}

    def agrees(figure: str) -> dict[str, bool]:
        return {what: finding.agrees for (of_figure, what), finding in findings_by_key.items() if of_figure == figure}

    assert agrees("section 8.4, Fig. 23, NEWS + hot spot") == {
        "a false alarm at T = 16 s": False,
        "rejected at T = 16 s": True,
        "false alarms with T above 16 s": True,
        "alarm after so many T": False,
        "AR is best": True,
        "AR at T = 16 s": False,
        "AR at T = 32 s": True,
        "AR at T = 64 s": True,
        "AR at T = 128 s": False,
        "AR at T = 256 s": True,
    }
    table = agrees("Table I, Figs. 12 and 13")
    assert table["static limit of 0.27 of the crowd (paper: 0.29), loss"]
    assert not table["static limit of 0.55 of the crowd (paper: 0.57), loss"]
    assert table["AR under NEWS, of that before"] and not table["rejected under NEWS"]
    assert agrees("Table III") == {
        "median without control to before": False,
        "mean without control to before": False,
        "median under NEWS to before": False,
        "mean under NEWS to before": False,
        "median under NEWS to that without": True,
        "mean under NEWS to that without": False,
        "median with identification to before": True,
        "mean with identification to before": True,
    }
    worse = findings_by_key["Table III", "mean under NEWS to that without"]
    assert (worse.paper, worse.here) == ("0.29 times", "1.08 times")
    rejected = findings_by_key["section 8.2", "rejected under NEWS"]
    assert (rejected.paper, rejected.here, rejected.agrees) == ("49 %", "66 %", False)
    failed = findings_by_key["section 8.2", "connections that time out without control"]
    assert (failed.paper, failed.here, failed.agrees) == ("22 %", "1 %", False), "whoever connected did not"
    alarm = findings_by_key["section 8.2", "alarm after the onset, within a tenth of T"]
    assert (alarm.paper, alarm.here, alarm.agrees) == ("88 s", "38 s", False)


def test_the_papers_news_is_held_against_news_without_identification() -> None:
    records = [record for point in once() if (record := seen(point))]
    news = [
        record
        for record in records
        if record.parameters["variant"] in ("none", "news") and not record.parameters["sweep"]
    ]
    findings_by_key = {(finding.figure, finding.what): finding for finding in findings(set_ups(records))}
    for finding in findings(set_ups(news)):
        assert findings_by_key[finding.figure, finding.what] == finding, "no other variant has a part in it"
    identified = [record for record in records if record.parameters["variant"] in ("none", "news-hsi")]
    for finding in findings(set_ups(identified)):
        assert "NEWS" not in finding.what
    swept = [
        finding.figure for finding in findings(set_ups([finding for finding in records if finding.parameters["sweep"]]))
    ]
    assert swept and all(figure.endswith(", NEWS + hot spot") for figure in swept)
    report = EXPERIMENT.report(records)
    assert report.tables[3].heading[0] == "NEWS + hot spot: T (s)"
    assert [goal.text.endswith(" under NEWS + hot spot") for goal in report.goals] == [False] * 8 + [True] * 3
    gain = next(goal for goal in report.goals if goal.text.startswith("Fig. 19"))
    assert gain.seen == f"{128 / 27:.2f} times"


def test_goals_that_are_not_reached_are_reported() -> None:
    made = measured(EXPERIMENT.points(True))
    crowd, quiet = dict(made[1].result["crowd"]), dict(made[1].result["quiet"])
    crowd |= {"response_loss": 0.05, "ar_kbps": 300.0, "bystander_goodput_kbps": 0.5 * quiet["bystander_goodput_kbps"]}
    goals = EXPERIMENT.report([made[0], replace(made[1], result={**made[1].result, "crowd": crowd})]).goals
    assert [goal.reached for goal in goals] == [False, False, False, True, False]
    silent = crowd | {"detected_after_intervals": None}
    report = EXPERIMENT.report([made[0], replace(made[1], result={**made[1].result, "crowd": silent})])
    assert (report.goals[3].reached, report.goals[3].seen) == (False, "never")


class Kept:
    """A substitute for the lab that records each run and its directory."""

    def __init__(self) -> None:
        self.runs: dict[Path, Run] = {}
        self.made = 0

    def make(self, run: Run, kind: str, directory: Path, tick: object) -> None:
        del kind, tick
        self.runs[directory] = run
        self.made += 1

    def is_done(self, run: Run, kind: str, directory: Path, since: float) -> bool:
        del kind
        return self.runs.get(directory) == run and since <= BEGAN


BEGAN = 1.8e9
MADE = {"began": BEGAN, "load": 2.5, "program": "abc1234"}


def test_runs_are_made_once_and_take_limits_from_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recorder, labs = Kept(), LabRuns(tmp_path / "runs", tmp_path)
    limit_per_s = 240.0

    def read(directory: Path) -> Records:
        if directory not in recorder.runs:
            raise FileNotFoundError(directory)
        return records(ar_bps=9e5, limit_per_s=limit_per_s, latency_s=0.03, drops=1)

    def made(directory: Path) -> dict[str, Any]:
        assert directory in recorder.runs
        return MADE

    def measure(point: Point) -> Record:
        return recorded(lambda point: news_lab.take(point, labs, print), point, "of the reading")

    def expected_s(*points: Point) -> list[float]:
        return [point.read_s if news_lab.is_there(point, labs) else point.seconds for point in points]

    monkeypatch.setattr(news_lab, "make_run", recorder.make)
    monkeypatch.setattr(news_lab, "is_done", recorder.is_done)
    monkeypatch.setattr(news_lab, "read_records", read)

    def told(directory: Path) -> str:
        return str(directory.name)

    def passed(directory: Path) -> None:
        assert directory in recorder.runs

    monkeypatch.setattr(news_lab, "made", made)
    monkeypatch.setattr(news_lab, "conditions", told)
    monkeypatch.setattr(news_lab, "switch_packets", passed)
    points = {point.parameters["directory"]: point for point in EXPERIMENT.points(False)}
    source, same = (points[f"news/runs/network-limited/{name}"] for name in ("news-hsi", "static-news"))
    assert expected_s(source, same) == [source.seconds, same.seconds]
    measure(source)
    assert expected_s(source, same) == [news_lab.READ_S, same.seconds]
    read_later = measure(same)
    assert read_later.result["crowd"]["limit_mean_per_s"] == pytest.approx(240.0)
    assert (read_later.result["conditions"], read_later.result["switch"]) == ("static-news", None)
    assert (read_later.began, read_later.load, read_later.program) == (BEGAN, 2.5, "abc1234")
    assert set(recorder.runs) == {
        tmp_path / f"news/runs/network-limited/{name}" for name in ("news-hsi", "static-news")
    }
    assert [run.static_per_s for run in recorder.runs.values()] == [None, pytest.approx(30.0)]
    made_once = dict(recorder.runs)
    measure(source)
    assert recorder.runs == made_once
    second = [points[f"experiments/news-lab/series-2/network-limited/{name}"] for name in ("news-hsi", "static-news")]
    limit_per_s = 320.0
    for lab_point in second:
        measure(lab_point)
    assert list(recorder.runs)[-1] == tmp_path / "runs/news-lab/series-2/network-limited/static-news"
    assert [run.static_per_s for run in recorder.runs.values()][-2:] == [None, pytest.approx(40.0)]
    assert [run.settings.seed for run in recorder.runs.values()] == [1, 1, 101, 101]
    limit_per_s = math.nan
    with pytest.raises(SetupError, match="static-news takes its limit from news-hsi, which limited nothing"):
        measure(same)


def test_runs_that_began_before_they_were_asked_for_again_are_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Kept()

    def nothing(directory: Path) -> Any:
        del directory

    def no_values(records: object) -> dict[str, Any]:
        del records
        return {}

    for name in ("read_records", "made", "conditions", "switch_packets"):
        monkeypatch.setattr(news_lab, name, nothing)
    monkeypatch.setattr(news_lab.simulated, "values", no_values)
    monkeypatch.setattr(news_lab, "make_run", recorder.make)
    monkeypatch.setattr(news_lab, "is_done", recorder.is_done)
    point, made = EXPERIMENT.points(True)[0], list[int]()
    for since in (0.0, 0.0, BEGAN + 1):
        news_lab.take(point, LabRuns(tmp_path, tmp_path, since), print)
        made.append(recorder.made)
    assert made == [1, 1, 2]
