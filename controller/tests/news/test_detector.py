"""Tests of Chen & Heidemann's detector on sequences whose results are calculated by hand."""

from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from sluice.news.detector import PaperDetector


def detector(tolerance: float = 0.1) -> PaperDetector:
    return PaperDetector(tolerance, 0.125, 0.875)


def test_first_observation_initialises_and_says_nothing() -> None:
    first = detector().observe(100, 40)
    assert not first.alarm
    assert first.ar_average is None
    assert first.request_average is None


def test_both_conditions_are_needed() -> None:
    for ar, requests, alarm in [(89, 45, True), (89, 40, False), (100, 200, False), (89, 43.9, False), (91, 45, False)]:
        d = detector()
        d.observe(100, 40)
        assert d.observe(ar, requests).alarm is alarm, (ar, requests)


def test_compared_with_the_average_from_before_the_observation() -> None:
    d = detector()
    d.observe(100, 40)
    # If 89 entered the average before the comparison, the average would be 90.4, and 89 would exceed 0.9 * 90.4.
    second = d.observe(89, 45)
    assert second.alarm
    assert second.ar_average == 100
    assert second.request_average == 40


def test_the_operating_point_survives_the_onset() -> None:
    """After an alarm the average falls slowly: 0.875 * 100 + 0.125 * 50 = 93.75, then 0.875 * 93.75 + 0.125 * 60."""
    d = detector()
    d.observe(100, 40)
    d.observe(50, 80)
    assert d.observe(60, 80).ar_average == 93.75
    assert d.observe(60, 80).ar_average == 89.53125


def test_resets_only_above_the_average_by_the_tolerance() -> None:
    d = detector()
    d.observe(100, 40)
    d.observe(50, 80)  # the average becomes 93.75, so the alarm resets above 103.125
    assert d.observe(103, 60).alarm  # the average becomes 94.90625, so the alarm resets above 104.396875
    assert d.observe(104, 20).alarm
    # The average was 0.875 * 94.90625 + 0.125 * 104 = 96.04297: the alarm resets above 105.65, and 106 is the average.
    last = d.observe(106, 60)
    assert not last.alarm
    assert last.recovered
    assert d.observe(106, 60).ar_average == approx(0.125 * 96.04296875 + 0.875 * 106)


def test_alarm_stays_while_neither_condition_holds() -> None:
    d = detector()
    d.observe(100, 40)
    d.observe(50, 80)
    for _ in range(3):
        assert d.observe(92, 10).alarm


def test_no_evidence_changes_nothing() -> None:
    d = detector()
    d.observe(100, 40)
    d.observe(50, 80)
    assert d.observe(None, 0).alarm
    again = d.observe(60, 80)
    assert again.ar_average == 93.75
    assert again.request_average == 45


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e6)), max_size=60), st.floats(0.01, 0.9))
def test_alarm_changes_only_by_the_conditions(observations: list[tuple[float, float]], tolerance: float) -> None:
    d = detector(tolerance)
    for ar, requests in observations:
        before = d.alarm
        now = d.observe(ar, requests)
        if now.alarm and not before:
            assert now.slower
            assert now.busier
        if before and not now.alarm:
            assert now.recovered
        if now.ar_average is not None:
            assert now.slower == (ar < now.ar_average * (1 - tolerance))
