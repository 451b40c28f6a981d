"""Tests of the simulation of unequal servers and requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from experiments import sim_unlike
from experiments.experiment import Record
from experiments.tests.small import measured, report_text


def test_servers_and_requests_that_are_not_alike() -> None:
    chosen = [point for point in sim_unlike.EXPERIMENT.points(True) if point.parameters["seed"] == 1]
    short = [replace(point, parameters={**point.parameters, "end_s": 20.0}) for point in chosen]
    records = measured(sim_unlike.EXPERIMENT, short)
    text = report_text(sim_unlike.EXPERIMENT, records)
    assert text.count("R, production mode |") == text.count("least connections of all, as a proxy |") == 3
    equal, by_r = (records[number].result["connect"]["mean_ms"] for number in (0, 4))
    assert by_r < equal, "the second look spares the small servers"
    goals = sim_unlike.EXPERIMENT.report(records).goals
    assert [goal.text.partition(":")[0] for goal in goals] == [case for case in sim_unlike.CPUS for _ in range(2)]
    assert [round(sim_unlike.asked(case), 2) for case in sim_unlike.CPUS] == [0.7, 0.8, 0.84]


def test_unlike_goals_hold_pairs_of_one_seed_against_each_other() -> None:
    def runs(variant: str, means: Sequence[float], case: str = sim_unlike.SMALL) -> list[Record]:
        parameters = {"case": case, "variant": variant}
        made: list[Record] = []
        for number, ms in enumerate(means):
            times = {"mean_ms": ms, "p99_ms": 3 * ms, "given_up": 0, "begun": 100}
            result = {"connect": times, "transfer": times, "ratios": [0.1] * 10, "weight_changes": 3}
            made.append(Record(f"{case}, {variant} #{number}", parameters, result, 0.0, 1.0, 0.0))
        return made

    moods = (60.0, 90.0, 150.0)
    proxy = runs(sim_unlike.LEAST, moods)
    scattered = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (80.0, 75.0, 165.0)), *proxy]).goals[0]
    assert scattered.reached and scattered.seen == ("107 (0–232) against 100 (0–214) ms of a proxy, by pairs +7 ± 47")
    differing = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (65.0, 96.0, 155.0)), *proxy])
    assert [goal.reached for goal in differing.goals] == [False, False], "a little more in every pair"
    assert differing.goals[1].seen.endswith("by pairs +16 ± 4")
