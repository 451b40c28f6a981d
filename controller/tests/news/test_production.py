"""Tests of production mode: a baseline without crowds, the search for the capacity, and the end of a limit."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from sluice.news import NewsOptions, NewsProductionOptions, Requests
from sluice.news.baseline_detector import HEALTH_WINDOWS, BaselineDetector
from sluice.news.production import Health, ProductionRegulator
from sluice.news.search import CapacitySearch

EXTRA = NewsProductionOptions(window_s=2, back_off=0.1, back_off_max=0.5, probe_min=0.02, probe_max=0.1)
OPTIONS = NewsOptions(limit_min=2, limit_max=1000, production=EXTRA)
HEALTHY = Health(1.0, healthy=True, degraded=False, busier=True)
DEGRADED = Health(0.3, healthy=False, degraded=True, busier=True)
BETWEEN = Health(0.85, healthy=False, degraded=False, busier=True)
BINDING, SLACK = Requests(100, 50, 50), Requests(50, 50, 0)


def warm(ar: float = 100, requests: float = 40, options: NewsOptions = OPTIONS) -> BaselineDetector:
    detector = BaselineDetector(options)
    for _ in range(200):
        detector.observe(ar, requests, limiting=False, sick=False)
    return detector


def regulator(rate: float = 100, usual: float = 0) -> ProductionRegulator:
    result = ProductionRegulator(OPTIONS)
    result.start(rate, None, usual)
    return result


def after_rest(target: ProductionRegulator, health: Health, requests: Requests) -> float | None:
    """Observe as many intervals as the regulator waits between two changes; return the limit."""
    for _ in range(HEALTH_WINDOWS * EXTRA.intervals):
        target.observe(health, requests, 1.0)
    return target.rate


def test_alarm_needs_both_and_resets_on_recovery() -> None:
    detector = warm()
    assert not detector.observe(40, 40, limiting=False, sick=True).alarm
    assert not detector.observe(100, 200, limiting=True, sick=False).alarm
    assert detector.observe(40, 200, limiting=False, sick=False).alarm
    assert detector.observe(80, 200, limiting=False, sick=False).alarm
    assert not detector.observe(95, 200, limiting=False, sick=False).alarm


def test_alarm_resets_when_requests_are_no_longer_up() -> None:
    detector = warm()
    assert detector.observe(40, 200, limiting=False, sick=False).alarm
    assert not detector.observe(40, 42, limiting=True, sick=False).alarm
    assert detector.observe(40, 200, limiting=True, sick=False).alarm
    assert not detector.observe(None, 0, limiting=True, sick=False).alarm


def test_baseline_is_not_learned_while_limiting_congested_or_sick() -> None:
    detector = warm()
    for ar, requests, limiting, sick in [(50, 40, True, False), (50, 40, False, True), (50, 200, False, False)]:
        for _ in range(300):
            detector.observe(ar, requests, limiting=limiting, sick=sick)
        detection = detector.observe(ar, requests, limiting=limiting, sick=sick)
        assert not detector.learned
        assert detection.ar_average == approx(100)
        assert detection.request_average == approx(40)


def test_slower_clients_without_more_requests_are_learned() -> None:
    detector = warm()
    for _ in range(600):
        assert not detector.observe(30, 40, limiting=False, sick=False).alarm
    assert detector.observe(30, 40, limiting=False, sick=False).ar_average == approx(30, rel=0.01)


def test_noise_widens_what_counts_as_a_change() -> None:
    steady, noisy = warm(), warm()
    for i in range(400):
        noisy.observe(100 + 8 * (-1) ** i, 40, limiting=False, sick=False)
    assert steady.observe(70, 200, limiting=False, sick=False).slower
    assert not noisy.observe(70, 200, limiting=False, sick=False).slower


def test_slight_degradation_that_lasts_is_distinguished_from_noise() -> None:
    """If AR (the rate of the fastest responses) scatters by 17 %, one window at half of it raises an alarm.

    At three quarters of AR, four windows raise an alarm.
    """

    def noisy() -> BaselineDetector:
        detector = warm()
        for i in range(400):
            detector.observe(100 + 17 * (-1) ** i, 40, limiting=False, sick=False)
        return detector

    assert not noisy().observe(55, 200, limiting=False, sick=False).alarm
    assert noisy().observe(45, 200, limiting=False, sick=False).alarm

    def until_alarm(ar: float) -> float:
        """Return the number of windows until the alarm; infinity without an alarm."""
        detector = noisy()
        for reading in range(1, 100):
            if detector.observe(ar, 200, limiting=False, sick=False).alarm:
                return reading / EXTRA.intervals
        return float("inf")

    assert 1 < until_alarm(60) <= 2
    assert 2 < until_alarm(70) <= 4
    assert until_alarm(80) == float("inf")


def test_alarm_that_was_reset_does_not_return_for_what_was() -> None:
    detector = warm()
    for _ in range(20):
        detector.observe(40, 200, limiting=False, sick=False)
    assert detector.alarm
    for _ in range(20):
        assert not detector.observe(95, 200, limiting=True, sick=False).alarm


def test_full_link_is_neither_degraded_nor_an_invitation() -> None:
    def after(*readings: float) -> tuple[bool, bool]:
        detector = warm()
        for i in range(400):
            detector.observe(100 + 17 * (-1) ** i, 40, limiting=False, sick=False)
        for reading in readings:
            for _ in range(EXTRA.intervals):
                detector.observe(reading, 200, limiting=True, sick=False)
        return detector.healthy, detector.degraded

    assert after(90, 90) == (True, False)
    assert after(80, 80) == (False, False)
    assert after(76, 76) == (False, True)
    assert after(70, 105) == (True, False), "two windows count, one is noise"


def test_nothing_is_said_before_it_is_warm() -> None:
    detector = BaselineDetector(OPTIONS)
    for _ in range(2 * EXTRA.intervals - 1):
        detector.observe(100, 40, limiting=False, sick=False)
    assert not detector.observe(1, 400, limiting=False, sick=False).alarm


def test_crowd_that_builds_up_is_not_learned_as_it_comes() -> None:
    detector = BaselineDetector(NewsOptions())
    for i in range(300):
        detector.observe(100 + 12 * (-1) ** i, 200 + 25 * (-1) ** (i // 2), limiting=False, sick=False)
    alarm = None
    for second in range(200):
        offered = 200 + min(second, 150) * 6
        ar = 100 * min(1.0, (400 / offered) ** 2)
        if alarm is None and detector.observe(ar, offered, limiting=False, sick=False).alarm:
            alarm = offered
    assert alarm is not None
    assert alarm <= 700


def test_nothing_is_learned_under_a_limit_that_was_there_from_the_beginning() -> None:
    detector = BaselineDetector(OPTIONS)
    for _ in range(500):
        detection = detector.observe(100, 200, limiting=True, sick=False)
        assert not detector.learned
        assert (detection.ar_average, detection.request_average) == (None, None)
    assert not detector.warm
    for _ in range(200):
        detector.observe(120, 40, limiting=False, sick=False)
    detection = detector.observe(120, 40, limiting=False, sick=False)
    assert (detection.ar_average, detection.request_average) == (approx(120), approx(40))


def test_until_there_is_a_baseline_ar_is_held_against_what_it_was_under_the_limit() -> None:
    def under(*readings: float) -> BaselineDetector:
        """Return a detector that observed each reading for as long as a baseline takes (`baseline_s`)."""
        detector = BaselineDetector(OPTIONS)
        for reading in readings:
            for _ in range(round(EXTRA.baseline_s)):
                detector.observe(reading, 200, limiting=True, sick=False)
        return detector

    young = BaselineDetector(OPTIONS)
    for _ in range(round(EXTRA.baseline_s) - 1):
        young.observe(100, 200, limiting=True, sick=False)
        assert not (young.healthy or young.degraded)
    assert under(100).healthy
    assert under(100, 50).degraded
    drained = under(20, 100, 100)
    assert drained.healthy
    assert drained.reference == approx(100)
    drained.observe(100, 40, limiting=False, sick=False)
    drained.observe(60, 200, limiting=True, sick=False)
    assert drained.reference == approx(60), "with the limit it was forgotten"


def test_idle_network_teaches_nothing() -> None:
    detector = BaselineDetector(OPTIONS)
    for _ in range(200):
        assert not detector.observe(1000, 1, limiting=False, sick=False, evident=False).alarm
    assert not detector.warm
    for _ in range(200):
        assert not detector.observe(100, 40, limiting=False, sick=False).alarm


def test_search_backs_off_below_the_last_healthy_limit_and_returns_halfway() -> None:
    search = CapacitySearch(100.0)
    search.healthy(EXTRA)
    assert search.limit == approx(102)
    search.healthy(EXTRA)
    assert search.limit == approx(102 * 1.04)
    search.degraded(0.9, EXTRA)
    assert search.limit == approx(102 * 0.9)
    assert search.bad == approx(106.08)
    search.healthy(EXTRA)
    assert search.limit == approx((91.8 + 106.08) / 2)


def test_search_without_a_healthy_limit_falls_in_proportion_within_its_bounds() -> None:
    for share, factor in [(0.01, 0.5), (0.7, 0.7), (0.95, 0.9)]:
        search = CapacitySearch(100.0)
        search.degraded(share, EXTRA)
        assert search.limit == approx(100 * factor)


def test_search_waits_for_responses_that_recover() -> None:
    search = CapacitySearch(100.0)
    search.degraded(0.2, EXTRA)
    assert search.limit == approx(50)
    search.degraded(0.25, EXTRA)  # over 10 % better than 0.2: the queue drains, so the limit stays
    assert search.limit == approx(50)
    search.degraded(0.26, EXTRA)  # only 4 % better: the queue no longer drains
    assert search.limit == approx(25)


def test_search_goes_down_by_the_fixed_part_once_a_healthy_limit_was_known() -> None:
    search = CapacitySearch(100.0)
    search.healthy(EXTRA)
    for expected in (90, 81, 72.9):
        search.degraded(0.3, EXTRA)
        assert search.limit == approx(expected)


def test_search_finds_a_capacity_and_stays_just_below_it() -> None:
    """From any start, the search finds the capacity of a link that is healthy up to 80 requests/s, degraded above."""
    for start in (10.0, 79.0, 400.0):
        search, seen = CapacitySearch(start), list[float]()
        for _ in range(200):
            seen.append(search.limit)
            search.healthy(EXTRA) if search.limit <= 80 else search.degraded(0.6, EXTRA)
        late = seen[60:]
        assert max(late) < 80 * 1.1
        assert min(late) > 80 * 0.8
        assert sum(late) / len(late) > 80 * 0.9


def test_limit_starts_at_the_admitted_rate_backed_off_by_how_far_ar_is_down() -> None:
    target = ProductionRegulator(OPTIONS)
    target.start(100, 0.6, usual=20)
    assert target.rate == approx(60)
    target.start(100, 0.01, usual=20)
    assert target.rate == approx(50)


def test_floor_is_a_part_of_the_usual_rate() -> None:
    target = regulator(100, usual=120)
    for _ in range(20):
        after_rest(target, DEGRADED, BINDING)
    assert target.rate == approx(60)


def test_rests_until_the_window_is_fresh() -> None:
    target = regulator()
    for _ in range(HEALTH_WINDOWS * EXTRA.intervals - 1):
        target.observe(DEGRADED, BINDING, 1.0)
        assert target.rate == 100
    target.observe(DEGRADED, BINDING, 1.0)
    assert target.rate == approx(50)


def test_probes_only_while_it_binds_and_holds_in_between() -> None:
    assert after_rest(regulator(), HEALTHY, BINDING) == approx(102)
    assert after_rest(regulator(), HEALTHY, SLACK) == 100
    assert after_rest(regulator(), BETWEEN, BINDING) == 100


def test_a_limit_above_what_comes_is_brought_down_to_it_before_it_can_help() -> None:
    assert after_rest(regulator(500), DEGRADED, SLACK) == approx(25)


def test_lifted_once_it_is_not_needed_for_some_intervals_in_a_row() -> None:
    target = regulator()
    for _ in range(EXTRA.lift_intervals - 1):
        target.observe(HEALTHY, SLACK, 1.0)
    target.observe(BETWEEN, BINDING, 1.0)
    for _ in range(EXTRA.lift_intervals - 1):
        target.observe(HEALTHY, SLACK, 1.0)
        assert target.rate is not None
    target.observe(HEALTHY, SLACK, 1.0)
    assert target.rate is None


def test_lifted_when_requests_are_back_to_usual_although_responses_stay_slow() -> None:
    target = regulator()
    for _ in range(EXTRA.lift_intervals):
        target.observe(replace(DEGRADED, busier=False), BINDING, 1.0)
    assert target.rate is None


@pytest.mark.parametrize(("usual", "floor"), [(100, 50), (40, 20), (0, OPTIONS.limit_min)])
def test_a_limit_that_was_found_has_a_floor_too(usual: float, floor: float) -> None:
    target = ProductionRegulator(OPTIONS)
    target.adopt(100, usual)
    for _ in range(60):
        after_rest(target, DEGRADED, BINDING)
    assert target.rate == approx(floor)


HEALTHS = st.builds(
    Health, st.none() | st.floats(0, 1e6), healthy=st.booleans(), degraded=st.booleans(), busier=st.booleans()
)
COUNTS = st.integers(0, 10**6)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.lists(st.tuples(HEALTHS, COUNTS, COUNTS), max_size=80))
def test_the_limit_never_leaves_its_bounds(rate: float, usual: float, steps: list[tuple[Health, int, int]]) -> None:
    target = regulator(rate, usual)
    for health, admitted, refused in steps:
        target.observe(health, Requests(admitted + refused, admitted, refused), 1.0)
        if target.rate is not None:
            assert OPTIONS.limit_min <= target.rate <= OPTIONS.limit_max
