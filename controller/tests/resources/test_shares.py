"""Tests of shares of a budget: cases calculated by hand, and invariants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.resources.shares import Sharing, abt, equal, fixed, sabt

NEEDS = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=40)
EACH = pytest.mark.parametrize("sharing", [abt, sabt])


def test_equal_shares_ignore_needs() -> None:
    assert equal(240.0, np.array([10.0, 20.0, 400.0])).tolist() == [80.0, 80.0, 80.0]


def test_fixed_shares_ask_not_even_the_budget() -> None:
    assert fixed(64.0)(256.0, np.ones(6)).tolist() == [64.0] * 6


def test_three_connections_by_hand() -> None:
    """Needs are 110, 60 and 20, and the budget is 120: equal shares are 40, of which the third transfer leaves 20."""
    needs = np.array([110.0, 60.0, 20.0])
    assert abt(120.0, needs).tolist() == [50.0, 50.0, 20.0]
    # SABT divides the unused 20 in proportion to 110 and 60 (Matsuo et al., section 4.1).
    assert sabt(120.0, needs) == pytest.approx([40 + 20 * 110 / 170, 40 + 20 * 60 / 170, 20.0])


def test_what_is_left_satisfies_others_too() -> None:
    """Equal shares are 25: the first two transfers leave 25 unused, which satisfies the third and helps the fourth."""
    needs = np.array([1.0, 24.0, 26.0, 100.0])
    assert abt(100.0, needs).tolist() == [1.0, 24.0, 26.0, 49.0]
    assert sabt(100.0, needs).tolist() == [1.0, 24.0, 26.0, 49.0]


def test_no_needs_give_no_shares() -> None:
    assert (
        abt(1.0, np.array([])).tolist() == sabt(1.0, np.array([])).tolist() == equal(1.0, np.array([])).tolist() == []
    )


@EACH
@given(needs=NEEDS, fraction=st.floats(0.01, 2.0))
def test_all_is_given_and_no_more(sharing: Sharing, needs: list[float], fraction: float) -> None:
    wanted = np.array(needs)
    budget = fraction * wanted.sum()
    shares = sharing(budget, wanted)
    assert shares.sum() == pytest.approx(min(budget, wanted.sum()))
    assert (shares <= wanted).all()
    assert (shares > 0).all()


@EACH
@given(needs=NEEDS, fraction=st.floats(0.01, 1.0))
def test_who_lacks_something_has_an_equal_share_at_least(sharing: Sharing, needs: list[float], fraction: float) -> None:
    wanted = np.array(needs)
    budget = fraction * wanted.sum()
    shares = sharing(budget, wanted)
    lacking = shares < wanted * (1 - 1e-9)
    assert (shares[lacking] >= budget / len(needs) * (1 - 1e-9)).all()


@given(needs=NEEDS, fraction=st.floats(0.01, 1.0))
def test_abt_is_max_min_fair(needs: list[float], fraction: float) -> None:
    """Max-min fairness: each transfer whose share is below its need has the largest share."""
    wanted = np.array(needs)
    shares = abt(fraction * wanted.sum(), wanted)
    lacking = shares < wanted * (1 - 1e-9)
    assert (shares[lacking] >= shares.max() * (1 - 1e-9)).all()


@given(needs=NEEDS, fraction=st.floats(0.01, 1.0))
def test_sabt_gives_the_rest_in_proportion(needs: list[float], fraction: float) -> None:
    wanted = np.array(needs)
    budget = fraction * wanted.sum()
    shares = sabt(budget, wanted)
    lacking = shares < wanted * (1 - 1e-9)
    extra = (shares[lacking] - budget / len(needs)) / wanted[lacking]
    assert extra == pytest.approx(np.full(len(extra), extra.mean() if len(extra) else 0.0), abs=1e-6)


@EACH
@given(needs=NEEDS, fraction=st.floats(0.01, 2.0), times=st.floats(0.001, 1000.0))
def test_the_unit_does_not_matter(sharing: Sharing, needs: list[float], fraction: float, times: float) -> None:
    wanted = np.array(needs)
    budget = fraction * wanted.sum()
    assert sharing(budget * times, wanted * times) == pytest.approx(sharing(budget, wanted) * times)


@EACH
@given(needs=NEEDS, fraction=st.floats(0.01, 2.0), noise=st.floats(-0.01, 0.01), where=st.integers(0, 39))
def test_a_need_that_errs_by_a_percent_moves_shares_by_little(
    sharing: Sharing, needs: list[float], fraction: float, noise: float, where: int
) -> None:
    wanted = np.array(needs)
    budget = fraction * wanted.sum()
    other = wanted.copy()
    other[where % len(needs)] *= 1 + noise
    moved = np.abs(sharing(budget, other) - sharing(budget, wanted)).sum()
    assert moved <= 3 * abs(noise) * wanted[where % len(needs)] + 1e-9 * budget


@EACH
@given(needs=NEEDS, fraction=st.floats(0.01, 2.0), seed=st.integers(0, 9))
def test_the_order_does_not_matter(sharing: Sharing, needs: list[float], fraction: float, seed: int) -> None:
    wanted = np.array(needs)
    budget = fraction * wanted.sum()
    order = np.random.default_rng(seed).permutation(len(needs))
    assert sharing(budget, wanted[order]) == pytest.approx(sharing(budget, wanted)[order])
