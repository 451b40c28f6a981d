"""Table resources: whose TCP resources the switch manages, and the caps of connections that have none of their own."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table
from sluice.resources.sharer import Defaults

from .plan import Service
from .state import State


def entries(state: State) -> Iterator[P4TableEntry]:
    """Servers of services with ``resources``, draining or not: connections that they have go on as before.

    A server that is not configured any more is left alone, and its connections with it.
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


def decided(service: Service) -> dict[Table, list[tuple[int, ...]]]:
    """The numbers by which entries are a service's own."""
    return {Table.RESOURCES: [(server.id,) for server in service.servers]}
