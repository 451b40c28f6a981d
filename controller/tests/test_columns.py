"""Test that the lists of columns match the columns that the switch's readers return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import pytest
from sluice import columns
from sluice.balance import Counts
from sluice.columns import Column
from sluice.names import Counter
from sluice.news import Requests
from sluice.switch.closing import Closings

LISTS = {
    name: value for name, value in vars(columns).items() if isinstance(value, tuple) and isinstance(value[0], Column)
}


@pytest.mark.parametrize(
    ("listed", "counts"),
    [(columns.LEDGER, Counts), (columns.DESTINATION, Requests), (columns.CLOSINGS, Closings)],
    ids=["server", "destination", "closings"],
)
def test_columns_are_the_fields_of_what_is_read(listed: Sequence[Column], counts: type) -> None:
    assert [column.name for column in listed] == [field.name for field in fields(counts)]
    assert len(columns.registers(listed)) == len(listed)


@pytest.mark.parametrize("name", LISTS)
def test_a_column_has_its_name_and_its_cell_alone(name: str) -> None:
    listed = LISTS[name]
    for of in ("name", "metric", "meaning"):
        assert len({getattr(column, of) for column in listed}) == len(listed)
    cells = [column.cell for column in listed if column.cell is not None]
    assert len(set(cells)) == len(cells)


def test_every_counter_of_the_switch_is_shown() -> None:
    shown = {column.cell for listed in LISTS.values() for column in listed}
    assert set(Counter) <= shown
