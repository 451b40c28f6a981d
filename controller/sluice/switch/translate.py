"""Stage translate: each server's address and port, and whether it takes new connections."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from .state import State

DRAINING = b"drain"
"""In an entry's metadata, which the switch keeps and never looks at."""


def entries(state: State) -> Iterator[P4TableEntry]:
    """Configured servers, and those retired. Of the ejected, the drained and the retired, packets of new connections
    whose ports still have a pin go elsewhere; of a group's full ones, those of remembered clients. What an absent agent
    had goes to another one."""
    numbered = [
        *((server.id, server.endpoint, server.drain) for server in state.plan.servers),
        *((retired.id, retired.endpoint, True) for retired in state.plan.retired),
    ]
    unwilling = state.ejected | state.draining | state.full
    for server, (address, _, port), draining in numbered:
        if server in state.absent:
            continue
        taken = draining or server in unwilling
        yield P4TableEntry(
            Table.SERVERS,
            match=P4TableMatch(server=server),
            action=P4TableAction(Action.TO_SERVER, address=address, port=port, draining=int(taken)),
            metadata=DRAINING if server in state.draining else b"",
        )
