"""Stage translate: each server's address and port, and whether new connections may go to the server."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from .state import State

DRAINING = b"drain"
"""The entry's metadata that marks a drained server; the switch stores metadata without interpreting it."""


def entries(state: State) -> Iterator[P4TableEntry]:
    """Yield an entry for each server, configured or retired, except absent agents: another agent receives their
    packets.

    An entry's ``draining`` is set for servers that drain, are ejected or retired, and for full servers of groups. Such
    a server receives new connections at most by a draw of the service's group. The switch then ignores an older pin
    (entry of the connection table) with the client's address and port, and the server that it remembers for the client.
    """
    numbered = [
        *((server.id, server.endpoint, server.drain) for server in state.plan.servers),
        *((retired.id, retired.endpoint, True) for retired in state.plan.retired),
    ]
    closed = state.ejected | state.draining | state.full
    for server, (address, _, port), draining in numbered:
        if server in state.absent:
            continue
        is_closed = draining or server in closed
        yield P4TableEntry(
            Table.SERVERS,
            match=P4TableMatch(server=server),
            action=P4TableAction(Action.TO_SERVER, address=address, port=port, draining=int(is_closed)),
            metadata=DRAINING if server in state.draining else b"",
        )
