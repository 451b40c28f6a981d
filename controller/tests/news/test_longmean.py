"""Tests of the long-term mean of AR (the mean rate of the fastest responses), and of when this mean requires that the
limit of requests be lowered."""

from __future__ import annotations

import pytest
from sluice.news import NewsProductionOptions
from sluice.news.longmean import LongMean

OPTIONS = NewsProductionOptions(window_s=4)


def at(mean: LongMean, ar_share: float) -> LongMean:
    """Fold in so many intervals with this AR that earlier intervals have no weight; return the mean."""
    for _ in range(400):
        mean.fold(ar_share)
    return mean


def test_until_it_is_known_it_is_against_nothing() -> None:
    mean = LongMean(OPTIONS)
    mean.fold(1.0)
    assert mean.low and mean.value is None and mean.above is None and not mean.blames(100.0)
    assert not at(mean, 1.0).low
    mean.begin_anew()
    assert mean.low and mean.value is None


@pytest.mark.parametrize(("later", "blames"), [(0.91, False), (0.95, True)])
def test_a_limit_that_is_lower_in_vain_goes_no_further_down(later: float, blames: bool) -> None:
    mean = at(LongMean(OPTIONS), 0.9)
    assert mean.above == pytest.approx(-0.06, abs=1e-3) and mean.low
    assert mean.blames(100.0) and mean.blames(90.0), "it is not certain yet"
    at(mean, later)
    assert mean.blames(84.0) is blames
    assert mean.above == pytest.approx(-0.01 if blames else 0.0, abs=1e-3), "the mean is to be what it is"
    assert mean.blames(120.0), "another beginning"


def test_a_reference_is_a_tenth_too_high_at_most() -> None:
    mean = at(LongMean(OPTIONS), 0.8)
    assert mean.blames(100.0) and not mean.blames(84.0) and not mean.blames(84.0)
    assert mean.above == pytest.approx(-0.1, abs=1e-3)
