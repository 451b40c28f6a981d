"""Stage translate: each server's address and port, and whether its pending connections are to choose again."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from .state import State

DRAINING = b"drain"
"""In an entry's metadata, which the switch keeps and never looks at."""


def entries(state: State) -> Iterator[P4TableEntry]:
    """Configured servers, and those retired."""
    numbered = [
        *((server.id, server.endpoint) for server in state.plan.servers),
        *((retired.id, retired.endpoint) for retired in state.plan.retired),
    ]
    for server, (address, _, port) in numbered:
        yield P4TableEntry(
            Table.SERVERS,
            match=P4TableMatch(server=server),
            action=P4TableAction(
                Action.TO_SERVER, address=int(address), port=port, ejected=int(server in state.ejected)
            ),
            metadata=DRAINING if server in state.draining else b"",
        )
