"""What the reports say of runs whose figures are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments import r_beyond, r_fig2, r_fig5, r_fig6
from experiments.alternatives import dnat_rules, haproxy_configuration
from experiments.document import section
from experiments.experiment import Experiment, Record
from experiments.ratios import course
from experiments.store import Store
from experiments.variants import VARIANTS
from topo.plan import SERVER_NAMES

CALM = {"received": 9, "dropped": 0, "lost_before": 0, "lost_after": 0}


def counts(syn: int, synack: int) -> dict[str, int]:
    return {"syn": syn, "synack": synack, "synack_again": 0, "completed": synack, "reset": 0}


def record(parameters: Mapping[str, Any], mean_ms: float, **result: Any) -> Record:
    figures = {
        "begun": 100,
        "given_up": 0,
        "mean_ms": mean_ms,
        "median_ms": mean_ms / 2,
        "p99_ms": 4 * mean_ms,
        "answered_mean_ms": mean_ms,
    }
    servers = {name: counts(100, 80) for name in SERVER_NAMES}
    whole = {"connect": figures, "transfer": figures, "servers": servers, "switch": CALM, **result}
    return Record(str(parameters), parameters, whole, 0.0, 1.0, 0.5)


def five(means: Mapping[str, float]) -> list[Record]:
    return [record({"variant": name, "rate_per_s": 120.0}, mean) for name, mean in means.items()]


def test_fig5_names_the_alternatives_that_are_better() -> None:
    means = dict.fromkeys(VARIANTS, 50.0) | {"equal": 400.0, "paper": 90.0, "nginx-leastconn": 49.0}
    quarter, mean, p99 = r_fig5.report(five(means)).goals
    assert quarter.reached and quarter.seen == "22% at 120/s"
    assert mean.reached is False and mean.seen == "120/s: 50.0 ms against 49.0 ms of nginx stream, least_conn"
    assert p99.reached is False
    _, mean, p99 = r_fig5.report(five(means | {"production": 49.0})).goals
    assert mean.reached and p99.reached


def test_fig5_cannot_tell_without_alternatives_or_overload() -> None:
    quarter, mean, _ = r_fig5.report(five({"equal": 40.0, "paper": 30.0, "production": 20.0})).goals
    assert quarter.reached is None and mean.reached is None


def test_fig2_holds_connect_times_against_the_timers() -> None:
    def run(rate: float, lost: int, mean_ms: float) -> Record:
        servers = {SERVER_NAMES[0]: counts(100 + lost, 100)}
        timers = {"retries": 6, "linear": 4}
        return record({"rate_per_s": rate, "given_up_s": 20.0}, mean_ms, servers=servers, timers=timers)

    good = r_fig2.report([run(10, 0, 1.0), run(20, 10, 101.0), run(30, 40, 399.0)])
    assert [goal.reached for goal in good.goals] == [True, True]
    assert good.tables[0].rows[1][:2] == ["20", "0.100"]
    bad = r_fig2.report([run(10, 0, 1.0), run(20, 10, 140.0), run(30, 40, 399.0)])
    assert bad.goals[0].reached is False and "40" in bad.goals[0].seen


def test_a_course_settles_when_it_stays_near_its_level() -> None:
    times = [float(second) for second in range(30)]
    seen = course(times, [0.33] * 5 + [0.1] * 25)
    assert (seen.settled_s, seen.level, seen.swing) == (5.0, pytest.approx(0.1), pytest.approx(0.0))
    swinging = course(times, [0.1, 0.5] * 15)
    assert swinging.settled_s == float("inf") and swinging.swing == pytest.approx(0.2)


def test_fig6_simulates_and_reports_with_its_own_points() -> None:
    points = [point for point in r_fig6.points(True) if point.group == "sim"]
    short = [dict(point.parameters) | {"seconds": 60.0} for point in (points[0], points[-1])]
    records = [Record(str(number), one, r_fig6.simulated(one), 0.0, 1.0, 0.0) for number, one in enumerate(short)]
    report = r_fig6.report(records)
    assert report.goals[0].reached is None, "nothing from the lab"
    assert len(report.tables[0].rows) == len(report.tables[1].rows) == 1
    assert r_fig6.loaded_course(records[0]).level < 1 / 3, "the loaded server loses traffic"


def test_beyond_tells_who_recovers() -> None:
    def run(case: str, mode: str, end: float) -> Record:
        ratios = [[float(second), 0.3, 0.3, 0.1 if second <= 20 else end] for second in range(60)]
        return record({"case": case, "mode": mode, "seconds": 60.0}, 10.0, ratios=ratios, at_s=20.0)

    records = [
        run(r_beyond.REPAIRED, "paper", 0.1),
        run(r_beyond.REPAIRED, "production", 0.33),
    ]
    report = r_beyond.report(records)
    assert [goal.reached for goal in report.goals] == [True, True]
    assert report.tables[0].rows[1][2:4] == ["0.100", "0.330"]


@pytest.mark.parametrize(
    ("experiment", "records"),
    [(r_fig5.EXPERIMENT, five(dict.fromkeys(VARIANTS, 50.0)))],
)
def test_pictures_and_sections_are_made(experiment: Experiment, records: list[Record], tmp_path: Any) -> None:
    experiment.draw(records, Figure())
    text = section(experiment, "quick", experiment.report(records), Store(tmp_path, experiment.name))
    assert text.startswith(f"## {experiment.title}") and "\n\n\n" not in text


def test_dnat_gives_each_server_the_same_probability() -> None:
    rules = dnat_rules()
    shares = [float(rule[rule.index("--probability") + 1]) if "--probability" in rule else 1.0 for rule in rules]
    left, seen = 1.0, list[float]()
    for share in shares:
        seen.append(left * share)
        left -= left * share
    assert seen == pytest.approx([1 / 3] * 3, abs=1e-5)


def test_haproxy_knows_every_server() -> None:
    text = haproxy_configuration("leastconn")
    assert "balance leastconn" in text and all(f"server {name} " in text for name in SERVER_NAMES)
