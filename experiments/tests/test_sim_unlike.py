"""Servers and requests that are not alike, simulated."""

from __future__ import annotations

import re
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
    behind = sim_unlike.EXPERIMENT.report(records).goals[-1].reached is False
    said_why = "\n".join(sim_unlike.EXPERIMENT.report(records).text)
    assert said_why.startswith("One run each, of the second half of each;")
    ends = re.search(r"a small one's ratio ends at 0\.\d\d and a large one's at 0\.\d\d", said_why)
    assert (ends is not None) == behind
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
        "200 ± 212 ms against 79 ± 2 ms of least connections of all, as a proxy, no more apart than chance"
    )
    assert scattered.text[2] == "", "chance needs no reason"
    apart = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (199.0, 200.0, 201.0)), *proxy])
    assert apart.goals[0].reached is False and "chance" not in apart.goals[0].seen
    assert apart.text[2].startswith("Why a proxy's least connections are ahead with small servers")
    fewer = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (199.0, 201.0)), *proxy])
    assert fewer.text[0].startswith("Means over 2 to 3 runs, with 95 % intervals, of the second half of each")
    better = sim_unlike.report([*runs(sim_unlike.PRODUCTION, (69.0, 70.0, 71.0)), *proxy])
    assert better.goals[0].reached and better.text[2] == ""
    equal = runs(sim_unlike.EQUAL, (200.0, 210.0, 220.0), sim_unlike.COST)

    def harm(paper: Sequence[float], without: Sequence[float]) -> str:
        by_r = [(sim_unlike.PAPER, paper), (sim_unlike.WITHOUT, without)]
        more = [one for variant, means in by_r for one in runs(variant, means, sim_unlike.COST)]
        return sim_unlike.report([*equal, *more]).text[1]

    worse, scatters = (410.0, 420.0, 430.0), (180.0, 420.0, 660.0)
    assert harm(worse, scatters).endswith(
        "the whole transfer takes 420 ± 25 ms under R, paper mode, 210 ± 25 ms under an equal split."
    )
    assert "takes 420 ± 25 ms under R, production mode without the second look, 210" in harm(scatters, worse)
    assert harm(scatters, scatters) == ""
    told = [
        sim_unlike.report(
            [one for case in cases for one in runs(sim_unlike.TOLD, (6.0, 6.1, 6.2), case)]
            + [one for case in cases for one in runs(sim_unlike.PRODUCTION, (3.0, 3.1, 3.2), case)]
        ).text[3]
        for cases in ((sim_unlike.CAPACITY, sim_unlike.SMALL), (sim_unlike.SMALL,))
    ]
    assert told[0].startswith("Told the capacities production mode") and told[1] == ""
