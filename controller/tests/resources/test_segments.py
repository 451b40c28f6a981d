"""Tests of rounding shares of a buffer to whole segments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.resources.segments import in_segments

SHARES = st.lists(
    st.tuples(st.floats(1.0, 1e7), st.sampled_from([536.0, 1220.0, 1448.0, 8948.0]), st.integers(0, 3)), min_size=1
)


def test_three_by_hand() -> None:
    """Shares of 2.9, 2.5 and 2.4 segments of 1,000 bytes become 3, 2 and 2 segments.

    The budget is 7.8 segments; the remaining 800 bytes are less than a segment.
    """
    sizes = in_segments(
        np.array([2_900.0, 2_500.0, 2_400.0]), np.full(3, 1000.0), np.zeros(3, int), np.array([7_800.0])
    )
    assert sizes.tolist() == [3_000.0, 2_000.0, 2_000.0]


@pytest.mark.parametrize(("budget", "first"), [(1_747.0, 700.0), (1_748.0, 1448.0)])
def test_less_than_a_segment_stays_unless_there_is_room_for_one(budget: float, first: float) -> None:
    """With needs of 700 and 300 bytes, the first becomes a segment (1,448) only if the budget has room for both."""
    sizes = in_segments(np.array([700.0, 300.0]), np.full(2, 1448.0), np.zeros(2, int), np.array([budget]))
    assert sizes.tolist() == [first, 300.0]


def test_no_needs_give_no_shares() -> None:
    assert in_segments(np.array([]), np.array([]), np.array([], int), np.array([5.0])).tolist() == []


@given(SHARES, st.floats(1.0, 1.5))
def test_nothing_is_lost_and_budgets_hold(given_shares: list[tuple[float, float, int]], room: float) -> None:
    shares, mss, owner = (np.array(column) for column in zip(*given_shares, strict=True))
    parts = (room * np.bincount(owner, shares, 4)).astype(np.float64)
    sizes = in_segments(shares, mss, owner, parts)
    assert (np.bincount(owner, sizes, 4) <= parts * (1 + 1e-12)).all()
    for share, size, each in zip(shares, sizes, mss, strict=True):
        assert size // each in (share // each, share // each + 1)
        assert size == share or size % each == 0
