"""Tests of which tables the controller compares with the switch after a balancing decision."""

from __future__ import annotations

from sluice.features.balance.decisions import touched
from sluice.names import Table


def test_servers_and_capacities_are_compared_only_when_a_server_is_ejected_or_comes_back() -> None:
    empty, single = frozenset[int](), frozenset({3})
    assert touched(empty, empty) == touched(single, single) == {Table.CHOOSE, Table.CHOOSE_OTHER, Table.IDLE_MEMBERS}
    moved = {Table.CHOOSE, Table.CHOOSE_OTHER, Table.IDLE_MEMBERS, Table.CHOOSE_STABLE, Table.SERVERS}
    assert touched(empty, single) == touched(single, empty) == moved
