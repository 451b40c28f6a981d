"""Stage local: the addresses that the switch answers for itself (ARP, echo)."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.addresses import order
from sluice.names import Action, Table

from .state import State


def entries(state: State) -> Iterator[P4TableEntry]:
    """Interface addresses and services' addresses, each once."""
    for address in sorted(state.plan.own_addresses, key=order):
        yield P4TableEntry(Table.OWNED, match=P4TableMatch(address=address), action=P4TableAction(Action.IS_OWNED))
