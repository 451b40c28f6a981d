"""Tests of the criteria by which a figure agrees with a published number, and of the reasons reported otherwise."""

from __future__ import annotations

import math

import pytest

from experiments.findings import NOT_KNOWN, at_least, at_most, near, table, times
from experiments.intervals import Mean, mean_of


def one(value: float) -> Mean:
    return mean_of([value])


@pytest.mark.parametrize(("here", "agrees"), [(49.0, True), (59.0, True), (39.0, True), (59.1, False), (38.9, False)])
def test_shares_agree_within_ten_points(here: float, agrees: bool) -> None:
    (finding,) = near("Fig. 1", "rejected", 49, one(here), below="low", above="high")
    assert finding.agrees is agrees and finding.why == ("high" if here >= 49 else "low")


def test_losses_agree_within_three_points() -> None:
    assert near("Fig. 1", "loss", 2, one(5.0), within=3.0)[0].agrees
    (finding,) = near("Fig. 1", "loss", 2, one(25.8), within=3.0)
    assert (finding.paper, finding.here, finding.agrees, finding.why) == ("2 %", "25.8 %", False, NOT_KNOWN)


@pytest.mark.parametrize(("here", "agrees"), [(2.0, True), (3.0, True), (4 / 3, True), (3.01, False), (1.33, False)])
def test_ratios_agree_within_a_factor(here: float, agrees: bool) -> None:
    assert times("Fig. 1", "AR", 2.0, one(here))[0].agrees is agrees


def test_bounds_agree_that_are_kept() -> None:
    assert at_most("Fig. 1", "loss", 3, one(3.0), unit="%")[0].agrees
    assert not at_most("Fig. 1", "loss", 3, one(3.1), unit="%")[0].agrees
    (finding,) = at_least("Fig. 1", "AR", 89, one(88.0), unit="%", why="slow")
    assert (finding.paper, finding.here, finding.agrees, finding.why) == ("at least 89 %", "88 %", False, "slow")


def test_what_was_not_measured_is_no_point() -> None:
    nothing = one(math.nan)
    assert near("", "", 1, nothing) == times("", "", 1, nothing) == at_most("", "", 1, nothing, unit="") == []


def test_a_figure_that_agrees_in_one_point_of_two_does_not_agree() -> None:
    findings = [
        *near("Fig. 1", "rejected", 49, one(50.0)),
        *near("Fig. 1", "admitted", 49, mean_of([28.0, 32.0]), below="The limit is low."),
        *times("Fig. 2", "AR", 2.0, one(9.0), above="The limit is low."),
        *times("Fig. 3", "AR", 2.0, one(0.5)),
        *times("Fig. 4", "AR", 2.0, one(2.0)),
    ]
    assert [row[0] for row in table(findings).rows] == ["Fig. 1", "", "Fig. 2", "Fig. 3", "Fig. 4"]
    assert [row[-2:] for row in table(findings).rows] == [
        ["yes", ""],
        ["**no**", "The limit is low."],
        ["**no**", "The limit is low."],
        ["**no**", NOT_KNOWN],
        ["yes", ""],
    ]
