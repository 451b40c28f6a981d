"""Tests of the experiments' reports on runs with known figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from sluice.balance import ProductionOptions
from sluice.balance.recovery import relax

from experiments import controller_cost, r_beyond, r_changes, r_control, r_fig2, r_fig5, r_fig6, r_unlike
from experiments.experiment import Goal, Record
from experiments.ratios import course, reversals
from experiments.simpool import simulated
from experiments.variants import PERIOD_S, VARIANTS
from topo.labs.alternatives import dnat_rules, haproxy_configuration
from topo.labs.webservers import HEAVY, WORK
from topo.measure.downloads import Download
from topo.measure.httperf import Load
from topo.plan.network import SERVER_CPUS, SERVER_NAMES, pool_of

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
    return [record({"variant": name, "rate_per_s": 120.0, "seconds": 20.0}, mean) for name, mean in means.items()]


def test_fig5_names_the_alternatives_that_are_better() -> None:
    means = dict.fromkeys(VARIANTS, 50.0) | {"equal": 400.0, "paper": 90.0, "nginx-leastconn": 49.0}
    quarter, mean, p99, *_ = r_fig5.report(five(means)).goals
    assert quarter.reached and quarter.seen == "22% at 120/s"
    assert mean.reached is False and mean.seen == "120/s: 50.0 ms against 49.0 ms of nginx stream, least_conn"
    assert p99.reached is False
    _, mean, p99, *_ = r_fig5.report(five(means | {"production": 49.0})).goals
    assert mean.reached and p99.reached


def test_fig5_holds_connect_times_against_the_alternative_that_is_no_proxy() -> None:
    def goals(connect_ms: float) -> list[tuple[bool | None, str]]:
        records = [
            replace(
                record,
                result={
                    **record.result,
                    "connect": {**record.result["connect"], "mean_ms": connect_ms, "p99_ms": 3 * connect_ms},
                },
            )
            if record.parameters["variant"] == "production"
            else record
            for record in five(dict.fromkeys(VARIANTS, 50.0) | {"nginx-leastconn": 1.0})
        ]
        return [(goal.reached, goal.seen) for goal in r_fig5.report(records).goals[3:]]

    assert goals(49.0) == [(True, "everywhere"), (True, "everywhere")], "the proxy's 1 ms is no connect time"
    assert goals(51.0) == [
        (False, "120/s: 51.0 ms against 50.0 ms of kernel DNAT, equal probability"),
        (True, "everywhere"),
    ]
    assert "connect time" in r_fig5.report(five(dict.fromkeys(VARIANTS, 50.0))).goals[3].text


def test_fig5_reports_where_two_variants_without_losses_are_compared() -> None:

    seen = r_fig5.report(five({"production": 0.054, "iptables": 0.021})).goals[3].seen
    assert seen == "120/s: 0.05 ms against 0.02 ms of kernel DNAT, equal probability"


def test_fig5_says_where_repeated_runs_differ_by_no_more_than_chance() -> None:
    def goal(ours: tuple[float, ...]) -> str:
        records = [record for mean in (48.0, 52.0) for record in five(dict.fromkeys(VARIANTS, mean))]
        others = [record for record in records if record.parameters["variant"] != "production"]
        return (
            r_fig5.report([*others, *(record for mean in ours for record in five({"production": mean}))]).goals[1].seen
        )

    assert "120/s: 51.0 ± 12.7 ms against 50.0 ± 25.4 ms of nginx stream, least_conn, no more apart" in goal(
        (50.0, 52.0)
    )
    assert goal((1.0, 1.1)) == "everywhere"
    close = goal((49.0, 49.5))
    assert close.startswith("everywhere, no more apart than chance from kernel DNAT, equal probability at 120/s; ")
    assert close.endswith("; nginx stream, least_conn at 120/s")
    assert goal((400.0, 400.1)).endswith("50.0 ± 25.4 ms of nginx stream, least_conn")


def test_fig5_is_reported_and_drawn_of_the_ways_of_its_quick_form() -> None:
    means = dict.fromkeys(r_fig5.QUICK, 50.0)
    report = r_fig5.report(five(means))
    assert [len(table.rows) for table in report.tables] == [4, 4, 6, 6, 6]
    r_fig5.EXPERIMENT.draw(five(means), Figure())


def test_fig5_cannot_tell_without_alternatives_or_overload() -> None:
    quarter, *others = r_fig5.report(five({"equal": 40.0, "paper": 30.0, "production": 20.0})).goals
    assert quarter.reached is None and [goal.reached for goal in others] == [None] * 4


def test_fig2_holds_connect_times_against_the_timers() -> None:
    def run(rate: float, lost: int, mean_ms: float, backlog: int = r_fig2.BACKLOG) -> Record:
        servers = {SERVER_NAMES[0]: counts(100 + lost, 100)}
        timers = {"retries": 6, "linear": 4}
        parameters = {"backlog": backlog, "rate_per_s": rate, "given_up_s": 20.0, "seconds": 30.0}
        return record(parameters, mean_ms, servers=servers, timers=timers)

    good = r_fig2.report([run(10, 0, 1.0), run(20, 10, 101.0), run(30, 40, 399.0)])
    assert [goal.reached for goal in good.goals] == [True, True, True]
    assert good.tables[0].rows[1][:2] == ["20", "0.100"]
    repeated = r_fig2.report([run(20, 10, 101.0), run(20, 20, 201.0)])
    assert [row[:2] for row in repeated.tables[0].rows] == [["20", "0.150 (0–0.785)"]]
    bad = r_fig2.report([run(10, 0, 1.0), run(20, 10, 140.0), run(30, 40, 399.0)])
    assert bad.goals[0].reached is False and "40" in bad.goals[0].seen
    both = r_fig2.report([run(20, 10, 101.0), run(20, 10, 140.0, 16), run(22, 30, 300.0, 16), run(24, 100, 1500.0, 16)])
    assert both.goals[0].reached is True, "the longer queue is not held to it"
    assert [table.rows[0][3] for table in both.tables] == ["101", "140"]


def test_fig2_holds_its_slope_against_the_timer() -> None:
    def slope(*runs: tuple[int, float]) -> Goal:
        made: list[Record] = []
        for lost, mean_ms in runs:
            servers = {SERVER_NAMES[0]: counts(1000 + lost, 1000)}
            parameters = {"backlog": r_fig2.BACKLOG, "rate_per_s": 10.0, "given_up_s": 20.0, "seconds": 30.0}
            made.append(record(parameters, mean_ms, servers=servers, timers={"retries": 6, "linear": 4}))
        return r_fig2.report(made).goals[2]

    near = slope((0, 51.0), (100, 151.0), (400, 449.0))
    assert near.reached and near.seen == "995 ms (fitted line)", "where it begins is another matter"
    assert slope((0, 1.0), (100, 301.0), (400, 1203.0)).reached is False
    assert slope((0, 1.0)).reached is None


def test_a_course_settles_when_it_stays_near_its_level() -> None:
    times = [float(second) for second in range(30)]
    seen = course(times, [0.33] * 5 + [0.1] * 25)
    assert (seen.settled_s, seen.level, seen.swing) == (5.0, pytest.approx(0.1), pytest.approx(0.0))
    swinging = course(times, [0.1, 0.5] * 15)
    assert swinging.settled_s == float("inf") and swinging.swing == pytest.approx(0.2)
    assert course(times, [0.1, 0.5] * 15, near=0.3).settled_s == 0.0
    late = course(times, [0.5] * 21 + [0.1] * 9)
    assert late.settled_s == float("inf"), "the last third, which has the level, is not all near it"


def test_a_ratio_turns_round_where_it_goes_the_other_way() -> None:
    assert reversals([0.1, 0.2, 0.3, 0.4]) == 0 == reversals([0.2] * 4) == reversals([0.2])
    assert reversals([0.1, 0.2, 0.1, 0.2, 0.1]) == 3 / 4, "the first move turns nothing round"
    assert reversals([0.1, 0.2, 0.2, 0.2, 0.1]) == 1 / 4, "a rest is no move"


def test_fig6_simulates_and_reports_with_its_own_points() -> None:
    points = [point for point in r_fig6.points(True) if point.parameters["where"] != "lab"]
    of_map = [point for point in points if (point.parameters["delta"], point.parameters["window_s"]) == (0.9, 20.0)]
    short = [dict(point.parameters) | {"seconds": 60.0} for point in (points[0], *of_map[:2])]
    assert [parameters.get("case") for parameters in short] == [None, r_fig6.ROOM, r_fig6.SCARCE]
    records = [
        Record(str(number), parameters, simulated(parameters), 0.0, 1.0, 0.0) for number, parameters in enumerate(short)
    ]
    report = r_fig6.report(records)
    assert [goal.reached for goal in report.goals] == [None, None], "nothing from the lab"
    assert [len(table.rows) for table in report.tables] == [1, 1, 1]
    assert r_fig6.courses(records[0])[-1].level < 1 / 3, "the loaded server loses traffic"
    r_fig6.EXPERIMENT.draw(records, Figure())


def test_fig6_maps_a_load_that_the_healthy_servers_are_just_not_enough_for() -> None:
    room, scarce = (r_fig6.CASES[name] for name in (r_fig6.ROOM, r_fig6.SCARCE))
    healthy_cpus = 2 * SERVER_CPUS
    assert healthy_cpus / room.work_s > 5 * room.rate_per_s
    assert 0.9 * scarce.rate_per_s < healthy_cpus / scarce.work_s < scarce.rate_per_s
    for quick in (True, False):
        cells = [point.parameters for point in r_fig6.points(quick) if point.parameters["where"] == "map"]
        places = {(parameters["case"], parameters["delta"], parameters["window_s"]) for parameters in cells}
        assert len(cells) >= 3 * len(places) and {parameters["case"] for parameters in cells} == set(r_fig6.CASES)


def test_fig6_sees_ratios_oscillate_near_capacity_with_a_large_delta() -> None:
    def largest(case: str, delta: float) -> tuple[float, float]:
        wanted = (case, delta, 20.0, 1)
        names = ("case", "delta", "window_s", "seed")
        points = [
            point for point in r_fig6.points(True) if tuple(point.parameters.get(name) for name in names) == wanted
        ]
        parameters = dict(points[0].parameters) | {"seconds": 300.0}
        of_run = r_fig6.courses(
            Record("", parameters, r_fig6.compute(replace(points[0], parameters=parameters)), 0, 1, 0)
        )
        return max(course.swing for course in of_run), max(course.reversals for course in of_run)

    swing, turns = largest(r_fig6.SCARCE, 0.9)
    assert swing > 0.2 and turns > 0.3
    assert largest(r_fig6.SCARCE, 0.05)[0] < swing / 2
    assert largest(r_fig6.ROOM, 0.9)[0] < 0.01


def test_fig6_holds_repeated_runs_of_the_lab_against_the_simulation() -> None:
    def run(where: str, level: float, mean_ms: float) -> Record:
        ratios = [[float(second), 0.3, 0.3, 0.33 if second < 20 else level] for second in range(90)]
        return record({"where": where, "seconds": 90.0}, mean_ms, ratios=ratios)

    lab = [run("lab", level, 40.0) for level in (0.04, 0.05, 0.06)]
    report = r_fig6.report([*lab, run("sim", 0.08, 20.0), run("sim", 0.08, 22.0)])
    falls, ratio, times = report.goals
    assert falls.reached and falls.seen == "0.333 to 0.050 ± 0.025"
    assert ratio.reached and ratio.seen.startswith("0.050 ± 0.025 in the lab, 0.080")
    assert times.reached is False and times.seen.startswith("40 ± 0 ms in the lab, 21 ± 13 simulated (-48%)")
    assert report.tables[0].rows[0][:2] == ["lab, 3 runs", "20 ± 0"]
    assert r_fig6.report([*lab, run("sim", 0.08, 39.0)]).goals[2].reached
    swinging = [[float(second), 0.3, 0.3, (0.1, 0.5)[second % 2]] for second in range(90)]
    never = record({"where": "lab", "seconds": 90.0}, 40.0, ratios=swinging)
    report = r_fig6.report([*lab, never, run("sim", 0.5, 20.0)])
    assert report.tables[0].rows[0][1] == "never in 1 of 4" and report.goals[1].reached is False
    high = r_fig6.report([run("lab", 0.3, 40.0)])
    assert high.tables[0].rows[0][0] == "lab, 1 run" and high.goals[0].reached is False


def mapped(
    delta: float,
    mean_ms: float,
    swing: float = 0.0,
    *,
    case: str = r_fig6.ROOM,
    window: float = 20.0,
    level: float = 0.1,
) -> Record:
    """Return a record of a map's run (Fig. 6 of Ohta & Andou), with known figures."""
    ratios = [[float(second), 0.3, 0.3, level + swing * (-1) ** second] for second in range(90)]
    parameters = {"where": "map", "case": case, "seconds": 90.0, "delta": delta, "window_s": window}
    return record(parameters, mean_ms, ratios=ratios, late={"mean_ms": mean_ms / 2})


def test_fig6_answers_which_delta_is_best_from_both_maps() -> None:
    room = [mapped(0.1, 10.0, window=400.0), mapped(0.4, 3.0), mapped(0.9, 2.0, level=0.0)]
    scarce = [
        mapped(0.1, 200.0, 0.02, case=r_fig6.SCARCE, window=400.0),
        mapped(0.4, 900.0, 0.1, case=r_fig6.SCARCE),
        mapped(0.9, 1500.0, 0.2, case=r_fig6.SCARCE),
    ]
    report = r_fig6.report([*room, *scarce])
    rows = report.tables[2].rows
    assert [row[4:] for row in rows] == [
        ["0.020", "97 %", "200", "100"],
        ["0.100", "97 %", "900", "450"],
        ["0.200", "97 %", "1,500", "750"],
    ]
    r_fig6.EXPERIMENT.draw([*room, *scarce], Figure())


def test_beyond_reports_which_server_recovers() -> None:
    def run(case: str, mode: str, end: float) -> Record:
        ratios = [[float(second), 0.3, 0.3, 0.1 if second <= 20 else end] for second in range(60)]
        return record({"case": case, "mode": mode, "seconds": 60.0}, 10.0, ratios=ratios, at_s=20.0)

    records = [
        run(r_beyond.REPAIRED, "paper", 0.1),
        run(r_beyond.REPAIRED, "production", 0.33),
        run(r_beyond.REPAIRED, "production", 0.33),
    ]
    report = r_beyond.report(records)
    assert [goal.reached for goal in report.goals] == [True, True]
    assert [row[2:4] for row in report.tables[0].rows] == [["0.100", "0.100"], ["0.100 ± 0.000", "0.330 ± 0.000"]]
    r_beyond.EXPERIMENT.draw(records, Figure())


@pytest.mark.parametrize("quick", [True, False])
def test_beyond_leaves_a_starved_server_the_time_to_come_back(quick: bool) -> None:
    seconds = min(point.parameters["seconds"] for point in r_beyond.points(quick))
    ratio = {3: r_beyond.FLOOR}
    for _ in range(int(seconds * 2 / 3 / PERIOD_S)):
        ratio = relax(ratio, {3: r_beyond.FAIR}, ProductionOptions().recovery)
    assert ratio[3] >= r_beyond.BACK


def test_beyond_says_when_a_killed_server_was_ejected() -> None:
    def run(mode: str, floor_after_s: int | None, happened_s: float = 20.4) -> Record:
        def ratio(second: int) -> float:
            at_floor = floor_after_s is not None and second >= 20 + floor_after_s
            return round(r_beyond.FLOOR, 6) if at_floor else 0.33

        ratios = [[float(second), 0.3, 0.3, ratio(second)] for second in range(60)]
        parameters = {"case": r_beyond.KILLED, "mode": mode, "seconds": 60.0}
        return record(parameters, 10.0, ratios=ratios, at_s=20.0, happened_s=[happened_s])

    def goal(*records: Record) -> tuple[bool | None, str]:
        (goal,) = r_beyond.report(records).goals
        return goal.reached, goal.seen

    assert goal(run("production", 3), run("production", 3)) == (True, "after 2.6 ± 0.0 s")
    assert goal(run("production", 4)) == (False, "after 3.6 s")
    assert goal(run("production", 3), run("production", None)) == (False, "2.6, never in 1 of 2")
    report = r_beyond.report([run("paper", 28), run("production", 2)])
    assert [row[4] for row in report.tables[0].rows] == ["27.6", "1.6"]
    older = run("production", 3)
    older = replace(older, result={key: value for key, value in older.result.items() if key != "happened_s"})
    assert goal(older) == (True, "after 3.0 s"), "without the moment of its death, from the planned one on"


def repaired(mode: str, before: float, end: float, happened_s: float = 20.4) -> Record:
    """Return a record of a run whose last server is repaired at 20 s. The server's ratio falls to `before` until 20 s,
    then rises to `end`."""
    ratios = [
        [float(second), 0.3, 0.3, before + 0.01 * (20 - second) if second <= 20 else end - 0.001 * (59 - second)]
        for second in range(60)
    ]
    parameters = {"case": r_beyond.REPAIRED, "mode": mode, "seconds": 60.0}
    return record(parameters, 10.0, ratios=ratios, at_s=20.0, happened_s=[happened_s])


def test_beyond_says_whether_the_server_was_starved_and_how_far_it_came() -> None:
    report = r_beyond.report([repaired("paper", 0.18, 0.045), repaired("production", 0.145, 0.245)])
    assert [row[2:4] for row in report.tables[0].rows] == [["0.180", "0.045"], ["0.145", "0.245"]]
    late = r_beyond.report([repaired("production", 0.145, 0.33, 21.4)])
    assert late.tables[0].rows[0][2] == "0.292", "the last sample before it was repaired, not before it was planned"


def test_beyond_takes_no_server_for_starved_that_has_most_of_its_share() -> None:
    ends = (0.045, 0.25, 0.33)
    paper, production = (
        [r_beyond.report([repaired(mode, 0.1, end)]).goals[0].reached for end in ends]
        for mode in ("paper", "production")
    )
    assert paper == [True, False, False] and production == [False, False, True]


def unlike(means: Mapping[str, float], case: str = r_unlike.COST) -> list[Record]:
    return [
        record({"case": case, "variant": name, "seconds": 15.0}, mean, cost_ms=2.0, idle_ms=2.5, used=0.7)
        for name, mean in means.items()
    ]


def test_unlike_names_the_best_alternative_of_each_case() -> None:
    means = dict.fromkeys(r_unlike.COMPARED, 50.0) | {"production": 30.0, "nginx-leastconn": 29.0}
    report = r_unlike.report([*unlike(means), *unlike(means | {"production": 20.0}, r_unlike.CAPACITY)])
    by_capacity, _, by_cost, p99 = report.goals
    assert by_capacity.reached and by_cost.reached is False and p99.reached is False
    assert by_cost.seen == "30 ms against 29 ms of nginx stream, least_conn, by pairs +1 ms"
    assert by_cost.text == (
        "requests of unlike cost: production mode surely above none of 3 alternatives, mean of transfers"
    )
    few = r_unlike.report(unlike({name: means[name] for name in r_unlike.QUICK})).goals[0]
    assert "none of 2 alternatives, mean" in few.text, "only what was run"
    assert [len(table.rows) for table in report.tables] == [len(r_unlike.COMPARED)] * 2
    assert r_unlike.report(unlike({"production": 1.0})).goals[0].reached is None, "nothing to hold it against"


def test_unlike_says_whose_load_is_another_than_production_modes() -> None:
    def runs(name: str, mean_ms: float, asked: Sequence[float]) -> list[Record]:
        (record,) = unlike({name: mean_ms})
        return [
            replace(record, key=f"{name} #{number}", result={**record.result, "used": share, "cost_ms": 4 * share})
            for number, share in enumerate(asked)
        ]

    proxies = [*runs("haproxy-leastconn", 78.0, (0.57, 0.59, 0.61)), *runs("nginx-leastconn", 76.0, (0.67, 0.7, 0.73))]
    report = r_unlike.report([*runs("production", 94.0, (0.46, 0.47, 0.58)), *proxies])
    assert report.goals[0].seen.endswith(" of nginx stream, least_conn, by pairs +18 ± 0 ms, not at equal loads")
    assert [row[-3:] for row in report.tables[0].rows] == [
        ["2.01 ± 0.66", "2.50 ± 0.00", "50 ± 17 %"],
        ["2.36 ± 0.20", "2.50 ± 0.00", "59 ± 5 %"],
        ["2.80 ± 0.30", "2.50 ± 0.00", "70 ± 7 %"],
    ]


def test_unlike_reports_no_load_of_runs_whose_cost_was_measured_without_load() -> None:
    old = [
        replace(
            record, result={**{key: value for key, value in record.result.items() if key not in ("used", "idle_ms")}}
        )
        for record in unlike({"production": 94.0, "haproxy-leastconn": 78.0})
    ]
    report = r_unlike.report(old)
    assert [row[-3:] for row in report.tables[0].rows] == [["-", "2.00", "-"]] * 2
    assert report.goals[0].seen == "94 ms against 78 ms of HAProxy, leastconn, by pairs +16 ms"


def test_unlike_compares_runs_of_one_number() -> None:
    def runs(name: str, means: Sequence[float]) -> list[Record]:
        made = [record for mean in means for record in unlike({name: mean})]
        return [replace(record, key=f"{name} #{number}") for number, record in enumerate(made)]

    moods = (80.0, 120.0, 160.0, 100.0)
    proxy = runs("haproxy-leastconn", moods)
    above = r_unlike.report([*runs("production", [mood + 5.0 + mood / 100 for mood in moods]), *proxy]).goals[0]
    assert above.reached is False and above.seen.endswith("by pairs +6 ± 1 ms"), "however far apart the pairs are"
    scatter = [mood + gap for mood, gap in zip(moods, (-9.0, 14.0, -3.0, 10.0), strict=True)]
    level = r_unlike.report([*runs("production", scatter), *proxy]).goals[0]
    assert level.reached and level.seen.endswith("by pairs +3 ± 17 ms")


def test_unlike_costs_are_those_under_the_load() -> None:
    plan, load = pool_of((0.025,) * 10), Load(32.0, 10.0)
    paths = [HEAVY] * 16 + [WORK] * 304
    seen = r_unlike.costs(plan, load, paths, {"replies": 320, "connections": 320}, 1.28)
    assert seen == pytest.approx({"cost_ms": 2.0, "used": 0.512})
    half = r_unlike.costs(plan, load, paths, {"replies": 160, "connections": 320}, 0.64)
    assert half == pytest.approx({"cost_ms": 2.0, "used": 0.256}), "of what was answered"
    assert r_unlike.costs(plan, load, paths, {"replies": 0, "connections": 320}, 0.0)["cost_ms"] == 0.0


def control(path: str, mean_ms: float, given_up: int = 0) -> Record:
    first = record(
        {"path": path, "rate_per_s": 60.0, "seconds": 15.0}, mean_ms, httperf={"replies": 900, "duration_s": 15.0}
    )
    transfer = {**first.result["transfer"], "given_up": given_up}
    return replace(first, result={**first.result, "transfer": transfer})


def test_control_says_what_the_switch_adds_and_what_it_did_not_answer() -> None:
    ways = [control(r_control.DIRECT, 0.2), control(r_control.ROUTED, 0.4)]
    report = r_control.report([*ways, control(r_control.SWITCH, 1.0)])
    assert report.goals[0].reached and report.goals[0].seen == "100 of 100"
    assert [row[:3] for row in report.tables[0].rows] == [[path, "60", "60.0"] for path in r_control.WAYS]
    r_control.EXPERIMENT.draw(ways, Figure())
    assert r_control.report([*ways, control(r_control.SWITCH, 1.0, given_up=2)]).goals[0].reached is False
    assert r_control.report(ways).goals[0].reached is None


def test_changes_count_what_was_broken_and_what_was_lived_through() -> None:
    downloads = [Download(1.0, 5.0, ""), Download(2.0, 2.5, "3 of 9 bytes, reset")]
    seen = r_changes.figures(downloads, [0.5, 1.5, 2.2, 4.0])
    assert seen == {
        "by_hand": 4,
        "downloads": 2,
        "broken": ["3 of 9 bytes, reset"],
        "lived_through": [3, 1],
    }
    ratios = [[float(second), 0.5, 0.5, 0.0] for second in range(9)]
    more = {"httperf": {"replies": 9, "connections": 9, "resets": 0}, "resets_by_service": 0, "changes": 4}
    bad = record({"mode": "paper", "seconds": 30.0}, 1.0, ratios=ratios, **more, **seen)
    report = r_changes.report([bad])
    assert report.goals[0].reached is False and report.goals[0].seen == "1 of 2 downloads in 4 changes"
    whole = record({"mode": "paper", "seconds": 30.0}, 1.0, ratios=ratios, **more, **seen | {"broken": []})
    other = replace(whole, result={**whole.result, "changes": 6, "lived_through": [5, 7]})
    production = replace(whole, parameters={"mode": "production", "seconds": 30.0})
    report = r_changes.report([whole, production, other])
    assert [row[0] for row in report.tables[0].rows] == ["paper, 2 runs", "production"], "repeated runs are one row"
    assert report.tables[0].rows[0][1:] == ["5 (0–18)", "4", "4 (0–29)", "16", "0", "18 of 18", "0"]
    assert report.goals[0].seen == "0 of 6 downloads in 14 changes"
    assert [goal.reached for goal in r_changes.report([whole]).goals] == [True, True]
    r_changes.EXPERIMENT.draw([whole], Figure())


def test_requests_of_unlike_cost_are_the_same_for_everybody() -> None:
    paths = r_unlike.asked_for(2000, r_unlike.HEAVY_SHARE)
    assert paths == r_unlike.asked_for(2000, r_unlike.HEAVY_SHARE)
    assert paths.count(HEAVY) == 100 and set(paths) == {WORK, HEAVY}
    assert sorted(paths[:50]) != sorted(paths[50:100]), "in no order"
    assert HEAVY not in r_unlike.asked_for(2000, 0.0)


def test_no_case_of_unlike_servers_is_an_overload_at_the_cost_of_a_calm_machine() -> None:
    for point in [*r_unlike.points(False), *r_unlike.points(True)]:
        rate, cpus = point.parameters["rate_per_s"], point.parameters["cpus"]
        load = Load(rate, point.parameters["seconds"], r_unlike.GIVEN_UP_S)
        paths = r_unlike.asked_for(load.connections, point.parameters["heavy_share"])
        each_s = sum(2.9e-3 * (21 if path == HEAVY else 1) for path in paths) / len(paths)
        assert rate * each_s / sum(cpus) == pytest.approx(0.8, abs=0.06)


def cost(servers: int, flows: int, poll_ms: float, r_ms: float = 42.0) -> Record:
    phase = {"worst_ms": 9.0}
    parts = (("poll", poll_ms), ("news", 5.0), ("loads", 4.0), ("r", r_ms))
    result = {
        **{name: phase | {"ms": ms, "cpu_ms": ms / 2} for name, ms in parts},
        "whole_ms": poll_ms + r_ms + 5,
        "whole_worst_ms": 100.0 + poll_ms,
        "written_share": 0.93,
    }
    parameters = {"servers": servers, "flows": flows, "rounds": 15}
    return Record(f"{servers}, {flows}", parameters, result, 0.0, 1.0, 0.0)


def test_the_controllers_cost_is_stated_with_its_worst_round_and_what_it_is_made_of() -> None:
    report = controller_cost.report([cost(1000, 4096, 8.0), cost(1000, 65_536, 150.0, 45.0)])
    assert [goal.seen for goal in report.goals] == [
        "55 ms (108 in the worst round)",
        "0.77 %",
    ]
    assert report.tables[0].rows[0][2:] == [
        *("8.0 (4.0)", "5.0 (2.5)", "4.0 (2.0)", "42.0 (21.0)", "55.0", "108.0"),
        "0.77 %",  # of which 0.16 are readings of loads: 8 times 2 ms of CPU time in 10 s
    ]
    assert [title.endswith(", ms (CPU)") for title in report.tables[0].heading] == [False] * 2 + [True] * 4 + [
        False
    ] * 3
    assert controller_cost.report([cost(1000, 4096, 80.0)]).goals[0].reached is False


def test_the_controllers_cost_is_a_mean_of_repeated_runs() -> None:
    runs = [cost(1000, 4096, poll_ms) for poll_ms in (8.0, 10.0)]
    report = controller_cost.report([*runs, cost(10, 4096, 8.0)])
    assert report.goals[0].seen == "56 ± 13 ms (110 in the worst round)"
    assert report.tables[0].rows[0][2] == "9.0 (0–21.7) (4.5 (0–10.9))" and len(report.tables[0].rows) == 2
    controller_cost.EXPERIMENT.draw([*runs, cost(10, 4096, 8.0)], Figure())


def test_the_controllers_cost_of_one_size_is_drawn(tmp_path: Path) -> None:
    figure = Figure()
    controller_cost.EXPERIMENT.draw([cost(10, 1024, 8.0)], figure)
    figure.savefig(tmp_path / "one.svg")


def test_the_controllers_cost_by_flows_is_measured_with_few_and_with_many_servers() -> None:
    sizes = {(point.parameters["servers"], point.parameters["flows"]) for point in controller_cost.points(False)}
    flows = {flows for _, flows in sizes}
    assert {(servers, flow_count) for servers in (10, 1000) for flow_count in flows} <= sizes and len(flows) == 4


def test_dnat_gives_each_server_the_same_probability() -> None:
    rules = dnat_rules(pool_of((0.1,) * 10))
    shares = [float(rule[rule.index("--probability") + 1]) if "--probability" in rule else 1.0 for rule in rules]
    left, seen = 1.0, list[float]()
    for share in shares:
        seen.append(left * share)
        left -= left * share
    assert seen == pytest.approx([1 / 10] * 10, abs=1e-5)


def test_haproxy_is_configured_with_every_server() -> None:
    pool = pool_of((0.1,) * 10)
    text = haproxy_configuration("leastconn", pool)
    assert "balance leastconn" in text and all(f"server {name} " in text for name in pool.names)
