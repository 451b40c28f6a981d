"""Stage classify: what is a service, what is a server's own endpoint, whose answers come from where."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import Action, Table

from . import balance
from .plan import Endpoint
from .state import State


def _match(endpoint: Endpoint) -> P4TableMatch:
    address, protocol, port = endpoint
    return P4TableMatch(address=int(address), protocol=protocol, port=port)


def services(state: State) -> Iterator[P4TableEntry]:
    """Every service, and a denial of every server's own endpoint, but for one that a service has since the server left.
    A service that takes a second look draws evenly."""
    for service in state.plan.services:
        yield P4TableEntry(
            Table.SERVICES,
            match=_match(service.endpoint),
            action=P4TableAction(Action.TO_SERVICE, service=service.id, shares=balance.shares(state, service)),
        )
    taken = {service.endpoint for service in state.plan.services}
    own = (*(s.endpoint for s in state.plan.servers), *(r.endpoint for r in state.plan.retired))
    for endpoint in (one for one in own if one not in taken):
        yield P4TableEntry(Table.SERVICES, match=_match(endpoint), action=P4TableAction(Action.DENY_DIRECT))


def origins(state: State) -> Iterator[P4TableEntry]:
    """The static reverse lookup: (server, port) to its service's endpoint."""
    endpoints = {service.id: service.endpoint for service in state.plan.services}
    numbered = [
        *((server.id, server.endpoint, service.id) for service in state.plan.services for server in service.servers),
        *((retired.id, retired.endpoint, retired.service_id) for retired in state.plan.retired),
    ]
    for server, endpoint, service in numbered:
        address, _, port = endpoints[service]
        yield P4TableEntry(
            Table.ORIGINS,
            match=_match(endpoint),
            action=P4TableAction(Action.FROM_SERVER, server=server, service=service, address=int(address), port=port),
        )
