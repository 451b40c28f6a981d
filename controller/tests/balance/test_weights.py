"""Tests of the largest remainder method: weights have the exact sum, and each is within 1 of its server's share.

The order of the servers does not change the result.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.balance.weights import largest_remainder, to_ratios, weight_sum

ratios = st.dictionaries(st.integers(1, 1000), st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=64).filter(
    lambda r: sum(r.values()) > 1e-6
)


@given(ratios)
def test_sum_is_exact_and_each_within_one(given_ratios: dict[int, float]) -> None:
    whole = weight_sum(len(given_ratios))
    weights = largest_remainder(given_ratios)
    scale = sum(given_ratios.values())
    assert sum(weights.values()) == whole
    for server, ratio in given_ratios.items():
        assert abs(weights.get(server, 0) - ratio / scale * whole) < 1 + 1e-6
    assert all(weight > 0 for weight in weights.values())


@given(ratios, st.randoms(use_true_random=False))
def test_order_does_not_matter(given_ratios: dict[int, float], random: object) -> None:
    items = list(given_ratios.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert largest_remainder(dict(items)) == largest_remainder(given_ratios)


@given(ratios)
def test_present_servers_keep_a_weight(given_ratios: dict[int, float]) -> None:
    weights = largest_remainder(given_ratios, measured=given_ratios)
    assert set(weights) == set(given_ratios)
    assert sum(weights.values()) == weight_sum(len(given_ratios))


@pytest.mark.parametrize(("servers", "whole"), [(1, 256), (3, 256), (16, 256), (17, 512), (1000, 16384)])
def test_sum_is_a_power_of_two_of_at_least_16_a_server(servers: int, whole: int) -> None:
    assert weight_sum(servers) == whole


def test_thirds() -> None:
    assert largest_remainder({1: 1 / 3, 2: 1 / 3, 3: 1 / 3}) == {1: 86, 2: 85, 3: 85}


def test_zero_is_left_out_and_none_is_refused() -> None:
    assert largest_remainder({1: 1.0, 2: 0.0}) == {1: 256}
    with pytest.raises(ValueError, match="never empty"):
        largest_remainder({1: 0.0})
    with pytest.raises(ValueError, match="negative"):
        largest_remainder({1: 2.0, 2: -1.0})


def test_read_back_weights_become_ratios_and_the_same_weights_again() -> None:
    weights = {1: 100, 2: 100, 3: 56}
    assert largest_remainder(to_ratios(weights)) == weights
