"""Tests of production mode: each crowd on a site of any size raises an alarm, or is reported as unprotected."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from news.fluid import TARGET, Bottleneck
from sluice.news import Decision, News, NewsOptions, Observation, Requests
from sluice.news.baseline_detector import BaselineDetector
from sluice.news.detector import Unprotected

pytestmark = pytest.mark.long
Load = Callable[[float], float]


def decisions(offered: Load, speed: Load, end_s: int, seed: int = 1) -> list[Decision]:
    """Return a decision for each second of Poisson requests.

    `offered` is in requests/s; `speed` is the share of the usual rate at which responses are sent. The rates of the
    responses are log-normal.
    """
    random, news, requests = np.random.default_rng(seed), News(NewsOptions()), Requests()
    made: list[Decision] = []
    for second in range(end_s):
        number = int(random.poisson(offered(second)))
        requests += Requests(number, number)
        rates = random.lognormal(12.0, 1.0, number) * speed(second)
        keys = random.integers(1, 1 << 62, number, np.uint64)
        decision = news.observe(Observation(float(second), rates, {TARGET: requests}, flow_keys=keys))
        made += [decision] if decision else []
    return made


def alarms(made: list[Decision]) -> list[float]:
    return [decision.time_s for decision in made if decision.detection.alarm]


def ramp(base: float, peak: float, onset_s: float, ramp_s: float) -> Load:
    return lambda t: base + (peak - base) * min(1.0, max(0.0, (t - onset_s) / ramp_s))


@settings(max_examples=8, deadline=None)
@given(st.floats(-4, 3), st.floats(2, 4.6), st.floats(0, 8), st.integers(1, 9))
def test_a_crowd_of_any_ramp_on_a_site_of_any_size_raises_an_alarm_or_is_reported(
    base: float, growth: float, length: float, seed: int
) -> None:
    """A site has 0.02 to 20 requests/s; a crowd has 7 to 100 times as many, after a rise of 1 s to 50 minutes.

    The link carries twice the usual rate.
    """
    usual, times, ramp_s = float(np.exp(base)), float(np.exp(growth)), float(np.exp(length))
    onset_s = 600.0
    load = ramp(usual, usual * times, onset_s, ramp_s)
    made = decisions(load, lambda t: min(1.0, 2 * usual / load(t)), round(onset_s + ramp_s + 300), seed)
    crowd = [decision.detection for decision in made if decision.time_s >= onset_s]
    assert any(detection.alarm or detection.unprotected for detection in crowd)


def test_a_small_sites_hundredfold_crowd_raises_an_alarm_and_is_limited() -> None:
    link = Bottleneck(News(NewsOptions()), ramp(1.0, 110.0, 600.0, 5.0))
    link.run(630)
    raised = [decision.time_s for decision in link.decisions if decision.detection.alarm]
    assert raised and 600 < raised[0] < 615
    assert set(link.decisions[-1].limits) == {TARGET}


@pytest.mark.parametrize("minutes", [20, 30, 60])
def test_a_crowd_that_builds_up_within_an_hour_raises_an_alarm_before_its_peak(minutes: int) -> None:
    onset_s, ramp_s = 600.0, 60.0 * minutes
    slowing = ramp(1.0, 0.2, onset_s, ramp_s)
    made = decisions(ramp(20.0, 120.0, onset_s, ramp_s), slowing, round(onset_s + ramp_s))
    raised = alarms(made)
    assert raised and raised[0] > onset_s
    first = next(decision for decision in made if decision.detection.alarm)
    assert first.detection.request_average is not None and first.detection.request_average < 80


@pytest.mark.parametrize("minutes", [20, 30, 60])
def test_so_does_one_whose_readings_have_no_noise(minutes: int) -> None:
    detector, onset_s, ramp_s = BaselineDetector(NewsOptions()), 600.0, 60.0 * minutes
    load, speed = ramp(20.0, 120.0, onset_s, ramp_s), ramp(1e5, 2e4, onset_s, ramp_s)
    for second in range(round(onset_s + ramp_s)):
        detection = detector.observe(speed(second), load(second), limiting=False, sick=False, seconds=4.0)
        if detection.alarm:
            assert onset_s < second < onset_s + ramp_s / 2
            return
    pytest.fail("no alarm")


def test_a_request_a_second_and_then_a_hundred_raise_an_alarm() -> None:
    """Before the crowd, a measurement window of 4 s contains four requests, which are too few for a measurement."""
    news, requests = News(NewsOptions()), Requests()
    decision: Decision | None = None
    for second in range(610):
        number = 1 if second < 600 else 100
        requests += Requests(number, number)
        keys = np.arange(second * 1000, second * 1000 + number, dtype=np.uint64)
        rates = np.full(number, 1e5 if second < 600 else 1e4)
        decision = news.observe(Observation(float(second), rates, {TARGET: requests}, flow_keys=keys))
    assert decision is not None and decision.detection.alarm


def test_one_that_builds_up_for_hours_is_reported() -> None:
    onset_s, ramp_s = 600.0, 3 * 3600.0
    made = decisions(ramp(20.0, 120.0, onset_s, ramp_s), ramp(1.0, 0.3, onset_s, ramp_s), round(onset_s + ramp_s))
    assert not alarms(made)
    assert made[-1].detection.unprotected is Unprotected.DRIFTED
    assert "a flash crowd may raise no alarm: responses have slowed down for hours" in made[-1].sentence


def test_what_is_first_seen_of_responses_while_requests_are_up_is_reported() -> None:
    """One request in 100 s gives no baseline of responses; then 20 requests/s arrive, and end after 200 s."""
    load = ramp(0.01, 20.0, 900.0, 1.0)
    made = decisions(lambda t: load(t) if t < 1100 else 0.01, lambda _: 1.0, 1600)
    reported = {round(decision.time_s): decision.detection.unprotected for decision in made}
    assert reported[899] is Unprotected.UNKNOWN
    assert {reported[1000], reported[1090]} == {Unprotected.RISEN}
    assert reported[1590] is Unprotected.UNKNOWN, "they are to be seen anew"


@pytest.mark.parametrize("rate", [0.05, 0.3, 1.0, 3.0])
def test_a_small_site_without_a_crowd_raises_no_alarm(rate: float) -> None:
    assert not alarms(decisions(lambda _: rate, lambda _: 1.0, 3600))
