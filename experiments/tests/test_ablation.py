"""Tests of the simulated ablation of R's production mode."""

from __future__ import annotations

import pytest
from sluice.balance import production

from experiments import ablation
from experiments.experiment import Point, Record, Values
from experiments.tests.small import measured, report_text, tables_of

SHOWS = {
    "confidence": ablation.STRAY,
    "several servers at once": "3 of 30 servers loaded",
    "losses acted on once": "1 of 3 servers loaded",
    "slowness": "ten servers of unlike capacity",
    "recovery": "ten servers of unlike capacity",
    "ceilings": "1 of 3 servers loaded",
    "slow start": "a server silent for a while",
    "silence": "a server silent for a while",
}
"""For each mechanism, a case in which the mechanism has an effect."""


def point(case: str, without: str, *, second_look: bool) -> Point:
    (only,) = [
        candidate
        for candidate in ablation.points(False)
        if candidate.parameters == {"case": case, "without": without, "look": second_look, "seed": 1}
    ]
    return only


def run(case: str, without: str, *, second_look: bool) -> Values:
    return ablation.measure(point(case, without, second_look=second_look))


def test_each_mechanism_has_a_case() -> None:
    deleted = {name for name, variant in ablation.MECHANISMS.items() if variant is ablation.DELETED}
    assert {*SHOWS, *deleted, ablation.WHOLE, ablation.PAPER, ablation.FIXED} == {*ablation.MECHANISMS}


@pytest.mark.parametrize("mechanism", SHOWS)
def test_a_mechanism_that_is_switched_off_is_missed(mechanism: str) -> None:
    case = SHOWS[mechanism]
    second_look = mechanism == "slowness"
    before = (production.Window, production.Ceilings, production.standing_out)
    whole, other = (run(case, without, second_look=second_look) for without in (ablation.WHOLE, mechanism))
    assert whole != other, "without it the run is the same"
    assert before == (production.Window, production.Ceilings, production.standing_out)


def test_the_report_names_what_pays_and_what_harms() -> None:
    def made(without: str, means: list[float]) -> list[Record]:
        parameters = {"case": ablation.STRAY, "without": without, "look": True}
        return [
            Record(f"{without} #{seed}", {**parameters, "seed": seed}, {"mean_ms": ms}, 0.0, 1.0, 0.0)
            for seed, ms in enumerate(means, start=1)
        ]

    records = [
        *made(ablation.WHOLE, [100.0, 110.0, 90.0]),
        *made("silence", [130.0, 141.0, 119.0]),
        *made("panic", [80.0, 89.0, 71.0]),
        *made("recovery", [103.0, 113.0, 93.0]),
        *made("ceilings", [100.0, 190.0, 60.0]),
    ]
    text = tables_of(ablation.report(records))
    cells = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()}
    assert cells["without silence"].endswith("| pays in 1, harms in 0 |") and "**+30 ± 2**" in cells["without silence"]
    assert cells["without panic"].endswith("| pays in 0, harms in 1 |")
    for mechanism in ("recovery", "ceilings"):
        assert cells[f"without {mechanism}"].endswith("| makes no difference |"), "too little, or not sure"


def test_runs_are_reported_and_drawn() -> None:
    wanted = [ablation.WHOLE, "silence", ablation.FIXED]
    records = measured(
        ablation.EXPERIMENT,
        [
            point(case, name, second_look=second_look)
            for case in ("a server refuses",)
            for name in wanted
            for second_look in ablation.LOOKS
        ],
    )
    text = report_text(ablation.EXPERIMENT, records)
    assert text.count("| fixed weights |") == text.count("| without silence |") == 2
