"""The hot-spot table, rule by rule."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.news.hotspot import HotSpotTable


def slots(table: HotSpotTable) -> dict[int, tuple[int, int]]:
    return {slot: (entry.destination, entry.hits) for slot, entry in table.entries()}


def test_slot_is_the_address_modulo_the_size() -> None:
    table = HotSpotTable(4)
    table.add(0, [6, 6, 1])
    assert slots(table) == {2: (6, 2), 1: (1, 1)}


def test_conflict_takes_the_next_free_entry_round_the_table() -> None:
    table = HotSpotTable(4)
    table.add(0, [3, 7, 11, 7])
    assert slots(table) == {3: (3, 1), 0: (7, 2), 1: (11, 1)}


def test_a_displaced_address_is_counted_in_one_place_even_past_a_hole() -> None:
    table = HotSpotTable(4)
    table.add(0, [3])
    table.add(10, [7])
    table.expire(10, 5)  # 3 goes, 7 sits behind the hole
    table.add(11, [7])
    assert slots(table) == {0: (7, 2)}


def test_full_table_replaces_the_smallest_and_of_those_the_longest_idle() -> None:
    table = HotSpotTable(3)
    table.add(0, [0, 0, 1])
    table.add(1, [2])
    table.add(2, [5])  # 1 and 2 have one hit each; 1 was idle longer
    assert slots(table) == {0: (0, 2), 1: (5, 1), 2: (2, 1)}


def test_inactive_entries_time_out() -> None:
    table = HotSpotTable(8)
    table.add(0, [1, 2])
    table.add(60, [2])
    table.expire(65, 64)
    assert slots(table) == {2: (2, 2)}
    table.expire(124, 64)  # exactly the time-out is not beyond it
    assert len(table) == 1


def test_hottest_is_the_highest_count_and_ties_do_not_flap() -> None:
    table = HotSpotTable(8)
    assert table.hottest() is None
    table.add(0, [5, 3, 3, 5])
    assert table.hottest() == 3
    assert table.hottest(incumbent=5) == 5
    assert table.hottest(eligible=lambda d: d != 3) == 5
    table.add(0, [3])
    assert table.hottest(incumbent=5) == 3


def test_a_table_needs_an_entry() -> None:
    with pytest.raises(ValueError, match="at least one"):
        HotSpotTable(0)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=300), st.integers(1, 64))
def test_never_more_than_n_entries_and_each_address_once(samples: list[int], size: int) -> None:
    table = HotSpotTable(size)
    for time, sample in enumerate(samples):
        table.add(time, [sample])
        assert len(table) <= size
    destinations = [entry.destination for _, entry in table.entries()]
    assert len(destinations) == len(set(destinations))


@given(st.lists(st.integers(0, 40), max_size=300))
def test_with_room_for_all_it_counts_exactly(samples: list[int]) -> None:
    table = HotSpotTable(41)
    table.add(0, samples)
    assert {entry.destination: entry.hits for _, entry in table.entries()} == Counter(samples)


@given(st.lists(st.integers(0, 1000), max_size=200))
def test_an_address_with_most_packets_of_all_is_found_in_a_small_table(noise: list[int]) -> None:
    hot = 5000
    samples = [packet for other in noise for packet in (hot, other)] + [hot]
    table = HotSpotTable(16)
    for time, sample in enumerate(samples):
        table.add(time, [sample])
    assert table.hottest() == hot
