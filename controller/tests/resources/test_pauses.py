"""Tests of learning the idle time of connections from the pauses within responses."""

from __future__ import annotations

import pytest
from sluice.resources.pauses import DEFAULT_AGE_S, ENOUGH, LEAST_AGE_S, LENGTHS, PauseAge

TICK_S = 1 / 16
HOUR_S = 3600.0


def counts(quick: int = 0, **longer: int) -> list[int]:
    """Return counts of responses: `quick` responses without a pause, and `of_3=n` responses in length class 3."""
    cells = [quick, *[0] * (LENGTHS - 1)]
    for name, many in longer.items():
        cells[int(name.removeprefix("of_"))] = many
    return cells


def learned(*readings: list[int], apart_s: float = 1.0) -> PauseAge:
    age = PauseAge(TICK_S)
    for number, cells in enumerate(readings):
        age.observe(number * apart_s, {1: cells})
    return age


def test_before_enough_was_seen_the_default_holds() -> None:
    assert learned().age_s == learned(counts(ENOUGH - 1)).age_s == DEFAULT_AGE_S
    assert DEFAULT_AGE_S >= 2 * 5.0, "a page may pause for 5 s"


def test_quick_responses_make_it_shorter_down_to_a_floor() -> None:
    assert learned(counts(ENOUGH)).age_s == LEAST_AGE_S


def test_the_longest_pause_counts_twice_and_whole() -> None:
    """The idle time is twice the longest pause, and a pause counts as the upper end of its length class.

    Length class 7 contains pauses of 64 to 127 ticks, so a pause of 80 ticks (5 s) counts as 128 ticks (8 s), and the
    idle time is 16 s.
    """
    assert learned(counts(10 * ENOUGH, of_7=1)).age_s == 2 * 128 * TICK_S


def test_a_single_long_pause_makes_it_longer_at_once() -> None:
    assert learned(counts(3, of_15=1)).age_s == 2 * (1 << 15) * TICK_S


def test_a_pause_is_forgotten_after_hours_and_what_was_seen_with_it() -> None:
    seen = counts(1000 * ENOUGH, of_9=1)
    assert learned(*[seen] * 4, apart_s=HOUR_S).age_s == 2 * 512 * TICK_S
    assert learned(*[seen] * 6, apart_s=HOUR_S).age_s == LEAST_AGE_S
    assert learned(*[counts(ENOUGH)] * 2, apart_s=HOUR_S).age_s == DEFAULT_AGE_S


def test_counts_wrap_begin_anew_and_are_of_several_servers() -> None:
    age = PauseAge(TICK_S)
    assert age.observe(0.0, {1: counts((1 << 32) - 5)}) == {1: (1 << 32) - 5}
    age = PauseAge(TICK_S)
    age.observe(0.0, {1: counts(10, of_1=(1 << 32) - 2)})
    assert age.observe(0.0, {1: counts(30, of_1=1), 2: counts(7)}) == {1: 23, 2: 7}
    assert age.observe(0.0, {1: counts(4), 2: counts(7)}) == {1: 4, 2: 0}


@pytest.mark.parametrize("length", range(1, LENGTHS))
def test_no_pause_that_was_seen_is_cut(length: int) -> None:
    longest_s = (1 << length) * TICK_S
    assert learned(counts(ENOUGH, **{f"of_{length}": 1})).age_s >= 2 * longest_s
