"""Stage classify: which endpoints are services, which ones are servers' own, and to which service each server's packets
belong."""

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
    """Yield an entry for every service's endpoint, and one that denies access to each server's own endpoint, unless a
    service has the same endpoint.

    If the switch compares several servers for a service's new connections (second look), it draws these servers in a
    Weyl sequence (on Tofino by hashes). Only agents may send packets to the groups of a content service.
    """
    for service in state.plan.services:
        yield P4TableEntry(
            Table.SERVICES,
            match=_match(service.endpoint),
            action=_addressed(state, service),
            metadata=state.rules.metadata() if service.is_content else b"",
        )
    of_services = {service.endpoint for service in state.plan.services}
    own = (*(s.endpoint for s in state.plan.servers), *(r.endpoint for r in state.plan.retired))
    for endpoint in (candidate for candidate in own if candidate not in of_services):
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
    if service.group_of is None:
        return P4TableAction(Action.TO_SERVICE, service=service.id, shares=shares)
    address, _, port = service.group_of.endpoint
    return P4TableAction(Action.TO_GROUP, service=service.id, shares=shares, address=address, port=port)


def origins(state: State) -> Iterator[P4TableEntry]:
    """Yield the static reverse lookup: from a server's endpoint to that of its service or, for a server in a group, to
    that of the content service to which the group belongs."""
    endpoints = {service.id: service.endpoint for service in state.plan.services}
    configured = {server.id: server for service in state.plan.services for server in service.installed}
    for server in (*configured.values(), *state.plan.retired):
        address, _, port = endpoints[server.service_id]
        action = Action.FROM_CONTENT if server.in_group else Action.FROM_SERVER
        yield P4TableEntry(
            Table.ORIGINS,
            match=_match(server.endpoint),
            action=P4TableAction(action, server=server.id, service=server.service_id, address=address, port=port),
        )
