"""Tests of which idle connections are closed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.resources.idle import Closer, Idle, IdleOptions

OPTIONS = IdleOptions(limit=1000, rate=1e6, least_age_s=0.5)
MANY = [Idle(slot, idle_s=float(slot % 97)) for slot in range(900)]


def test_while_there_is_room_all_stay() -> None:
    assert Closer(OPTIONS).choose(0.0, 800, MANY) == []


def test_above_the_threshold_the_longest_idle_go_first() -> None:
    chosen = Closer(OPTIONS).choose(0.0, 801, MANY)
    assert len(chosen) == 801 - 760
    left = [candidate.idle_s for candidate in MANY if candidate not in chosen]
    assert min(candidate.idle_s for candidate in chosen) >= max(left)


def test_who_was_active_just_now_stays() -> None:
    young = [Idle(slot, idle_s=0.45) for slot in range(900)]
    assert Closer(OPTIONS).choose(0.0, 900, [*young, Idle(7, 0.5)]) == [Idle(7, 0.5)]


def test_closing_goes_on_until_below_the_threshold() -> None:
    closer = Closer(OPTIONS)
    assert closer.choose(0.0, 801, MANY[:5])
    assert closer.choose(1.0, 790, MANY[:5]), "below the threshold, above the release"
    assert closer.choose(2.0, 760, MANY[:5]) == []
    assert closer.choose(3.0, 790, MANY[:5]) == []


def test_those_on_their_way_are_not_closed_twice() -> None:
    closer = Closer(OPTIONS)
    assert len(closer.choose(0.0, 801, MANY)) == 41
    assert closer.choose(0.1, 801, MANY, pending=41) == []


def test_the_rate_holds() -> None:
    closer = Closer(IdleOptions(limit=1000, rate=40, burst_s=0.25))
    assert [len(closer.choose(now * 0.25, 1000, MANY)) for now in range(5)] == [10] * 5
    assert len(closer.choose(60.0, 1000, MANY)) == 10, "what was not used does not add up"


def test_a_slow_rate_closes_one_now_and_then() -> None:
    closer = Closer(IdleOptions(limit=10, rate=0.5, burst_s=0.25))
    assert [len(closer.choose(float(now), 10, MANY)) for now in range(6)] == [0, 0, 1, 0, 1, 0]


@given(st.lists(st.integers(0, 1200), min_size=1, max_size=30), st.floats(0.1, 1e4))
def test_never_more_than_the_rate_nor_below_the_goal(counts: list[int], rate: float) -> None:
    closer, total = Closer(IdleOptions(limit=1000, rate=rate)), 0
    for second, connections in enumerate(counts):
        chosen = closer.choose(float(second), connections, MANY)
        total += len(chosen)
        assert not chosen or connections - len(chosen) >= 760
        assert len(chosen) <= max(1.0, rate * 0.25)
    assert total <= rate * len(counts) + max(1.0, rate * 0.25)


def test_time_that_runs_back_allows_nothing() -> None:
    closer = Closer(IdleOptions(limit=1000, rate=40, burst_s=0.25))
    assert len(closer.choose(10.0, 1000, MANY)) == 10
    assert closer.choose(5.0, 1000, MANY) == []
    assert len(closer.choose(5.25, 1000, MANY)) == 10


def test_options_are_checked_where_they_are_read() -> None:
    from pydantic import TypeAdapter, ValidationError

    with pytest.raises(ValidationError):
        TypeAdapter(IdleOptions).validate_python({"limit": 0})
