"""Table resources: the servers whose TCP windows the switch manages, and the default caps of their connections."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table
from sluice.resources.sharer import Defaults

from .plan import Service
from .state import State


def entries(state: State) -> Iterator[P4TableEntry]:
    """Yield an entry for each server of a service with ``resources``. Draining servers are included, because their open
    connections stay managed.

    A server that is no longer configured has no entry, so the switch no longer manages its connections.
    """
    for service in state.plan.services:
        options = service.config.resources
        if options is None:
            continue
        for server in service.servers:
            caps = state.caps.get(server.id, Defaults())
            yield P4TableEntry(
                Table.RESOURCES,
                match=P4TableMatch(server=server.id),
                action=P4TableAction(
                    Action.MANAGE,
                    measured=int(options.send is not None),
                    sampling=options.sampling,
                    closed=int(options.idle is not None),
                    send_cap=caps.send,
                    receive_cap=caps.receive,
                ),
            )


def decision_keys(service: Service) -> dict[Table, list[tuple[int, ...]]]:
    """Return the match fields of every entry that belongs to a service."""
    return {Table.RESOURCES: [(server.id,) for server in service.servers]}
