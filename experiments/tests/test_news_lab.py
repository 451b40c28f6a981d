"""The flash crowds of the lab: which runs are made, and what is said of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments import news_lab
from experiments.document import rows
from experiments.experiment import Point, Record
from experiments.news_lab import EXPERIMENT
from experiments.store import without_nan
from topo.errors import LabError
from topo.load.outcomes import Ending, Outcome
from topo.news.measures import Records
from topo.news.run import Run
from topo.news.samples import Sample
from topo.news.trace import Row

QUIET_AR, PERIOD_S, ONSET_S, END_S = 1e6, 8.0, 80.0, 160.0


def records(*, ar_bps: float, limit_per_s: float, latency_s: float, drops: int) -> Records:
    """A run whose window holds these figures throughout; the quiet time is the same in all."""

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
    """What a run would leave behind: NEWS restores the rates of the fast, best at T = 128 s."""
    variant, period_s = point.parameters["variant"], point.parameters["period_s"]
    if variant in ("none", "static-60"):
        return records(ar_bps=2e5, limit_per_s=math.nan, latency_s=1.0, drops=700)
    ar_bps = 1.1e6 if period_s == 128.0 else 9e5
    return records(ar_bps=ar_bps, limit_per_s=240.0, latency_s=0.03, drops=1)


def test_the_full_form_is_the_news_programme_and_the_sweep_of_t() -> None:
    points = EXPERIMENT.points(False)
    directories = [point.parameters["directory"] for point in points]
    assert "news/runs/server-limited/static-40" in directories and "overhead/runs/T256" in directories
    assert len(set(directories)) == len(points) == 21
    assert all(point.parameters["k"] == 8 for point in points)


def test_bmv2_has_its_own_compression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCH", "bmv2")
    factors = {point.parameters["directory"]: point.parameters["k"] for point in EXPERIMENT.points(False)}
    assert factors["news/runs/network-limited/none"] == 2
    assert set(factors.values()) == {2, 4}
    production = next(one for one in EXPERIMENT.points(False) if one.parameters["variant"] == "production")
    assert production.parameters["ramp_s"] == 30, "in the seconds of this clock, as on the embedded switch"


def measured(points: Sequence[Point]) -> list[Record]:
    def result(point: Point) -> dict[str, Any]:
        return without_nan(news_lab.simulated.values(of(point)))

    return [Record(point.key, point.parameters, result(point), 0.0, 1.0, 0.5) for point in points]


def test_the_report_sets_the_papers_numbers_beside_its_own() -> None:
    report = EXPERIMENT.report(measured(EXPERIMENT.points(False)))
    text = "\n".join(rows(table) for table in report.tables)
    assert "318 / 80 answered / 22 % failed / 60 % / 133" in text
    assert "| NEWS + hot spot | 0.24 | 0.24 | 1.5 | 0.42 | 0.32 | 1.8 |" in text  # 30 ms at k = 8
    assert "| before the crowd | 0.16 | 0.16 | 1.0 | 0.22 | 0.18 | 1.0 |" in text
    assert "| NEWS, production | 0.24 | 0.24 | 1.5 | - | - | - |" in text
    assert "Table I, 0.29 of the crowd: 70 % / no loss / AR 1.06 times before" in text
    assert "| 3 -> 10-12 |" in text
    by_text = {goal.text.partition(":")[0]: goal for goal in report.goals}
    assert by_text["Fig. 19"].seen == by_text["Fig. 22"].seen == "4.50 times"
    assert [one.text for one in report.goals if not one.reached] == [
        by_text["Figs. 12 and 20"].text,
        by_text["Table II"].text,
    ]
    assert report.goals[-1].seen == "at 128 s"
    said = "\n".join(report.text)
    assert (
        "Fig. 19: agrees" in said and "Figs. 12 and 20: does not (0 and 0/s), Table I, Figs. 14 and 21: agrees" in said
    )
    assert "without control AR falls to 20% of what it was (Fig. 19: 50%), at a loss of 41% (60 %)" in said
    assert "rises 50.0 times" not in said, "half of the paper's or more is no difference"
    assert "the loosest static limit loses 41% (Table I, 120 per second: 2%)" in said
    figure = Figure()
    EXPERIMENT.draw(measured(EXPERIMENT.points(False)), figure)
    network, requests, server, _ = figure.axes
    assert [len(axes.lines) for axes in (network, requests, server)] == [4, 8, 4], "both modes, in both scenarios"


def test_what_is_not_reached_is_said() -> None:
    made = measured(EXPERIMENT.points(True))
    crowd, quiet = dict(made[1].result["crowd"]), dict(made[1].result["quiet"])
    crowd |= {"response_loss": 0.05, "ar_kbps": 300.0, "bystander_goodput_kbps": 0.5 * quiet["bystander_goodput_kbps"]}
    goals = EXPERIMENT.report([made[0], replace(made[1], result={**made[1].result, "crowd": crowd})]).goals
    assert [goal.reached for goal in goals] == [False, False, False, True, True, False]


class Kept:
    """Stands for the lab: which runs were made, and where."""

    def __init__(self) -> None:
        self.runs: dict[Path, Run] = {}

    def make(self, run: Run, kind: str, directory: Path, tick: object) -> None:
        del kind, tick
        self.runs[directory] = run

    def is_done(self, run: Run, kind: str, directory: Path) -> bool:
        del kind
        return self.runs.get(directory) == run


def test_runs_are_made_once_and_take_limits_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept()
    limit_per_s = 240.0

    def read(directory: Path) -> Records:
        if directory not in kept.runs:
            raise FileNotFoundError(directory)
        return records(ar_bps=9e5, limit_per_s=limit_per_s, latency_s=0.03, drops=1)

    def made_s(directory: Path) -> float:
        assert directory in kept.runs
        return 1.8e9

    monkeypatch.setattr(news_lab, "make_run", kept.make)
    monkeypatch.setattr(news_lab, "is_done", kept.is_done)
    monkeypatch.setattr(news_lab, "read_records", read)
    monkeypatch.setattr(news_lab, "made_s", made_s)
    points = {point.parameters["directory"]: point for point in EXPERIMENT.points(False)}
    source, same = (points[f"news/runs/network-limited/{name}"] for name in ("news-hsi", "static-news"))
    assert EXPERIMENT.place is not None
    with EXPERIMENT.place("lab", print) as measure:
        assert [EXPERIMENT.expected_s(one) for one in (source, same)] == [source.seconds, same.seconds]
        measure(source)
        assert [EXPERIMENT.expected_s(one) for one in (source, same)] == [news_lab.READ_S, same.seconds]
        assert measure(same)["crowd"]["limit_mean_per_s"] == pytest.approx(240.0)
        assert measure(same)["made_s"] == 1.8e9
        made = dict(kept.runs)
        assert [run.static_per_s for run in made.values()] == [None, pytest.approx(30.0)]
        measure(source)
        assert kept.runs == made
        limit_per_s = math.nan
        with pytest.raises(LabError, match="static-news takes its limit from news-hsi, which limited nothing"):
            measure(same)
