"""Tests of the numbers that the controller assigns to destinations."""

from sluice.addresses import from_text
from sluice.features.crowd.destinations import SHARED, DestinationTable

A, B, C, D = (from_text(f"10.0.0.{i}") for i in range(1, 5))


def test_numbers_stay_and_free_ones_are_used_again() -> None:
    table = DestinationTable(4)
    assert table.want([A, B], shared=False) == []
    assert table.numbers == {A: 1, B: 2}
    table.want([B, C], shared=False)
    assert table.numbers == {B: 2, C: 1}


def test_what_has_no_room_is_named() -> None:
    table = DestinationTable(4)
    assert table.want([A, B, C, D], shared=False) == [D]
    assert table.numbers == {A: 1, B: 2, C: 3}


def test_adopted_numbers_are_kept() -> None:
    table = DestinationTable(8)
    table.adopt({B: 5})
    table.want([A, B], shared=False)
    assert table.numbers == {A: 1, B: 5}


def test_shared_number_and_apart_again() -> None:
    table = DestinationTable(8)
    table.want([A, B], shared=True)
    assert table.numbers == {A: SHARED, B: SHARED}
    table.want([A, B], shared=False)
    assert table.numbers == {A: 1, B: 2}


def test_who_is_apart_shares_no_number() -> None:
    table = DestinationTable(8)
    table.want([A, B, C], shared=False)
    table.want([A, B, C], shared=True, separate={A, C})
    assert table.numbers == {B: SHARED, C: 3, A: 2}
    table.want([A, B, C], shared=True)
    assert set(table.numbers.values()) == {SHARED}
    assert DestinationTable(3).want([A, B, C], shared=True, separate={B, C}) == [C]
