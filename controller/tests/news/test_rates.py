"""Tests of AR, which is the mean rate of the fastest responses (the fastest share p of the flows)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.news import ObservationError, fastest_mean
from sluice.news.rates import checked, fastest_count

RATES = st.lists(st.floats(0, 1e9), min_size=1, max_size=200)


def test_fastest_tenth_of_twenty() -> None:
    rates = np.arange(1, 21, dtype=np.float64) * 1000
    assert fastest_mean(rates, 0.1) == 19_500


def test_at_least_one_flow_and_none_without_flows() -> None:
    assert fastest_mean(np.array([3.0, 7.0, 5.0]), 0.1) == 7
    assert fastest_mean(np.zeros(0), 0.1) is None


@pytest.mark.parametrize(
    ("flows", "share", "count"), [(100, 0.29, 29), (30, 0.1, 3), (25, 0.1, 2), (9, 0.1, 1), (0, 0.1, 0)]
)
def test_count_is_rounded_down(flows: int, share: float, count: int) -> None:
    assert fastest_count(flows, share) == count


@given(RATES, st.floats(0.01, 1))
def test_same_as_sorting(values: list[float], share: float) -> None:
    count = fastest_count(len(values), share)
    expected = sum(sorted(values)[-count:]) / count
    ar = fastest_mean(np.array(values), share)
    assert ar is not None
    assert math.isclose(ar, expected, rel_tol=1e-9, abs_tol=1e-9)


@given(RATES)
def test_never_below_the_mean_of_all_nor_above_the_fastest(values: list[float]) -> None:
    ar = fastest_mean(np.array(values), 0.1)
    assert ar is not None
    assert np.mean(values) * (1 - 1e-9) <= ar <= max(values) * (1 + 1e-9)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_what_is_no_rate_is_named(bad: float) -> None:
    with pytest.raises(ObservationError, match="index 1"):
        checked(np.array([1.0, bad]))


def test_integers_of_any_shape_are_taken() -> None:
    assert checked(np.array([[1, 2], [3, 4]])).tolist() == [1, 2, 3, 4]
