"""Stage local: the addresses for which the switch itself answers ARP and ICMP echo requests."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.addresses import order
from sluice.names import Action, Table

from .state import State


def entries(state: State) -> Iterator[P4TableEntry]:
    """Yield an entry for each of the switch's own addresses (`Plan.own_addresses`)."""
    for address in sorted(state.plan.own_addresses, key=order):
        yield P4TableEntry(Table.OWNED, match=P4TableMatch(address=address), action=P4TableAction(Action.IS_OWNED))
