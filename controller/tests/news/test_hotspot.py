"""Tests of the rules of the hot-spot table, one test for each rule."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.addresses import IPV4_BITS, number, packed
from sluice.news.hotspot import HotSpotTable

THREE, FIVE = packed(3, IPV4_BITS), packed(5, IPV4_BITS)


def slots(table: HotSpotTable) -> dict[int, tuple[int, int]]:
    return {slot: (number(entry.destination), entry.hits) for slot, entry in table.entries()}


def add(table: HotSpotTable, time_s: float, numbers: Sequence[int]) -> None:
    """Add samples of packets to the table; `numbers` are their destination addresses as integers."""
    table.add(time_s, [packed(number, IPV4_BITS) for number in numbers])


def test_slot_is_the_address_modulo_the_size() -> None:
    table = HotSpotTable(4)
    add(table, 0, [6, 6, 1])
    assert slots(table) == {2: (6, 2), 1: (1, 1)}


def test_conflict_takes_the_next_free_entry_round_the_table() -> None:
    table = HotSpotTable(4)
    add(table, 0, [3, 7, 11, 7])
    assert slots(table) == {3: (3, 1), 0: (7, 2), 1: (11, 1)}


def test_a_displaced_address_is_counted_in_one_place_even_past_a_hole() -> None:
    table = HotSpotTable(4)
    add(table, 0, [3])
    add(table, 10, [7])
    table.expire(10, 5)  # evicts address 3 from slot 3; address 7, whose hash is 3, stays in slot 0, the next after 3
    add(table, 11, [7])
    assert slots(table) == {0: (7, 2)}


def test_full_table_replaces_the_smallest_and_of_those_the_longest_idle() -> None:
    table = HotSpotTable(3)
    add(table, 0, [0, 0, 1])
    add(table, 1, [2])
    add(table, 2, [5])  # addresses 1 and 2 have one hit each; address 1 has been idle for longer and is evicted
    assert slots(table) == {0: (0, 2), 1: (5, 1), 2: (2, 1)}


def test_inactive_entries_time_out() -> None:
    table = HotSpotTable(8)
    add(table, 0, [1, 2])
    add(table, 60, [2])
    table.expire(65, 64)
    assert slots(table) == {2: (2, 2)}
    table.expire(124, 64)  # an entry whose age equals the timeout has not expired
    assert len(table) == 1


def test_hottest_is_the_highest_count_and_ties_do_not_flap() -> None:
    table = HotSpotTable(8)
    assert table.hottest() is None
    add(table, 0, [5, 3, 3, 5])
    assert table.hottest() == THREE
    assert table.hottest(incumbent=FIVE) == FIVE
    assert table.hottest(eligible=lambda d: d != THREE) == FIVE
    add(table, 0, [3])
    assert table.hottest(incumbent=FIVE) == THREE


def test_a_table_needs_an_entry() -> None:
    with pytest.raises(ValueError, match="at least one"):
        HotSpotTable(0)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=300), st.integers(1, 64))
def test_never_more_than_n_entries_and_each_address_once(samples: list[int], size: int) -> None:
    table = HotSpotTable(size)
    for time, sample in enumerate(samples):
        add(table, time, [sample])
        assert len(table) <= size
    destinations = [entry.destination for _, entry in table.entries()]
    assert len(destinations) == len(set(destinations))


@given(st.lists(st.integers(0, 40), max_size=300))
def test_with_room_for_all_it_counts_exactly(samples: list[int]) -> None:
    table = HotSpotTable(41)
    add(table, 0, samples)
    assert {number(entry.destination): entry.hits for _, entry in table.entries()} == Counter(samples)


@given(st.lists(st.integers(0, 1000), max_size=200))
def test_an_address_with_most_packets_of_all_is_found_in_a_small_table(noise: list[int]) -> None:
    hot = 5000
    samples = [packet for other in noise for packet in (hot, other)] + [hot]
    table = HotSpotTable(16)
    for time, sample in enumerate(samples):
        add(table, time, [sample])
    assert table.hottest() == packed(hot, IPV4_BITS)
