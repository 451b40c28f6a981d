"""Checks that the measured errors of the switch's response rates are within the bounds that the documentation gives."""

from math import inf

import numpy as np
import pytest

from tools.tsw_error import WINDOW_S, Case, case, on_off, response, steady


def within(item: Case, mean: float, most: float) -> None:
    """Assert that the mean error of a case is at most ``mean`` percent to either side, and 90 % of the errors are at
    most ``most`` percent."""
    assert abs(np.mean(item.percent)) <= mean
    assert np.percentile(np.abs(item.percent), 90) <= most


@pytest.mark.parametrize("rate", [1e5, 3e5, 1e6])
def test_steady_traffic_of_at_least_a_packet_a_step_is_within_seven_percent(rate: float) -> None:
    within(case("steady", "1500 bytes", rate, lambda s: steady(s, rate, 1500), 3 * WINDOW_S), 3, 7)


def test_slow_traffic_is_within_thirty_percent() -> None:
    within(case("steady", "1500 bytes", 1e4, lambda s: steady(s, 1e4, 1500), 3 * WINDOW_S), 13, 29)


@pytest.mark.parametrize("size", [500, 10_000, 200_000])
@pytest.mark.parametrize("rtt", [0.01, 0.1, 0.4])
def test_one_response_is_within_fifteen_percent(size: int, rtt: float) -> None:
    within(case("response", f"round trip {1000 * rtt:g} ms", size, lambda s: response(s, size, rtt), inf), 7, 15)


def test_bursts_with_pauses_of_up_to_a_window_are_within_twenty_percent() -> None:
    for pause in (0.1, 0.3, 1.0):
        within(case("on/off", "on 0.05 s", pause, lambda s, p=pause: on_off(s, 0.05, p), 3 * WINDOW_S), 7, 20)
