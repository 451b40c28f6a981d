"""Tests of the paper's equation 6: steps of the ratios, ties, idle servers, and bounds of the ratios."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.balance.ratios import bounded, normalised
from sluice.balance.step import relieve, shift, worst

third = {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}


def test_equation_6() -> None:
    moved = shift({1: 0.5, 2: 0.3, 3: 0.2}, 1, 0.1)
    assert math.isclose(moved[1], 0.45)
    assert math.isclose(moved[2], 0.325)
    assert math.isclose(moved[3], 0.225)


def test_nothing_moves_while_every_r_is_equal() -> None:
    assert worst({1: 0.0, 2: 0.0, 3: 0.0}, third) is None
    assert worst({1: 0.4, 2: 0.4, 3: 0.4}, third) is None
    assert worst({1: math.inf, 2: math.inf}, third) is None
    assert worst({1: None, 2: None}, third) is None


def test_of_several_largest_the_larger_ratio_then_the_lower_id() -> None:
    assert worst({1: 0.4, 2: 0.4, 3: 0.0}, {1: 0.2, 2: 0.5, 3: 0.3}) == 2
    assert worst({1: 0.0, 2: 0.4, 3: 0.4}, third) == 2
    assert worst({1: math.inf, 2: 9.0, 3: math.inf}, third) == 1


def test_no_evidence_is_not_a_small_r() -> None:
    assert worst({1: None, 2: 0.1, 3: 0.0}, third) == 2
    assert worst({1: 0.3, 2: None, 3: None}, third) == 1, "the only server with evidence, and it loses SYNs"
    assert worst({1: 0.0, 2: None, 3: None}, third) is None


def test_a_single_server_keeps_its_ratio() -> None:
    assert shift({1: 1.0}, 1, 0.1) == {1: 1.0}


def test_several_give_at_once_and_receivers_share_by_their_values() -> None:
    ratios = {1: 0.1, 2: 0.1, 3: 0.4, 4: 0.4}
    moved = relieve(ratios, {1: 0.1, 2: 0.05}, {3: 1.0, 4: 2.0})
    assert moved == pytest.approx({1: 0.09, 2: 0.095, 3: 0.405, 4: 0.41})
    assert relieve(ratios, {1: 0.1}, {}) == ratios == relieve(ratios, {}, {3: 1.0})


def test_receivers_do_not_grow_by_more_than_the_largest_gift() -> None:
    ratios = dict.fromkeys(range(1, 11), 0.1)
    moved = relieve(ratios, dict.fromkeys(range(1, 10), 0.1), {10: 1.0})
    assert moved[10] == pytest.approx(0.11)
    assert sum(moved.values()) == pytest.approx(1.0)
    assert moved[1] == pytest.approx(0.1 - 0.01 / 9)


def test_a_single_gift_is_moved_whole_however_little_the_others_have() -> None:
    assert relieve({1: 0.98, 2: 0.02}, {1: 0.1}, {2: 1.0}) == pytest.approx({1: 0.882, 2: 0.118})


pools = st.dictionaries(st.integers(1, 40), st.floats(0.001, 1), min_size=2, max_size=20).map(normalised)


@given(pools, st.floats(0.01, 0.99), st.data())
def test_a_step_keeps_the_sum_and_the_bounds(ratios: dict[int, float], delta: float, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(sorted(ratios)))
    moved = shift(ratios, source, delta)
    assert math.isclose(sum(moved.values()), 1.0)
    assert math.isclose(moved[source], ratios[source] * (1 - delta), rel_tol=1e-9)
    assert all(0 < value < 1 for value in moved.values())


@given(pools, st.data())
def test_bounded_ratios_sum_to_one_within_bounds(ratios: dict[int, float], data: st.DataObject) -> None:
    low = {i: data.draw(st.floats(0, 1 / len(ratios))) for i in ratios}
    high = {i: data.draw(st.floats(1 / len(ratios), 1)) for i in ratios}
    result = bounded(ratios, low, high)
    assert math.isclose(sum(result.values()), 1.0)
    for server, value in result.items():
        assert low[server] - 1e-9 <= value <= high[server] + 1e-9


def test_unsatisfiable_bounds_are_scaled() -> None:
    ratios = {1: 0.5, 2: 0.5}
    assert bounded(ratios, {1: 0, 2: 0}, {1: 0.1, 2: 0.3}) == pytest.approx({1: 0.25, 2: 0.75})
    assert bounded(ratios, {1: 3.0, 2: 1.0}, {1: 3.0, 2: 1.0}) == pytest.approx({1: 0.75, 2: 0.25})
