"""Tests of the search for a limit by the share of long responses.

The search ends at the load (the knee) above which the link slows responses down, although AR scatters.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from sluice.news import NewsOptions, NewsProductionOptions, Requests
from sluice.news.knee import Knee
from sluice.news.lasting import Portion
from sluice.news.production import Health, ProductionRegulator
from sluice.news.search import CapacitySearch

OPTIONS = NewsOptions(production=NewsProductionOptions(window_s=4))
BINDING = Requests(200, 100, 100)
CAPACITY = 100.0


def share(limit: float) -> float:
    """Return the share of long responses at a limit: 0.15 at any low load, and larger as the link becomes full."""
    return 0.15 + max(0.0, limit / CAPACITY - 0.85) * 0.7


def steep(limit: float) -> float:
    """Return AR (the rate of the fastest responses) at a limit, as a share of the usual AR: 1 up to the capacity."""
    return min(1.0, (CAPACITY / limit) ** 3)


def simulated(limit: float) -> float:
    """Return AR, as a share of the usual AR, on a simulated link of 4 Mbit/s: AR falls before the link is full."""
    used = limit / CAPACITY
    return min(1.03, 1.02 - 1.1 * (used - 0.85)) if used < 1 else 0.855 / used**3


def late(limit: float) -> float:
    """Return the share of long responses on the link of `simulated`: constant up to 96 % of the capacity."""
    return 0.21 + max(0.0, limit / CAPACITY - 0.96) * 4


def settle(
    seed: int,
    *,
    flows: int = 130,
    scatter: float = 0.1,
    seconds: int = 400,
    tells: bool = True,
    fast: Callable[[float], float] = steep,
    last: Callable[[float], float] = share,
) -> list[float]:
    """Return the limit of each second; AR scatters like the mean of a dozen response rates."""
    random = np.random.default_rng(seed)
    target, limits = ProductionRegulator(OPTIONS), list[float]()
    target.start(200.0, 0.5, 20.0)
    window = [1.0] * 8
    for _ in range(seconds):
        rate = target.rate
        assert rate is not None
        ar = fast(rate) * (1 + scatter * float(random.standard_normal()))
        window = [*window[1:], ar]
        mean = sum(window[::4]) / 2
        portion = Portion(int(random.binomial(flows, min(0.9, last(rate)))), flows) if tells else None
        health = Health(ar, healthy=mean >= 0.83, degraded=mean < 0.78, busier=True, lasting=portion)
        target.observe(health, BINDING, 1.0)
        limits.append(rate)
    return limits


@pytest.mark.parametrize("seed", range(8))
def test_the_limit_stays_at_the_knee(seed: int) -> None:
    settled = settle(seed)[150:]
    assert 0.85 * CAPACITY < float(np.mean(settled)) < 1.03 * CAPACITY
    assert max(settled) < 1.2 * CAPACITY


@pytest.mark.parametrize("seed", range(4))
def test_the_scatter_of_a_dozen_responses_does_not_lower_it(seed: int) -> None:
    """AR scatters by a quarter per interval; the share of long responses, counted in 130 responses, scatters little."""
    limits = settle(seed, scatter=0.25)
    assert float(np.mean(limits[200:])) > 0.8 * CAPACITY


@pytest.mark.parametrize("seed", range(8))
def test_before_responses_last_ar_over_a_long_time_holds_the_limit(seed: int) -> None:
    settled = settle(seed, scatter=0.15, fast=simulated, last=late)[100:]
    assert 0.83 * CAPACITY < float(np.mean(settled)) < 0.95 * CAPACITY
    assert float(np.mean([simulated(limit) for limit in settled])) > 0.93


@pytest.mark.parametrize("seed", range(4))
def test_a_reference_of_ar_that_is_too_high_brings_no_limit_down_for_ever(seed: int) -> None:
    """The reference of AR is a tenth too high.

    AR stays low at a 15 % lower limit, so the regulator concludes that the limit is not the cause.
    """
    settled = settle(seed, seconds=1500, fast=lambda limit: 0.9 * steep(limit), last=late)[500:]
    assert min(settled) > 0.75 * CAPACITY and max(settled) < 1.1 * CAPACITY


def limits_of(target: ProductionRegulator, seconds: int, lasting: int, ar_share: float = 0.97) -> list[float]:
    """Return the limit of each second in a continuing crowd; of 200 responses each second, `lasting` are long.

    `ar_share`: AR as a share of the usual AR.
    """
    limits = list[float]()
    for _ in range(seconds):
        portion = Portion(lasting, 200)
        target.observe(Health(ar_share, healthy=True, degraded=False, busier=True, lasting=portion), BINDING, 1.0)
        assert target.rate is not None
        limits.append(target.rate)
    return limits


def test_responses_that_last_lower_no_limit_while_ar_is_healthy() -> None:
    """A high share of long responses lowers the limit only if AR is low too, because the share's reference may be too
    low by chance."""
    target = ProductionRegulator(OPTIONS)
    target.start(100.0, None, 0.0)
    limit = limits_of(target, 60, 40)[-1]
    assert limit > 105
    assert min(limits_of(target, 30, 80)) >= limit
    assert limits_of(target, 30, 80, 0.85)[-1] < 0.95 * limit


def test_the_way_up_is_slow_where_responses_tell() -> None:
    """Where the share of long responses decides the steps, a step raises the limit by at most 5 %.

    With steps of 10 % the limit would exceed the capacity by a fifth before long responses could show that.
    """
    target = ProductionRegulator(OPTIONS)
    target.start(400.0, 0.5, 0.0)
    for _ in range(20):
        target.observe(Health(0.5, healthy=False, degraded=True, busier=True, lasting=Portion(90, 200)), BINDING, 1.0)
    steps = [after / before for before, after in pairwise(limits_of(target, 150, 40))]
    known = steps[60:]
    assert max(steps) > 1.09 and 1.04 < max(known) < 1.051


@pytest.mark.parametrize(("above", "room", "step"), [(-0.01, 0.5, 0.01), (-0.01, 0.0, -0.003), (-0.03, 0.5, -0.009)])
def test_room_raises_a_limit_unless_ar_is_clearly_below(above: float, room: float, step: float) -> None:
    """A reference of AR that is slightly too high must not keep the limit low."""
    search = CapacitySearch(100.0)
    search.trim(above, room)
    assert search.limit == pytest.approx(100 * (1 + step))


def test_where_flows_cannot_be_distinguished_ar_decides_alone() -> None:
    limits = settle(1, tells=False, scatter=0.02)
    assert max(limits[100:]) > CAPACITY, "AR allows more"


def test_where_no_response_lasts_ar_still_lowers_the_limit() -> None:
    """Responses of one packet are never seen twice, so the share of long responses contains no information."""
    target = ProductionRegulator(OPTIONS)
    target.start(100.0, None, 0.0)
    none = Portion(0, 500)
    for _ in range(60):
        target.observe(Health(1.0, healthy=True, degraded=False, busier=True, lasting=none), BINDING, 1.0)
    before = target.rate
    assert before is not None and before > 100
    for _ in range(30):
        target.observe(Health(0.5, healthy=False, degraded=True, busier=True, lasting=none), BINDING, 1.0)
    assert target.rate is not None and target.rate < before


def test_lower_limits_are_not_forgotten_in_a_long_crowd() -> None:
    """The crowd lasts an hour, in which the limit changes hundreds of times."""
    settled = settle(1, seconds=3600)[1800:]
    assert 0.85 * CAPACITY < float(np.mean(settled)) < 1.03 * CAPACITY
    assert max(settled) < 1.2 * CAPACITY


def test_what_is_seen_while_a_queue_drains_is_no_reference() -> None:
    knee = Knee()
    knee.moved(50.0, 0, drains=5)
    for _ in range(5):
        knee.add(Portion(90, 100), degraded=False)
    knee.moved(100.0, 0)
    knee.add(Portion(20, 100), degraded=False)
    assert not knee.known


def test_it_says_nothing_without_lower_limits_and_both_ways_with_them() -> None:
    knee = Knee()
    knee.moved(100.0, 0)
    for _ in range(50):
        knee.add(Portion(50, 100), degraded=False)
    assert not (knee.known or knee.strained or knee.denies or knee.room)
    knee = Knee()
    knee.moved(50.0, 0)
    for _ in range(50):
        knee.add(Portion(20, 100), degraded=False)
    knee.moved(100.0, 0)
    for _ in range(50):
        knee.add(Portion(20, 100), degraded=False)
    assert knee.known and knee.denies and not knee.strained and knee.room > 0.9
    knee.moved(110.0, 0)
    for _ in range(20):
        knee.add(Portion(30, 100), degraded=False)
    assert knee.strained and not knee.denies and knee.room == 0


def test_what_lower_limits_showed_while_ar_was_degraded_is_no_reference() -> None:
    knee = Knee()
    knee.moved(50.0, 0)
    knee.add(Portion(90, 100), degraded=True)
    knee.moved(100.0, 0)
    knee.add(Portion(20, 100), degraded=False)
    assert not knee.known
