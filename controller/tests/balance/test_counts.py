"""Tests of cumulative counters, their differences, and the sliding window of differences."""

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.balance.counts import CounterReset, Counts, total
from sluice.balance.window import Window

cells = st.integers(0, (1 << 32) - 1)
steps = st.integers(0, (1 << 31) - 1)


@given(st.lists(cells, min_size=5, max_size=5), st.lists(steps, min_size=5, max_size=5))
def test_difference_is_what_was_counted_across_any_wrap(start: list[int], counted: list[int]) -> None:
    later = Counts(*((a + b) % (1 << 32) for a, b in zip(start, counted, strict=True)))
    assert astuple(later.since(Counts(*start))) == tuple(counted)


def test_counter_that_went_back_is_a_reset() -> None:
    with pytest.raises(CounterReset):
        Counts(syn=3).since(Counts(syn=1000))


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 20))
def test_window_sums_the_last_m_differences(counted: list[int], intervals: int) -> None:
    window = Window(intervals)
    for syn in counted:
        window.push(Counts(syn=syn))
    assert window.total == total([Counts(syn=syn) for syn in counted[-intervals:]])


def test_smaller_window_keeps_the_newest() -> None:
    window = Window(4)
    for syn in (1, 2, 4, 8):
        window.push(Counts(syn=syn))
    window.resize(2)
    assert window.total.syn == 12


def test_window_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one interval"):
        Window(0)


def test_a_window_keeps_the_sum_of_what_is_in_it() -> None:
    window, pushed = Window(4), list[Counts]()
    for n in range(20):
        pushed.append(Counts(n, n * 3 % 7, n % 3, n % 5, n % 2))
        window.push(pushed[-1])
        assert window.total == total(pushed[-4:])
    window.resize(2)
    assert window.total == total(pushed[-2:])
    window.push(Counts(syn=5))
    assert window.total == pushed[-1] + Counts(syn=5)
    window.clear()
    assert window.total == Counts()


def test_a_part_is_taken_from_a_sum() -> None:
    assert Counts(5, 4, 3, 2, 1) - Counts(1, 1, 1, 1, 1) == Counts(4, 3, 2, 1, 0)
