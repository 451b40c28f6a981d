"""Servers and requests that are not alike, simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from experiments import (
    sim_unlike,
)
from experiments.experiment import Record
from experiments.tests.small import measured, said


def test_servers_and_requests_that_are_not_alike() -> None:
    chosen = [one for one in sim_unlike.EXPERIMENT.points(True) if one.parameters["seed"] == 1]
    short = [replace(one, parameters={**one.parameters, "end_s": 20.0}) for one in chosen]
    records = measured(sim_unlike.EXPERIMENT, short)
    text = said(sim_unlike.EXPERIMENT, records)
    assert text.count("R, production mode |") == text.count("least connections of all, as a proxy |") == 3
    equal, by_r = (records[number].result["connect"]["mean_ms"] for number in (0, 3))
    assert by_r < equal, "the second look spares the small servers"
    goals = sim_unlike.EXPERIMENT.report(records).goals
    assert [one.text.partition(":")[0] for one in goals] == list(sim_unlike.CPUS)
    assert [round(sim_unlike.asked(case), 2) for case in sim_unlike.CPUS] == [0.7, 0.8, 0.84]


def test_unlike_goals_say_what_may_be_chance_and_explain_only_what_is_not() -> None:
    def runs(variant: str, means: Sequence[float], case: str = sim_unlike.SMALL) -> list[Record]:
        parameters = {"case": case, "variant": variant}
        made: list[Record] = []
        for number, ms in enumerate(means):
            times = {"mean_ms": ms, "p99_ms": 3 * ms, "given_up": 0, "begun": 100}
            result = {"connect": times, "transfer": times, "ratios": [0.1] * 10, "weight_changes": 3}
            made.append(Record(f"{case}, {variant} #{number}", parameters, result, 0.0, 1.0, 0.0))
        return made

    proxy = runs(sim_unlike.LEAST, (78.0, 79.0, 80.0))
    scattered = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (120.0, 190.0, 290.0)), *proxy])
    goal = scattered.goals[0]
    assert goal.reached is False and goal.seen == (
        "200 (0–412) ms against 79 ± 2 ms of least connections of all, as a proxy, no more apart than chance"
    )
    apart = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (199.0, 200.0, 201.0)), *proxy])
    assert apart.goals[0].reached is False and "chance" not in apart.goals[0].seen

    _worse, _scatters = (410.0, 420.0, 430.0), (180.0, 420.0, 660.0)
