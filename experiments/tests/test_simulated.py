"""The simulated experiments, made small: what they measure can be kept as JSON, reported and drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from experiments import news_fig15, news_fig16, news_table1, sim_lab, sim_scale, sim_unlike, simulated
from experiments.document import rows
from experiments.experiment import Experiment, Point, Record
from experiments.store import without_nan
from sim.clock import Clock
from sim.demo import READERS, simulate_demo, work_s
from sim.lab import lab_plan
from topo.news.plan import TARGET
from topo.news.scenarios import NETWORK, NONE
from topo.news.settings import Settings

SMALL = {"period_s": 10.0, "onset_s": 35.0, "end_s": 70.0, "crowd_per_s": 100.0, "link_bit_per_s": 1.5e6}


def measured(experiment: Experiment, points: Sequence[Point]) -> list[Record]:
    """Measure points, and keep them as the store does."""
    assert experiment.compute is not None
    return [
        Record(one.key, one.parameters, json.loads(json.dumps(without_nan(experiment.compute(one)))), 0.0, 1.0, 0.0)
        for one in points
    ]


def said(experiment: Experiment, records: Sequence[Record]) -> str:
    """Report and draw; the tables as text."""
    experiment.draw(records, Figure())
    report = experiment.report(records)
    json.dumps(without_nan(report.summary))
    return "\n".join(rows(table) for table in report.tables)


@pytest.mark.parametrize("experiment", [news_table1.EXPERIMENT, news_fig15.EXPERIMENT, news_fig16.EXPERIMENT])
def test_a_crowd_is_measured_reported_and_drawn(experiment: Experiment) -> None:
    points = experiment.points(True)
    small = [replace(one, parameters={**one.parameters, **SMALL}) for one in (points[0], points[-1])]
    records = measured(experiment, small)
    text = said(experiment, records)
    assert text.count("\n") >= 2
    for one in records:
        assert one.result["crowd"]["response_loss"] is not None
        assert [row[0] for row in one.result["rows"]] == [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]


def test_a_demo_of_the_lab_that_is_there_is_only_simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sim_lab, "RUNS", tmp_path)
    demo, flash = (sim_lab.points(False)[number] for number in (0, 1))
    assert [sim_lab.expected_s(one) for one in (demo, flash)] == [demo.seconds, flash.seconds]
    (tmp_path / "demo-0").mkdir()
    (tmp_path / "demo-0/summary.json").write_text("{}")
    assert [sim_lab.expected_s(one) for one in (demo, flash)] == [sim_lab.DEMO_SIMULATED_S, flash.seconds]


def crowd(name: str, seed: int, *, ar_kbps: float | None = 90.0, alarm: float | None = 1 / 3) -> Record:
    """A run of Table I whose figures are known; the alarm in intervals after the onset."""
    variant, _, rate = name.partition(" ")
    parameters = {
        "variant": "none" if rate else variant,
        "seed": seed,
        **({"static_per_s": float(rate)} if rate else {}),
    }
    figures = {
        "admitted_per_s": 100.0,
        "turned_away": 0.3,
        "ar_kbps": ar_kbps,
        "response_loss": 0.3 if variant == "none" else 0.01,
        "bottleneck_used": 0.9,
        "detected_after_intervals": alarm,
    }
    result = {"crowd": figures, "quiet": {"ar_kbps": 95.0}, "period_s": 60.0}
    return Record(f"{name} #{seed}", parameters, result, 0.0, 1.0, 0.0)


def test_table1_compares_the_alarms_of_repeated_runs() -> None:
    runs = [crowd(name, seed) for seed in (1, 2, 3) for name in ("none", "news")]
    alarm = news_table1.report(runs).goals[1]
    assert alarm.reached and alarm.seen == "20 ± 0"
    late = [*runs, crowd("news", 4, alarm=4 / 3)]
    assert news_table1.report(late).goals[1].reached is False
    never = news_table1.report([*runs, crowd("news", 4, alarm=None)]).goals[1]
    assert never.reached is False and never.seen == "20 ± 0, never in 1 of 4"


def test_table1_holds_news_against_the_best_static_limit() -> None:
    runs = [crowd("none", 1), crowd("news", 1, ar_kbps=90.0), crowd("static 60", 1, ar_kbps=101.0)]
    best = news_table1.report([*runs, crowd("static 120", 1, ar_kbps=70.0)]).goals[-1]
    assert best.reached and best.seen == "90.0 against 101.0 of static 60"
    assert news_table1.report([*runs, crowd("static 80", 1, ar_kbps=102.0)]).goals[-1].reached is False
    assert "static" not in news_table1.report(runs[:2]).goals[-1].text, "nothing to hold it against"


def test_a_figure_that_some_runs_lack_says_so() -> None:
    runs = [crowd("news", seed, ar_kbps=None if seed == 3 else 90.0) for seed in (1, 2, 3)]
    assert simulated.text(runs, "ar_kbps") == "90.0 ± 0.0 in 2 of 3"
    assert simulated.percent(runs, "turned_away") == "30 ± 0 %"
    assert simulated.text(runs[2:], "ar_kbps") == "-"


def at_period(period_s: float, **changes: float) -> Record:
    base = crowd("news", 1)
    figures = {**base.result["crowd"], "false_alarms": 0, **changes}
    return replace(base, parameters={"period_s": period_s}, result={**base.result, "crowd": figures})


def test_fig15_says_of_each_interval_where_it_agrees() -> None:
    runs = [
        at_period(15, response_loss=0.466, ar_kbps=33.8, bottleneck_used=1.0, admitted_per_s=140.2),
        at_period(60, ar_kbps=98.3),
        at_period(120, ar_kbps=105.6),
        at_period(120, ar_kbps=105.6, false_alarms=1),
    ]
    text = news_fig15.report(runs).text[-1]
    assert (
        "T = 15 s agrees in 34 kbit/s against the best T's 106 (paper: inconsistent); differs in 0.0 false alarms "
        "a run (paper: some), loss of 46.6% (Table I: 2%; 140 requests/s are admitted and the link is 100% full)."
    ) in text
    assert "T = 60 s agrees in 98 kbit/s near the best T's 106 (paper: the best), loss of 1.0% (Table I: 2%)." in text
    assert (
        "T = 120 s agrees in loss of 1.0% (Table I: 2%); differs in 0.5 false alarms a run (paper: none), alarm" in text
    )


def bystanders(name: str, **changes: float) -> Record:
    """A run of Fig. 16 whose figures are known."""
    known = next(one for one in news_fig16.points(False) if one.key == f"{name} #1")
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


def test_fig16_describes_the_cases_that_were_run() -> None:
    news = bystanders("FTP bystander, NEWS", admitted_per_s=67.0, bottleneck_used=0.51)
    none = bystanders("FTP bystander, none", bystander_goodput_kbps=0.0, response_loss=0.58)
    quick = "\n".join(news_fig16.report([news, none, bystanders("impatient users, NEWS")]).text)
    assert (
        "337 kbit/s, more than the paper's 120: 67 requests/s are admitted (Table I: 107), and the link is 51%" in quick
    )
    assert "left with 0 kbit/s (paper: 10), as 58% of the packets are lost (Table I: 25%)" in quick
    assert "Under NEWS AR keeps 90%" in quick
    assert all(word not in quick for word in ("slow server", "delta", "production"))
    assert "delta" not in news_fig16.EXPERIMENT.about and "server" not in news_fig16.EXPERIMENT.about
    full = [
        bystanders("FTP bystander, production", bystander_goodput_kbps=320.0),
        bystanders("slow server, buffer of 1,000, none", turned_away=0.1, bottleneck_used=1.0),
        bystanders("delta 0.05, NEWS", false_alarms=1, ar_kbps=70.0),
        bystanders("p 20 %, NEWS", detected_after_intervals=4 / 3),
    ]
    text = "\n".join(news_fig16.report(full).text)
    assert "In production mode it keeps 320 kbit/s" in text
    assert "10% are never connected, the link is 100% full, not as in the paper" in text
    assert "ask for 417 KB/s" in text
    assert "between 70 (delta 0.05) and 90 kbit/s (p 20 %). False alarms: delta 0.05." in text
    assert text.endswith("none: p 20 %.")


def test_fig16_has_both_modes_behind_the_runs_there_were() -> None:
    keys = [one.key for one in news_fig16.points(False)]
    cases = ("FTP bystander", "impatient users")
    assert keys[-6:] == [f"{case}, production #{seed}" for seed in (1, 2, 3) for case in cases]
    assert len(keys) == 3 * (8 + 3) + 6 and "production" not in "".join(keys[:-6])


def test_what_fig16_changes_reaches_the_simulated_controller_and_server() -> None:
    by_key = {one.key: one for one in news_fig16.points(False)}

    def news(key: str) -> tuple[float, float]:
        options = simulated.planned(by_key[key]).config.news
        assert options is not None
        return options.tolerance, options.fast_share

    assert news("delta 0.05, NEWS #1") == (0.05, 0.1)
    assert news("p 20 %, NEWS #1") == (0.1, 0.2)
    server = simulated.planned(by_key["slow server, buffer of 1,000, NEWS #1"]).servers(Clock())[TARGET]
    taken = 0
    while server.syn():
        server.request(2048, lambda _: None, lambda: True)
        taken += 1
    assert taken == 1 + 1001, "one is served, and as with Linux one more waits than the buffer has room for"


def test_points_are_told_apart_by_their_keys() -> None:
    for experiment in (news_table1, news_fig15, news_fig16, sim_scale, sim_unlike, sim_lab):
        for quick in (True, False):
            keys = [one.key for one in experiment.EXPERIMENT.points(quick)]
            assert len(set(keys)) == len(keys)


def test_a_point_has_the_length_of_its_form() -> None:
    full = simulated.point("x", "news", quick=False)
    quick = simulated.point("x", "news", quick=True)
    assert quick.key != full.key
    assert quick.seconds < full.seconds / 4


def test_pools_are_measured_reported_and_drawn() -> None:
    points = [
        Point(f"{mode} {seed}", {"servers": 4, "mode": mode, "switches": switches, "end_s": 20.0, "seed": seed}, 1.0)
        for seed in (1, 2)
        for mode, switches in (("fixed", 1), ("paper", 1), ("production", 2))
    ]
    records = measured(sim_scale.EXPERIMENT, points)
    text = said(sim_scale.EXPERIMENT, records)
    assert "| 4 | 2 | production, without the second look |" in text and text.count("\n") == 4, (
        "repeated runs are one row"
    )
    assert sim_scale.plan(points[2].parameters).look is None, "or the row's name is wrong"
    assert records[0].result["weight_changes"] == 0
    assert records[0].result["loaded_share"] == pytest.approx(0.25)


def pool_run(
    servers: int, mode: str, share: float, *, switches: int = 1, falling: bool = False, ms: float = 5
) -> Record:
    """A run at scale whose figures are known."""
    shares = [[float(second), share * (2 - second / 20 if falling else 1)] for second in range(21)]
    result = {
        "connections": 9,
        "mean_ms": 1.0,
        "p99_ms": 2.0,
        "loaded_share": share,
        "loaded_fair": 0.1,
        "decide_ms": ms,
        "shares": shares,
    }
    return Record(
        f"{servers} {mode} {switches}",
        {"servers": servers, "mode": mode, "switches": switches, "seed": 1},
        result,
        0.0,
        1.0,
        0.0,
    )


def test_the_simulation_at_scale_says_what_the_loaded_still_get() -> None:
    runs = [pool_run(3, "paper", 0.02), pool_run(3, "production", 0.08), pool_run(300, "paper", 0.06, falling=True)]
    settling, evidence, shared = sim_scale.report(runs).text[1:]
    assert "paper mode leaves 0.20 of 3, 0.60 of 300; production mode leaves 0.80 of 3. In both" in settling
    assert settling.endswith("The share still falls at the end in pools of 300.")
    assert evidence.startswith("In the pool of 3 production mode takes less") and shared == ""
    even = [pool_run(3, "paper", 0.02), pool_run(3, "production", 0.02)]
    settling, evidence, _ = sim_scale.report(even).text[1:]
    assert settling.endswith("had three servers.") and evidence == ""


def test_the_simulation_at_scale_says_what_sharing_a_pool_costs() -> None:
    def text(shares: Sequence[float]) -> str:
        runs = [pool_run(30, "paper", share, switches=number) for number, share in zip((1, 2, 4), shares, strict=True)]
        return sim_scale.report(runs).text[3]

    assert "paper mode leaves 0.30 behind 1, 0.40 behind 2, 0.50 behind 4 (the more switches, the more)" in text(
        (0.03, 0.04, 0.05)
    )
    assert "0.20 behind 4 (in no order of their number)" in text((0.03, 0.04, 0.02))


def test_the_simulation_at_scale_judges_the_mean_of_repeated_decisions() -> None:
    runs = [pool_run(1000, "production", 0.05, ms=ms) for ms in (80.0, 140.0)]
    goal = sim_scale.report([pool_run(3, "production", 0.05), *runs]).goals[0]
    assert goal.reached is False and goal.seen.startswith("110.0 ± ") and "1,000 servers" in goal.text


def test_servers_and_requests_that_are_not_alike() -> None:
    chosen = [one for one in sim_unlike.EXPERIMENT.points(True) if one.parameters["seed"] == 1]
    short = [replace(one, parameters={**one.parameters, "end_s": 20.0}) for one in chosen]
    records = measured(sim_unlike.EXPERIMENT, short)
    text = said(sim_unlike.EXPERIMENT, records)
    assert text.count("R, production mode |") == text.count("least connections of all, as a proxy |") == 3
    equal, by_r = (records[number].result["connect"]["mean_ms"] for number in (0, 3))
    assert by_r < equal, "the second look spares the small servers"
    behind = sim_unlike.EXPERIMENT.report(records).goals[-1].reached is False
    said_why = "\n".join(sim_unlike.EXPERIMENT.report(records).text)
    assert said_why.startswith("One run each, of the second half of each;")
    ends = re.search(r"a small one's ratio ends at 0\.\d\d and a large one's at 0\.\d\d", said_why)
    assert (ends is not None) == behind
    goals = sim_unlike.EXPERIMENT.report(records).goals
    assert [one.text.partition(":")[0] for one in goals] == list(sim_unlike.CPUS)


def test_the_simulation_is_held_against_both_phases_of_the_demo() -> None:
    def demo(lab_r_ms: float) -> Record:
        def figures(r_ms: float) -> dict[str, float]:
            return {**dict.fromkeys(sim_lab.DEMO_ROWS, 1.0), "equal_ms": 400.0, "r_ms": r_ms}

        sides = {"lab": figures(lab_r_ms), "simulated": [figures(25.0)], "sliced": [figures(29.0)]}
        return Record("demo #0", {"run": 0}, sides, 0.0, 1.0, 0.0)

    equal, by_r = sim_lab.report([demo(52.0)]).goals
    assert equal.reached and by_r.reached is False
    assert by_r.seen == "-52% evenly, -44% in slices"
    assert sim_lab.report([demo(27.0)]).goals[1].reached


def test_the_simulation_says_how_the_lab_differs_where_r_decides() -> None:
    def text(lab: tuple[float, float]) -> str:
        def figures(r_ms: float, spread: float) -> dict[str, float]:
            return {**dict.fromkeys(sim_lab.DEMO_ROWS, 0.1), "r_ms": r_ms, "answers_spread": spread}

        sides = {"lab": figures(*lab), "simulated": [figures(25.0, 4.0)], "sliced": [figures(29.0, 7.0)]}
        return sim_lab.report([Record("demo #0", {"run": 0}, sides, 0.0, 1.0, 0.0)]).text[1]

    apart = text((52.0, 16.0))
    assert "connect time is above both simulations' (52 ms; 25 evenly, 29 in slices), and the spread" in apart
    assert "is above both simulations' (16; 4, 7). The two go together" in apart
    alike = text((27.0, 3.0))
    assert "is between the simulations' (27 ms" in alike and "is below both simulations' (3; 4, 7)" in alike
    assert "go together" not in alike and "go together" not in text((27.0, 16.0))


def test_the_simulation_says_so_where_it_keeps_more_of_a_crowd_alive() -> None:
    def text(simulated_kbps: float) -> str:
        figures = dict.fromkeys(sim_lab.CROWD_FIGURES, 1.0)
        sides = {"lab": figures | {"ar_kbps": 100.0}, "simulated": figures | {"ar_kbps": simulated_kbps}}
        return sim_lab.report([Record("crowd none #0", {"variant": "none", "k": 8.0}, sides, 0.0, 1.0, 0.0)]).text[2]

    assert "keeps more alive (AR +20%)" in text(120.0)
    assert text(95.0) == ""


def test_each_run_of_the_labs_demo_has_simulations_of_its_own() -> None:
    assert [list(sim_lab.demo_seeds(number)) for number in (0, 1)] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


def test_repeated_simulations_of_the_labs_crowds_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []

    def there(run: object, kind: str, directory: object) -> bool:
        del run, kind, directory
        return True

    def read(records: object) -> dict[str, float]:
        del records
        return {}

    def simulate(scenario: object, variant: object, settings: Settings) -> None:
        del scenario, variant
        seeds.append(settings.seed)

    monkeypatch.setattr(sim_lab, "is_done", there)
    monkeypatch.setattr(sim_lab, "read_records", read)
    monkeypatch.setattr(sim_lab, "_crowd_figures", read)
    monkeypatch.setattr(sim_lab, "simulate_lab", simulate)
    for number in (0, 1):
        sim_lab.crowd("none", number)
    lab = NETWORK.settle(Settings())
    assert seeds == [lab.seed, lab.seed + 1]
    drawn = [
        [(one.time_s, one.size) for one in lab_plan(NETWORK, NONE, sim_lab.reseeded(lab, number)).requests]
        for number in (0, 1)
    ]
    assert drawn[0] == [(one.time_s, one.size) for one in lab_plan(NETWORK, NONE, lab).requests]
    assert drawn[0] != drawn[1]


def test_the_demo_is_simulated_at_the_labs_capacity() -> None:
    # All ten workers and 24 stress tasks share a tenth of a CPU: 0.0294 CPUs for the workers.
    assert work_s(38.0) == pytest.approx(0.1 * 10 / 34 / 38)
    phases = simulate_demo(130.0, work_s(38.0), seed=1)
    pages = sum(one.syns for one in phases.equal) + sum(one.syns for one in phases.by_r)
    downloads = sum(counts.syn for counts in phases.run.counts.values()) - pages
    assert READERS <= downloads <= 4 * READERS
    figures = sim_lab.demo_figures(phases)
    assert figures["equal_ms"] > 2 * figures["r_ms"]
