"""Tests of the conversion of cumulative request counts to intervals."""

import pytest
from sluice.addresses import from_text
from sluice.balance import CounterReset
from sluice.news import Requests
from sluice.news.requests import Interval, RequestMeter

A, B = from_text("10.0.0.1").packed, from_text("10.0.0.2").packed


def test_differences_and_rates() -> None:
    meter = RequestMeter()
    assert meter.read(0, {A: Requests(10, 10, 0)}) is None
    interval = meter.read(2, {A: Requests(30, 25, 5)})
    assert interval is not None
    assert interval.requests == {A: Requests(20, 15, 5)}
    assert interval.admitted_rate(A) == 7.5
    assert interval.admitted_rate(None) == 7.5
    assert interval.admitted_rate(B) is None
    assert interval.requests[A].refused_share == 0.25


def test_right_across_a_wrap() -> None:
    assert Requests(5, 5, 0).since(Requests(2**32 - 5, 2**32 - 5, 0)) == Requests(10, 10, 0)


def test_a_reset_is_a_new_beginning_not_a_spike() -> None:
    meter = RequestMeter()
    meter.read(0, {A: Requests(1000, 1000)})
    assert meter.read(1, {A: Requests(3, 3)}) is None
    after = meter.read(2, {A: Requests(10, 10)})
    assert after is not None
    assert after.requests[A].offered == 7
    with pytest.raises(CounterReset):
        Requests(3, 3).since(Requests(1000, 1000))


def test_a_new_destination_is_a_base_first() -> None:
    meter = RequestMeter()
    meter.read(0, {})
    interval = meter.read(1, {B: Requests(500, 500)})
    assert interval is not None
    assert interval.requests == {}


def test_a_base_taken_between_two_readings_gives_the_rate_over_its_own_span() -> None:
    meter = RequestMeter()
    meter.read(0, {})
    assert meter.peek(9, B, Requests(100, 100)) is None
    interval = meter.read(10, {B: Requests(140, 140)})
    assert interval is not None
    assert interval.admitted_rate(B) == 40


def test_what_one_limit_does_not_hold_back_is_no_part_of_it() -> None:
    """Requests to a destination with its own bucket (`exempt`) are in the total, but not in the general limit's sum."""
    interval = Interval(2.0, {A: Requests(60, 40, 20), B: Requests(10, 10)}, exempt={B})
    assert interval.total == Requests(70, 50, 20)
    assert interval.together == Requests(60, 40, 20)
    assert interval.admitted_rate(None) == 20
    assert interval.admitted_rate(B) == 5
