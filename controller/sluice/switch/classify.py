"""Stage classify: what is a service, what is a server's own endpoint, whose answers come from where."""

from __future__ import annotations

from collections.abc import Iterator

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from sluice.names import UNREAD, Action, Table

from . import balance
from .plan import Endpoint, Service
from .state import State


def _match(endpoint: Endpoint) -> P4TableMatch:
    address, protocol, port = endpoint
    return P4TableMatch(address=address, protocol=protocol, port=port)


def services(state: State) -> Iterator[P4TableEntry]:
    """Every service, and a denial of every server's own endpoint, but for one that a service has since the server left.

    A service that takes a second look draws evenly. Agents alone may address a content service's groups.
    """
    for service in state.plan.services:
        yield P4TableEntry(
            Table.SERVICES,
            match=_match(service.endpoint),
            action=_addressed(state, service),
            metadata=state.rules.noted() if service.is_content else b"",
        )
    taken = {service.endpoint for service in state.plan.services}
    own = (*(s.endpoint for s in state.plan.servers), *(r.endpoint for r in state.plan.retired))
    for endpoint in (one for one in own if one not in taken):
        yield P4TableEntry(Table.SERVICES, match=_match(endpoint), action=P4TableAction(Action.DENY_DIRECT))


def _addressed(state: State, service: Service) -> P4TableAction:
    if (content := service.config.content) is not None:
        return P4TableAction(
            Action.TO_CONTENT,
            service=service.id,
            generation=UNREAD if state.unread.get(service.id) else state.rules.generation,
            remember_time=state.units.ticks(content.remember_s),
        )
    shares = balance.shares(state, service)
    if service.of is None:
        return P4TableAction(Action.TO_SERVICE, service=service.id, shares=shares)
    address, _, port = service.of.endpoint
    return P4TableAction(Action.TO_GROUP, service=service.id, shares=shares, address=address, port=port)


def origins(state: State) -> Iterator[P4TableEntry]:
    """The static reverse lookup: (server, port) to the endpoint of its service, or of its group's content service."""
    endpoints = {service.id: service.endpoint for service in state.plan.services}
    configured = {server.id: server for service in state.plan.services for server in service.present}
    for server in (*configured.values(), *state.plan.retired):
        address, _, port = endpoints[server.service_id]
        action = Action.FROM_CONTENT if server.in_group else Action.FROM_SERVER
        yield P4TableEntry(
            Table.ORIGINS,
            match=_match(server.endpoint),
            action=P4TableAction(action, server=server.id, service=server.service_id, address=address, port=port),
        )
