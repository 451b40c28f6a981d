"""Tests of the search for the largest rate, with simulated forwarders."""

import pytest

from tools.bench.search import LOSS, RESOLUTION, Trial, largest_rate, spread

FLOOD = 900_000.0


def forwarder(capacity: float, load: float = FLOOD, overload_share: float = 1.0):
    """Simulate a forwarder of `capacity` frames/s, which forwards only `overload_share` of it under overload; the load
    generator sends at most `load` frames/s."""

    def offer(rate: float) -> Trial:
        sent = min(rate or load, load)
        carried = sent if sent <= capacity else capacity * overload_share
        return Trial(round(sent), round(carried), 1.0)

    return offer


@pytest.mark.parametrize("capacity", [700.0, 23_600.0, 250_000.0, 880_000.0])
@pytest.mark.parametrize("overload_share", [1.0, 0.7, 0.3])
def test_the_rate_is_found_within_the_resolution(capacity: float, overload_share: float) -> None:
    rate = largest_rate(forwarder(capacity, overload_share=overload_share))
    assert capacity / (1 + RESOLUTION) * 0.99 <= rate <= capacity * 1.001


def test_what_carries_the_flood_needs_no_search() -> None:
    trials: list[float] = []

    def offer(rate: float) -> Trial:
        trials.append(rate)
        return forwarder(2e6)(rate)

    assert largest_rate(offer) == FLOOD
    assert trials == [0.0]


def test_what_carries_nothing_has_rate_nothing() -> None:
    assert largest_rate(lambda rate: Trial(1000, 0, 1.0)) == 0.0


def test_one_hiccup_does_not_count() -> None:
    hiccups = iter([True])
    steady = forwarder(100_000.0)

    def offer(rate: float) -> Trial:
        trial = steady(rate)
        if trial.whole and next(hiccups, False):
            return Trial(trial.sent, round(trial.received * 0.98), 1.0)
        return trial

    assert largest_rate(offer) >= 100_000 / (1 + RESOLUTION)


def test_a_thousandth_may_be_lost() -> None:
    assert Trial(10_000, round(10_000 * (1 - LOSS)), 1.0).whole
    assert not Trial(10_000, 9_989, 1.0).whole
    assert not Trial(0, 0, 1.0).whole


def test_spread_is_a_share_of_the_largest() -> None:
    assert spread([80.0, 100.0, 90.0]) == pytest.approx(0.2)
    assert spread([]) == 0.0
