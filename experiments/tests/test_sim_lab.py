"""What the simulation is held against: runs of the lab, made or taken, and what is said of both."""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments import (
    demoruns,
    news_lab,
    news_table1,
    sim_lab,
    sim_lab_crowds,
    sim_lab_fig5,
    sim_lab_unlike,
    sim_scale,
    sim_unlike,
    simpool,
)
from experiments.agreement import percent
from experiments.experiment import Experiment, Goal, Measure, Point, Record, Say
from experiments.labruns import LabRuns
from experiments.runner import recorded, write
from experiments.store import Store
from experiments.tests.small import said
from sim.demo import READERS, simulate_demo
from sim.lab import simulate_lab
from topo.errors import LabError
from topo.program import program
from workload.crowd.measures import Records
from workload.crowd.scenarios import Scenario, Variant
from workload.crowd.settings import Settings
from workload.plan import SERVER_NAMES


def test_what_the_lab_has_run_is_only_simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labs = LabRuns(tmp_path, tmp_path)
    demo = sim_lab.points(False)[0]
    made_with = {"version": "now"}

    def version(kind: str) -> str:
        assert kind == "embedded"
        return made_with["version"]

    monkeypatch.setattr(demoruns, "version", version)
    assert not sim_lab.is_there(demo, labs)

    def killed(settings: object, output: Path, say: Say) -> None:
        del settings, say
        (output / "summary.json").write_text('{"switch"')
        raise KeyboardInterrupt

    def run(settings: object, output: Path, say: Say) -> None:
        del settings, say
        (output / "summary.json").write_text("{}")

    directory = labs.at(demo.lab_run)
    assert directory == tmp_path / "sim-lab/demo-0"
    monkeypatch.setattr(demoruns, "run_demo", killed)
    with pytest.raises(KeyboardInterrupt):
        demoruns.make(directory, print)
    assert not sim_lab.is_there(demo, labs) and not directory.exists()
    monkeypatch.setattr(demoruns, "run_demo", run)
    demoruns.make(directory, print)
    assert sim_lab.is_there(demo, labs) and sorted(one.name for one in tmp_path.iterdir()) == ["sim-lab"]
    assert set(demoruns.made(directory)) == {"began", "load", "program"}
    assert not sim_lab.is_there(demo, replace(labs, since=time.time() + 1)), "asked for again"
    made_with["version"] = "another"
    assert not sim_lab.is_there(demo, labs)
    made_with["version"] = "now"
    assert sim_lab.is_there(demo, labs)
    (directory / "meta.json").unlink()
    assert not sim_lab.is_there(demo, labs), "nobody knows what it was made with"


def test_runs_on_another_switch_are_not_the_embedded_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, set[str]] = {}
    for kind in ("embedded", "bmv2"):
        monkeypatch.setenv("SWITCH", kind)
        names[kind] = {one.lab_run for one in sim_lab.points(False) if not {"fig5", "unlike"} & set(one.parameters)} - {
            ""
        }
    assert not names["embedded"] & names["bmv2"]
    assert "news/runs/network-limited/none" in names["embedded"]
    assert {"news-bmv2/runs/network-limited/none", "experiments-bmv2/sim-lab/demo-0"} < names["bmv2"]


def demo_record(lab: dict[str, float], simulated: dict[str, float]) -> Record:
    """A demo whose figures are known; what is not named is the same everywhere."""
    base = {**dict.fromkeys(sim_lab.DEMO_ROWS, 0.1), "equal_ms": 400.0, "r_ms": 25.0}
    return Record("demo #0", {"run": 0}, {"lab": base | lab, "simulated": [base | simulated]}, 0.0, 1.0, 0.0)


def test_the_simulation_is_held_against_both_phases_of_the_demo() -> None:
    apart = demo_record({"r_ms": 52.0, "loaded_ratio": 0.102}, {"loaded_ratio": 0.037})
    equal, by_r, ratio = sim_lab.report([apart]).goals
    assert equal.reached and by_r.reached is False
    assert by_r.seen == "-52%"
    assert ratio.reached is False and ratio.seen == "-0.065; 0.102 in the lab"
    text = sim_lab.report([apart]).text
    assert text[-1].startswith(
        "The simulation is not to be believed to the letter of R as published (connect time within 15% of "
        "the lab's: -52%; the loaded server's ratio at the end within 0.05 of the lab's: "
    )
    assert "on which rest the maps of `r-fig6`, and R's rows in `sim-scale` and `sim-unlike`. Times there" in text[-1]
    near = sim_lab.report([demo_record({"r_ms": 27.0}, {})])
    assert [one.reached for one in near.goals] == [True] * 3 and near.text[-1].startswith("No goal is missed here")


def test_a_figure_that_is_not_near_enough_is_not_said_to_be() -> None:
    assert [percent(off) for off in (0.14, -0.15, 0.1506, -0.150004, 0.32)] == [
        "+14%",
        "-15%",
        "+15.1%",
        "-15.0004%",
        "+32%",
    ]
    goal = sim_lab.report([demo_record({"r_ms": 100.0}, {"r_ms": 115.06})]).goals[1]
    assert (goal.reached, goal.seen) == (False, "+15.1%")


def rate_record(variant: str, rate: float, number: int, lab_ms: float, simulated_ms: float) -> Record:
    """A run of Fig. 5 whose figures are known."""
    lab, simulated_too = ({"connect_ms": ms, "transfer_ms": ms} for ms in (lab_ms, simulated_ms))
    parameters = {"fig5": "", "variant": variant, "rate_per_s": rate}
    result = {"lab": lab, "simulated": [simulated_too]}
    return Record(f"{variant} {rate} #{number}", parameters, result, 0.0, 1.0, 0.0, "abc")


def test_a_mean_over_rates_names_the_rate_that_is_furthest_apart() -> None:
    def seen(at_60: tuple[float, float], at_90: tuple[float, float], variant: str = "equal") -> tuple[Goal, str]:
        report = sim_lab.report([rate_record(variant, rate, 0, *at) for rate, at in ((60.0, at_60), (90.0, at_90))])
        return report.goals[0], report.text[-1]

    goal, text = seen((296.0, 55.0), (696.0, 900.0))
    assert goal.text == "equal split: connect time, mean over the rates of Fig. 5, within 15% of the lab's"
    assert goal.reached and goal.seen == (
        "496.0 ms in the lab, 477.5 simulated (-4%), furthest apart at 60/s (296.0 against 55.0)"
    )
    assert text.endswith("each rate does: equal split at 60/s, 296 ms in the lab and 55 simulated.")
    goal, text = seen((296.0, 55.0), (696.0, 100.0), "paper")
    assert goal.reached is False and goal.seen.endswith("furthest apart at 90/s (696.0 against 100.0)")
    assert "R, paper mode" not in text and "(connect time, mean over the rates of Fig. 5, within 15% of the" in text
    assert seen((100.0, 110.0), (200.0, 200.0))[1].startswith("No goal is missed") and "each rate" not in text


def test_sections_that_were_simulated_at_other_commits_are_named(tmp_path: Path) -> None:
    """By what is beside its own runs, wherever they are."""

    def kept(experiment: Experiment, program: str, **result: Any) -> None:
        for point in experiment.points(True):
            Store(tmp_path, experiment.name).add(Record(point.key, point.parameters, result, 0.0, 1.0, 0.0, program))

    def text(program: str = "abc") -> str:
        (point,) = [one for one in sim_lab.points(False) if one.key == "fig. 5 equal 60/s 40 s #0"]
        made = rate_record("equal", 60.0, 0, 100.0, 100.0)
        store = Store(tmp_path, sim_lab.EXPERIMENT.name)
        store.add(replace(made, key=point.key, parameters=point.parameters, program=program))
        written = write(sim_lab.EXPERIMENT, store)
        assert written is not None
        return written[1].text[-1]

    assert "commits" not in text(), "nothing is known of the others"
    kept(sim_scale.EXPERIMENT, "abc")
    kept(sim_unlike.EXPERIMENT, "other")
    kept(news_table1.EXPERIMENT, "other")
    assert text() == "Simulated at other commits than what is held against the lab here: `sim-unlike`."
    assert "commits" not in text(program=""), "where it was made was not noted"
    kept(sim_unlike.EXPERIMENT, "other", switch={})
    assert "commits" not in text(), "runs of the lab are no simulations"


def test_a_simulated_load_ends_as_the_labs_and_all_of_it_is_counted() -> None:
    asked = {"rate_per_s": 120.0, "seconds": 30.0, "period_s": 1.0, "window_s": 10.0, "delta": 0.1, "seed": 1}
    run = simpool.simulated({**asked, "mode": "fixed"})
    assert run["connect"]["begun"] == pytest.approx(120 * 30, rel=0.05)
    assert run["late"]["begun"] == pytest.approx(120 * 10, rel=0.1)
    assert [row[0] for row in run["ratios"]] == [float(second) for second in range(1, 30)]
    longer = simpool.simulated({**asked, "mode": "fixed", "seconds": 40.0})
    assert 0 < run["transfer"]["given_up"] < longer["transfer"]["given_up"]
    shares = [one["transfer"]["given_up"] / one["transfer"]["begun"] for one in (run, longer)]
    assert shares[0] == pytest.approx(shares[1], rel=0.25), "the last ones are waited for"
    unlike = {"cpus": [0.025] * 10, "rate_per_s": 32.0, "seconds": 20.0, "heavy_share": 0.05}
    assert sim_lab_unlike.simulated(unlike, 1.7e-3, 1)["transfer"]["begun"] == pytest.approx(32 * 20, rel=0.15)


def test_the_simulation_says_what_it_differs_in_without_a_goal() -> None:
    text = sim_lab.report([demo_record({"answers_spread": 16.0, "equal_failed": 0.15}, {"answers_spread": 7.0})]).text
    assert "by 16 in the lab and 7 simulated; under the equal split 15.0% and 10.0% of" in text[1]


def flash_record(
    scenario: str, variant: str, number: int = 0, *, lab: dict[str, Any] | None = None, **simulated: float | None
) -> Record:
    """A crowd in the lab and simulated; what is not named is the same in both."""
    figures: dict[str, Any] = {**dict.fromkeys(sim_lab_crowds.FIGURES, 0.5), "ar_kbps": 800.0, "admitted_per_s": 320.0}
    sides = {"lab": figures | (lab or {}), "simulated": figures | simulated}
    parameters = {"scenario": scenario, "variant": variant, "k": 8.0}
    return Record(f"crowd {scenario} {variant} #{number}", parameters, sides, 0.0, 1.0, 0.0)


def test_crowds_are_held_against_the_labs_by_scenario_and_name_who_is_off() -> None:
    runs = [
        flash_record("network-limited", "none", 0, ar_kbps=900.0),
        flash_record("network-limited", "none", 1, ar_kbps=1000.0),
        flash_record("network-limited", "news", response_loss=0.53, lab={"detected_after_intervals": None}),
        flash_record("server-limited", "static-40", admitted_per_s=400.0, detected_after_intervals=None),
    ]
    report = sim_lab.report(runs)
    goals = {one.text: one for one in report.goals}
    assert goals["network-limited: AR within 15% of the lab's"].seen == "+19% (none)", "of the mean, not of each run"
    assert goals["network-limited: AR within 15% of the lab's"].reached is False
    assert goals["network-limited: loss within 8 points of the lab's"].seen == "+3.0 points (news)"
    assert goals["network-limited: loss within 8 points of the lab's"].reached
    alarm = goals["network-limited: alarm within 0.25 intervals of the lab's"]
    assert (alarm.reached, alarm.seen) == (False, "only one of both has it (news)")
    assert goals["server-limited: admitted requests within 15% of the lab's"].seen == "+25% (static-40)"
    assert goals["server-limited: alarm within 0.25 intervals of the lab's"].reached is None, "nobody decides"
    assert [row[0] for row in report.tables[0].rows][-2:] == [
        "server-limited static-40, lab",
        "server-limited static-40, simulated",
    ]
    assert "more connect than the lab's (+25% (static-40)). It takes CPU time for requests" in report.text[2]
    assert "Side by side in these runs: crowds that a link limits; crowds that a server limits. Not" in report.text[3]
    assert (
        "Not side by side: an equal split with a loaded server; R as published; production mode without"
        in report.text[3]
    )
    assert "`news-scale`, and of crowds that a server limits (" in report.text[4]
    sim_lab.draw(runs, Figure())


def test_a_figure_of_the_lab_may_be_0() -> None:
    runs = [flash_record("network-limited", "none", lab={"admitted_per_s": 0.0, "bystander_goodput_kbps": 0.0})]
    goal = sim_lab.report(runs).goals[-1]
    assert (goal.reached, goal.seen) == (False, "40 instead of 0 (none)")


def test_crowds_that_agree_are_not_explained() -> None:
    report = sim_lab.report([flash_record("network-limited", "none"), flash_record("server-limited", "none")])
    assert [one.reached for one in report.goals] == [True] * 8 and report.text[2] == ""


def test_a_limit_near_what_the_slow_server_carries_is_said_to_be() -> None:
    without = flash_record("server-limited", "none", lab={"admitted_per_s": 328.0}, admitted_per_s=336.0)

    def said(ar_kbps: float) -> str:
        return sim_lab.report([without, flash_record("server-limited", "static-40", ar_kbps=ar_kbps)]).text[2]

    assert said(1600.0).startswith(
        "A static limit of 40/s is 98% of what connects to the lab's slow server without control (41.0/s) and 95% of "
        "what does to the simulated one (42.0/s)."
    )
    assert said(900.0) == ""


def test_crowds_without_control_are_told_one_by_one() -> None:
    def repeated(scenario: str, *rates: float, **simulated: Any) -> list[Record]:
        runs = enumerate(rates)
        return [flash_record(scenario, "none", number, ar_kbps=ar_kbps, **simulated) for number, ar_kbps in runs]

    network = repeated("network-limited", 880.0, 888.0)
    server = repeated("server-limited", 640.0, 632.0, response_loss=0.54, bystander_goodput_kbps=0.25)
    text = sim_lab.report([*network, *server]).text[2]
    assert text.startswith(
        "Without control, simulated and in the lab: network-limited AR (kbit/s) 110 ± 6 and 100 ± 0, loss (%) 50.0 ± "
        "0.0 and 50.0 ± 0.0, bulk (kbit/s) 0 ± 0 and 0 ± 0, link used (%) 50 ± 0 and 50 ± 0; server-limited AR "
        "(kbit/s) 80 ± 6 and 100 ± 0, loss (%) 54.0 ± 0.0 and 50.0 ± 0.0, "
    )
    by_chance = repeated("network-limited", 700.0, 920.0)
    assert sim_lab.report(by_chance).text[2] == ""


def test_unlike_pools_are_run_in_the_lab_and_simulated_at_its_cost(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def lab(transfer_ms: float) -> dict[str, Any]:
        times = {"begun": 100, "given_up": 0, "mean_ms": 0.4, "p99_ms": 2.0}
        return {"connect": times, "transfer": times | {"mean_ms": transfer_ms}, "cost_ms": 2.0, "switch": {}}

    opened: list[str] = []

    @contextmanager
    def place(group: str, say: Say) -> Generator[Measure]:
        del say
        opened.append(group)
        yield lambda point: lab(100.0 if point.parameters["heavy_share"] else 7.0)

    made = replace(sim_lab_unlike.r_unlike.EXPERIMENT, place=place)
    monkeypatch.setattr(sim_lab_unlike.r_unlike, "EXPERIMENT", made)
    labs = LabRuns(tmp_path, tmp_path)
    records: list[Record] = []
    first, second, *_ = [one for one in sim_lab.points(False) if "unlike" in one.parameters]
    for point in (first, second):
        short = replace(point, parameters={**point.parameters, "seconds": 20.0, "seeds": [1, 2]})
        assert not sim_lab.is_there(point, labs)
        measured = sim_lab.take(short, labs, lambda _: None)
        assert [set(one) for one in measured["simulated"]] == [set(measured["lab"])] * 2
        records.append(Record(point.key, point.parameters, json.loads(json.dumps(measured)), 0.0, 1.0, 0.0))
    assert opened == [f"{case}/{sim_lab_unlike.PRODUCTION.name}/0" for case in sim_lab_unlike.r_unlike.CASES]
    assert "whole transfer, mean (ms) | 100.0 | " in said(sim_lab.EXPERIMENT, records)
    capacity, cost = sim_lab.report(records).goals
    assert capacity.text.startswith("ten servers of unlike capacity: mean of the whole transfer within 15%")
    assert cost.text.startswith("requests of unlike cost: mean") and cost.seen.endswith("%")
    own = next(one for one in made.points(False) if one.lab_run == first.lab_run)
    Store(tmp_path, "r-unlike").add(Record(own.key, own.parameters, lab(50.0), 5.0, 1.0, 0.7, "then"))
    assert sim_lab.is_there(first, labs) and not sim_lab.is_there(first, replace(labs, since=6.0))
    short = replace(first, parameters={**first.parameters, "seconds": 20.0, "seeds": [1]})
    taken = recorded(lambda one: sim_lab.take(one, labs, print), short, "now")
    assert (taken.began, taken.result["lab"]["transfer_ms"], taken.result["lab_program"]) == (5.0, 50.0, "then")
    assert len(opened) == 2, "what is there is not made"
    dearer = sim_lab_unlike.simulated({**records[0].parameters, "seconds": 20.0}, 4e-3, 1)["transfer"]["mean_ms"]
    assert dearer > 1.5 * records[0].result["simulated"][0]["transfer_ms"]


def test_the_runs_of_fig_5_are_taken_or_made_and_simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labs = LabRuns(tmp_path, tmp_path)
    made: list[str] = []

    def lab(connect_ms: float, transfer_ms: float) -> dict[str, Any]:
        times = {"begun": 100, "given_up": 1, "p99_ms": 2.0}
        return {
            "connect": times | {"mean_ms": connect_ms},
            "transfer": times | {"mean_ms": transfer_ms},
            "ratios": [[float(second), 0.4, 0.4, 0.1 + second / 100] for second in range(9)],
            "servers": {name: {"syn": 100 if name == SERVER_NAMES[-1] else 450} for name in SERVER_NAMES},
        }

    @contextmanager
    def place(group: str, say: Say) -> Generator[Measure]:
        del say
        made.append(group)
        yield lambda point: lab(10 * point.parameters["rate_per_s"], 100.0)

    monkeypatch.setattr(sim_lab_fig5.r_fig5, "EXPERIMENT", replace(sim_lab_fig5.r_fig5.EXPERIMENT, place=place))
    points = [one for one in sim_lab_fig5.points(0) if one.parameters["rate_per_s"] in (30.0, 120.0)]
    assert [one.parameters["variant"] for one in points[::2]] == list(sim_lab_fig5.MODES)
    store = Store(tmp_path, "r-fig5")
    known = next(one for one in sim_lab_fig5.r_fig5.EXPERIMENT.points(False) if one.key == points[0].parameters["fig5"])
    store.add(Record(known.key, known.parameters, lab(7.0, 200.0), 5.0, 1.0, 0.7, "then"))
    assert not sim_lab.is_there(points[0], replace(labs, since=6.0)), "asked for again"
    records: list[Record] = []
    for point in points:
        assert sim_lab.is_there(point, labs) == (point is points[0])
        short = replace(point, parameters={**point.parameters, "seconds": 10.0, "seeds": [1, 2]})
        record = recorded(lambda one: sim_lab.take(one, labs, lambda _: None), short, "now")
        records.append(replace(record, parameters=point.parameters, result=json.loads(json.dumps(record.result))))
    assert made == [f"{one.parameters['variant']} {one.parameters['rate_per_s']:g} 0" for one in points[1:]]
    assert (records[0].result["lab"]["connect_ms"], records[0].result["lab"]["transfer_ms"]) == (7.0, 200.0)
    assert all(set(one) == set(sim_lab_fig5.CLOSER) for run in records for one in run.result["simulated"])
    assert [records[0].began, records[0].load, records[0].program] == [5.0, 0.7, "now"]
    assert [one.result["lab_program"] for one in records[:2]] == ["then", program()]
    text = said(sim_lab.EXPERIMENT, records)
    assert "| equal split, lab | 7 | 1,200 |" in text and text.count("| R, production mode, simulated |") == 2
    goals = {one.text.partition(":")[0]: one for one in sim_lab.report(records).goals}
    assert list(goals) == [
        "equal split",
        "R, paper mode",
        "R, production mode without the second look",
        "R, production mode",
    ]
    assert goals["equal split"].seen.startswith("603.5 ms in the lab, ") and goals["equal split"].reached is False
    assert goals["R, production mode"].seen.startswith("100.0 ms in the lab, ")
    assert "| SYNs to the loaded server (share) | 0.100 | " in text
    assert "| its ratio, mean of the last third | 0.170 | " in text


def test_each_run_of_the_labs_demo_has_simulations_of_its_own() -> None:
    assert [list(sim_lab.demo_seeds(number)) for number in (0, 1)] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


def test_the_crowds_of_the_lab_are_those_of_news_lab_and_simulated_with_its_requests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    labs = LabRuns(tmp_path, tmp_path)
    asked: list[tuple[str, int, float | None]] = []

    def simulate(scenario: Scenario, variant: Variant, settings: Settings, static_per_s: float | None) -> Records:
        asked.append((scenario.name, settings.seed, static_per_s))
        return simulate_lab(scenario, variant, replace(settings, before=1, after=1, k=64.0), static_per_s)

    monkeypatch.setattr(sim_lab_crowds, "simulate_lab", simulate)
    points = {
        (one.parameters["variant"], one.key[-2:]): one
        for one in sim_lab.points(False)
        if "scenario" in one.parameters and one.parameters["variant"] in ("none", "static-40")
    }
    flash, again, slow = points["none", "#0"], points["none", "#1"], points["static-40", "#2"]
    own = {one.lab_run: one for one in news_lab.points(False)}
    assert {flash.lab_run, again.lab_run, slow.lab_run} < set(own)
    assert not sim_lab.is_there(flash, labs)
    lab = {**dict.fromkeys(sim_lab_crowds.FIGURES, 0.5), "late_p99_ms": 1.0}
    for point in (flash, again, slow):
        known = own[point.lab_run]
        made = Record(known.key, known.parameters, {"crowd": lab}, 5.0, 1.0, 0.7, "then")
        Store(tmp_path, "news-lab").add(made)
        assert sim_lab.is_there(point, labs)
        assert not sim_lab.is_there(point, replace(labs, since=6.0)), "asked for again"
        record = recorded(lambda one: sim_lab.take(one, labs, print), point, "now")
        assert (record.began, record.load, record.program) == (5.0, 0.7, "now")
        assert record.result["lab_program"] == "then"
        assert record.result["lab"] == dict.fromkeys(sim_lab_crowds.FIGURES, 0.5)
        assert set(record.result["simulated"]) > set(sim_lab_crowds.FIGURES)
    seeds = [own[one.lab_run].parameters["seed"] for one in (flash, again, slow)]
    assert len(set(seeds)) == 3
    assert asked == [
        ("server-limited", seeds[0], None),
        ("server-limited", seeds[1], None),
        ("server-limited", seeds[2], 40.0),
    ]


def test_a_crowd_that_news_lab_does_not_have_is_made_in_the_lab(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def take(point: Point, labs: LabRuns, say: Say) -> dict[str, Any]:
        del labs, say
        raise LabError(point.key)

    monkeypatch.setattr(sim_lab_crowds.news_lab, "EXPERIMENT", replace(news_lab.EXPERIMENT, take=take))
    flash = next(one for one in sim_lab.points(False) if "scenario" in one.parameters)
    with pytest.raises(LabError, match=r"^network-limited/none, 8 \+ 11 intervals, embedded #0$"):
        sim_lab.take(flash, LabRuns(tmp_path, tmp_path), print)


def test_the_demo_is_simulated_with_its_downloads() -> None:
    phases = simulate_demo(130.0, seed=1)
    pages = sum(one.syns for one in phases.equal) + sum(one.syns for one in phases.by_r)
    downloads = sum(counts.syn for counts in phases.run.counts.values()) - pages
    assert READERS <= downloads <= 4 * READERS
    figures = sim_lab.demo_figures(phases)
    assert figures["equal_ms"] > 2 * figures["r_ms"]
