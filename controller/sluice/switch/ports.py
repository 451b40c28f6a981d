"""Stage ports: for every configured port, the router's MAC address, and whether servers or watched hosts are behind the
port."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from .state import State


def entries(state: State) -> Iterator[P4TableEntry]:
    """Yield one entry for each configured port."""
    for interface in state.plan.config.interfaces:
        yield P4TableEntry(
            Table.PORTS,
            match=P4TableMatch(port=interface.port),
            action=P4TableAction(Action.SET_PORT, mac=interface.mac, inside=int(state.plan.is_inside(interface))),
        )
