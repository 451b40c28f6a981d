"""Tests of the high-low filter and of the baseline."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.news.filters import Baseline, HighLowFilter

VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


def test_hand_computed() -> None:
    hlf = HighLowFilter(0.125, 0.875)
    averages: list[float | None] = []
    for value, alarm in [(100, False), (200, False), (20, True), (20, True), (100, False)]:
        hlf.fold(value, alarm=alarm)
        averages.append(hlf.average)
    # 100; then 1/8 of the old + 7/8 of 200; twice 7/8 of the old + 1/8 of 20; then 1/8 of the old + 7/8 of 100.
    assert averages == pytest.approx([100, 187.5, 166.5625, 148.2421875, 106.0302734375])


@given(VALUES, st.booleans())
def test_stays_within_what_was_observed(values: list[float], alarm: bool) -> None:
    hlf = HighLowFilter(0.125, 0.875)
    for value in values:
        hlf.fold(value, alarm=alarm)
    assert hlf.average is not None
    assert min(values) * (1 - 1e-9) <= hlf.average <= max(values) * (1 + 1e-9)


def test_young_baseline_is_the_plain_mean() -> None:
    baseline = Baseline(gain=0.99)
    for value in (400, 100, 100):
        baseline.fold(value)
    assert baseline.average == pytest.approx(200)


def test_old_baseline_forgets_with_its_gain() -> None:
    baseline = Baseline(gain=0.9)
    for _ in range(50):
        baseline.fold(100)
    baseline.fold(200)
    assert baseline.average == pytest.approx(110)


def test_tolerance_grows_with_noise_within_its_bounds() -> None:
    steady, noisy, wild = Baseline(0.9), Baseline(0.9), Baseline(0.9)
    for i in range(200):
        steady.fold(100)
        noisy.fold(100 + 5 * (-1) ** i)
        wild.fold(100 + 90 * (-1) ** i)
    assert math.isclose(steady.tolerance(0.1, 5, 0.5), 0.1)
    assert 0.2 < noisy.tolerance(0.1, 5, 0.5) < 0.3
    assert wild.tolerance(0.1, 5, 0.5) == 0.5
    assert Baseline(0.9).tolerance(0.1, 5, 0.5) == 0.1
