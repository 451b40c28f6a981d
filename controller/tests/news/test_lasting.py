"""Tests of the share of long responses, and of Wald's sequential test of that share."""

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from sluice.news.lasting import Portion, evidence, lasting

PORTIONS = st.integers(0, 10_000).flatmap(lambda of: st.builds(Portion, st.integers(0, of), st.just(of)))
SHARES = st.floats(0.01, 0.6)


def keys(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint64)


def test_those_seen_before_are_counted_once_however_often_that_was() -> None:
    assert lasting(keys(1, 2, 3), keys(2, 2, 7, 3)) == Portion(2, 3)
    assert lasting(keys(), keys(1)) == Portion(0, 0)
    assert lasting(keys(1), keys()) == Portion(0, 1)


@given(PORTIONS, PORTIONS)
def test_portions_add_up_and_stay_parts_of_one(first: Portion, second: Portion) -> None:
    both = first + second
    assert both == second + first
    assert 0 < both.share < 1
    low, high = sorted((first.share, second.share))
    assert both.share < high + 1 / (both.of + 2) and both.share > low - 1 / (both.of + 2)


@given(PORTIONS, PORTIONS, SHARES)
def test_evidence_adds_up_as_responses_come(first: Portion, second: Portion, usual: float) -> None:
    more = usual * 1.25
    assert evidence(first + second, usual, more) == approx(
        evidence(first, usual, more) + evidence(second, usual, more), abs=1e-6
    )


@given(st.integers(1, 10_000), SHARES)
def test_each_that_lasts_is_evidence_for_more_and_each_that_does_not_against(of: int, usual: float) -> None:
    values = [evidence(Portion(count, of), usual, usual * 1.25) for count in (0, of // 2, of)]
    assert values == sorted(values)
    assert values[0] < 0 < values[-1]
    assert evidence(Portion(), usual, usual * 1.25) == 0


@pytest.mark.parametrize("chance", [0.05, 0.1])
@pytest.mark.parametrize("truth", ["usual", "more"])
def test_it_errs_no_oftener_than_it_says_however_often_it_is_looked_at(chance: float, truth: str) -> None:
    """The sequential test is evaluated after every twenty responses; its error rate must not exceed `chance`."""
    random = np.random.default_rng(7)
    usual, bound, wrong, tests = 0.17, log(1 / chance), 0, 2000
    more = 1.25 * usual
    for _ in range(tests):
        now = Portion()
        while abs(value := evidence(now, usual, more)) < bound:
            now += Portion(int(random.binomial(20, usual if truth == "usual" else more)), 20)
        wrong += (value > 0) == (truth == "usual")
    assert wrong / tests <= chance
