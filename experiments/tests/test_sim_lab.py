"""Tests of the comparison of the simulation with lab runs, which are made or read from disk, and of its report."""

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

from experiments import borrowed, demoruns, news_lab, sim_lab, sim_lab_crowds, sim_lab_fig5, sim_lab_unlike, simpool
from experiments.agreement import percent
from experiments.experiment import Measure, Point, Record, Say
from experiments.labruns import LabRuns
from experiments.runner import recorded
from experiments.store import Store
from experiments.tests.small import report_text
from sim.demo import READERS, simulate_demo
from sim.lab import simulate_lab
from topo.plan.crowd.measures import Records
from topo.plan.crowd.scenarios import Scenario, Settings, Variant
from topo.plan.network import SERVER_NAMES
from topo.results import program
from topo.testbed.errors import SetupError


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
    assert sim_lab.is_there(demo, labs) and sorted(path.name for path in tmp_path.iterdir()) == ["sim-lab"]
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
        names[kind] = {
            point.lab_run for point in sim_lab.points(False) if not {"fig5", "unlike"} & set(point.parameters)
        } - {""}
    assert not names["embedded"] & names["bmv2"]
    assert "news/runs/network-limited/none" in names["embedded"]
    assert {"news-bmv2/runs/network-limited/none", "experiments-bmv2/sim-lab/demo-0"} < names["bmv2"]


def demo_record(lab: dict[str, float], simulated: dict[str, float]) -> Record:
    """Return a record of the demo with known figures; figures that are not given are equal in lab and simulation."""
    base = {**dict.fromkeys(sim_lab.DEMO_ROWS, 0.1), "equal_ms": 400.0, "r_ms": 25.0}
    return Record("demo #0", {"run": 0}, {"lab": base | lab, "simulated": [base | simulated]}, 0.0, 1.0, 0.0)


def test_the_simulation_is_held_against_both_phases_of_the_demo() -> None:
    differing = demo_record({"r_ms": 52.0, "loaded_ratio": 0.102}, {"loaded_ratio": 0.037})
    equal, by_r, ratio = sim_lab.report([differing]).goals
    assert equal.reached and by_r.reached is False
    assert by_r.seen == "-52%"
    assert ratio.reached is False and ratio.seen == "-0.065; 0.102 in the lab"


def test_a_figure_that_deviates_too_much_misses_its_goal() -> None:
    assert [percent(off) for off in (0.14, -0.15, 0.1506, -0.150004, 0.32)] == [
        "+14%",
        "-15%",
        "+15.1%",
        "-15.0004%",
        "+32%",
    ]
    goal = sim_lab.report([demo_record({"r_ms": 100.0}, {"r_ms": 115.06})]).goals[1]
    assert (goal.reached, goal.seen) == (False, "+15.1%")


def test_a_simulated_load_ends_as_the_labs_and_all_of_it_is_counted() -> None:
    asked = {"rate_per_s": 120.0, "seconds": 30.0, "period_s": 1.0, "window_s": 10.0, "delta": 0.1, "seed": 1}
    run = simpool.simulated({**asked, "mode": "fixed"})
    assert run["connect"]["begun"] == pytest.approx(120 * 30, rel=0.05)
    assert run["late"]["begun"] == pytest.approx(120 * 10, rel=0.1)
    assert [row[0] for row in run["ratios"]] == [float(second) for second in range(1, 30)]
    longer = simpool.simulated({**asked, "mode": "fixed", "seconds": 40.0})
    assert 0 < run["transfer"]["given_up"] < longer["transfer"]["given_up"]
    shares = [figures["transfer"]["given_up"] / figures["transfer"]["begun"] for figures in (run, longer)]
    assert shares[0] == pytest.approx(shares[1], rel=0.25), "the last ones are waited for"
    unlike = {"cpus": [0.025] * 10, "rate_per_s": 32.0, "seconds": 20.0, "heavy_share": 0.05}
    assert sim_lab_unlike.simulated(unlike, 1.7e-3, 1)["transfer"]["begun"] == pytest.approx(32 * 20, rel=0.15)


def flash_record(
    scenario: str, variant: str, number: int = 0, *, lab: dict[str, Any] | None = None, **simulated: float | None
) -> Record:
    """Return a record of a crowd with known figures; figures that are not given are equal in lab and simulation."""
    figures: dict[str, Any] = {**dict.fromkeys(sim_lab_crowds.FIGURES, 0.5), "ar_kbps": 800.0, "admitted_per_s": 320.0}
    sides = {"lab": figures | (lab or {}), "simulated": figures | simulated}
    parameters = {"scenario": scenario, "variant": variant, "k": 8.0}
    return Record(f"crowd {scenario} {variant} #{number}", parameters, sides, 0.0, 1.0, 0.0)


def test_crowds_are_compared_with_the_labs_by_scenario_and_name_the_deviating_one() -> None:
    runs = [
        flash_record("network-limited", "none", 0, ar_kbps=900.0),
        flash_record("network-limited", "none", 1, ar_kbps=1000.0),
        flash_record("network-limited", "news", response_loss=0.53, lab={"detected_after_intervals": None}),
        flash_record("server-limited", "static-40", admitted_per_s=400.0, detected_after_intervals=None),
    ]
    report = sim_lab.report(runs)
    goals = {goal.text: goal for goal in report.goals}
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
    sim_lab.draw(runs, Figure())


def test_a_figure_of_the_lab_may_be_0() -> None:
    runs = [flash_record("network-limited", "none", lab={"admitted_per_s": 0.0, "bystander_goodput_kbps": 0.0})]
    goal = sim_lab.report(runs).goals[-1]
    assert (goal.reached, goal.seen) == (False, "40 instead of 0 (none)")


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
    first, second, *_ = [point for point in sim_lab.points(False) if "unlike" in point.parameters]
    for point in (first, second):
        short = replace(point, parameters={**point.parameters, "seconds": 20.0, "seeds": [1, 2]})
        assert not sim_lab.is_there(point, labs)
        measured = sim_lab.take(short, labs, lambda _: None)
        assert [set(figures) for figures in measured["simulated"]] == [set(measured["lab"])] * 2
        records.append(Record(point.key, point.parameters, json.loads(json.dumps(measured)), 0.0, 1.0, 0.0))
    assert opened == [f"{case}/{sim_lab_unlike.PRODUCTION.name}/0" for case in sim_lab_unlike.r_unlike.CASES]
    assert "whole transfer, mean (ms) | 100.0 | " in report_text(sim_lab.EXPERIMENT, records)
    capacity, cost = sim_lab.report(records).goals
    assert capacity.text.startswith("ten servers of unlike capacity: mean of the whole transfer within 15%")
    assert cost.text.startswith("requests of unlike cost: mean") and cost.seen.endswith("%")
    own = next(point for point in made.points(False) if point.lab_run == first.lab_run)
    Store(tmp_path, "r-unlike").add(Record(own.key, own.parameters, lab(50.0), 5.0, 1.0, 0.7, "then"))
    assert sim_lab.is_there(first, labs) and not sim_lab.is_there(first, replace(labs, since=6.0))
    short = replace(first, parameters={**first.parameters, "seconds": 20.0, "seeds": [1]})
    taken = recorded(lambda point_taken: sim_lab.take(point_taken, labs, print), short, "now")
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
    points = [point for point in sim_lab_fig5.points(0) if point.parameters["rate_per_s"] in (30.0, 120.0)]
    assert [point.parameters["variant"] for point in points[::2]] == list(sim_lab_fig5.MODES)
    store = Store(tmp_path, "r-fig5")
    known = next(
        point for point in sim_lab_fig5.r_fig5.EXPERIMENT.points(False) if point.key == points[0].parameters["fig5"]
    )
    store.add(Record(known.key, known.parameters, lab(7.0, 200.0), 5.0, 1.0, 0.7, "then"))
    assert not sim_lab.is_there(points[0], replace(labs, since=6.0)), "asked for again"
    records: list[Record] = []
    for point in points:
        assert sim_lab.is_there(point, labs) == (point is points[0])
        short = replace(point, parameters={**point.parameters, "seconds": 10.0, "seeds": [1, 2]})
        record = recorded(lambda point_taken: sim_lab.take(point_taken, labs, lambda _: None), short, "now")
        records.append(replace(record, parameters=point.parameters, result=json.loads(json.dumps(record.result))))
    assert made == [f"{point.parameters['variant']} {point.parameters['rate_per_s']:g} 0" for point in points[1:]]
    assert (records[0].result["lab"]["connect_ms"], records[0].result["lab"]["transfer_ms"]) == (7.0, 200.0)
    assert all(set(figures) == set(sim_lab_fig5.TITLES) for run in records for figures in run.result["simulated"])
    assert [records[0].began, records[0].load, records[0].program] == [5.0, 0.7, "now"]
    assert [record.result["lab_program"] for record in records[:2]] == ["then", program()]
    text = report_text(sim_lab.EXPERIMENT, records)
    assert "| equal split, lab | 7 | 1,200 |" in text and text.count("| R, production mode, simulated |") == 1
    goals = {goal.text.partition(":")[0]: goal for goal in sim_lab.report(records).goals}
    assert list(goals) == [
        "equal split",
        "R, paper mode",
        "R, production mode without the second look",
        "R, production mode",
    ]
    assert goals["equal split"].seen.startswith("603.5 ms in the lab, ") and goals["equal split"].reached is False
    assert goals["R, production mode"].seen.startswith("100.0 ms in the lab, ")


def test_each_run_of_the_labs_demo_has_simulations_of_its_own() -> None:
    assert [borrowed.seeds_of(number, sim_lab.SEEDS_A_RUN) for number in (0, 1)] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


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
        (point.parameters["variant"], point.key[-2:]): point
        for point in sim_lab.points(False)
        if "scenario" in point.parameters and point.parameters["variant"] in ("none", "static-40")
    }
    flash, again, slow = points["none", "#0"], points["none", "#1"], points["static-40", "#2"]
    own = {point.lab_run: point for point in news_lab.points(False)}
    assert {flash.lab_run, again.lab_run, slow.lab_run} < set(own)
    assert not sim_lab.is_there(flash, labs)
    lab = {**dict.fromkeys(sim_lab_crowds.FIGURES, 0.5), "late_p99_ms": 1.0}
    for point in (flash, again, slow):
        known = own[point.lab_run]
        made = Record(known.key, known.parameters, {"crowd": lab}, 5.0, 1.0, 0.7, "then")
        Store(tmp_path, "news-lab").add(made)
        assert sim_lab.is_there(point, labs)
        assert not sim_lab.is_there(point, replace(labs, since=6.0)), "asked for again"
        record = recorded(lambda point_taken: sim_lab.take(point_taken, labs, print), point, "now")
        assert (record.began, record.load, record.program) == (5.0, 0.7, "now")
        assert record.result["lab_program"] == "then"
        assert record.result["lab"] == dict.fromkeys(sim_lab_crowds.FIGURES, 0.5)
        assert set(record.result["simulated"]) > set(sim_lab_crowds.FIGURES)
    seeds = [own[point_of_lab.lab_run].parameters["seed"] for point_of_lab in (flash, again, slow)]
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
        raise SetupError(point.key)

    monkeypatch.setattr(sim_lab_crowds.news_lab, "EXPERIMENT", replace(news_lab.EXPERIMENT, take=take))
    flash = next(point for point in sim_lab.points(False) if "scenario" in point.parameters)
    with pytest.raises(SetupError, match=r"^network-limited/none, 8 \+ 11 intervals, embedded #0$"):
        sim_lab.take(flash, LabRuns(tmp_path, tmp_path), print)


def test_the_demo_is_simulated_with_its_downloads() -> None:
    phases = simulate_demo(130.0, seed=1)
    pages = sum(connection.syns for connection in phases.equal) + sum(connection.syns for connection in phases.by_r)
    downloads = sum(counts.syn for counts in phases.run.counts.values()) - pages
    assert READERS <= downloads <= 4 * READERS
    figures = sim_lab.demo_figures(phases)
    assert figures["equal_ms"] > 2 * figures["r_ms"]
