"""Stage balance: the two selectors of a service, written in one request that packets see whole.

One-shot groups only: on BMv2 a MODIFY of a manual group is a series of single changes, and an empty group on the way
sends packets to port 0. A one-shot MODIFY builds the new group, switches over, and deletes the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finsy import P4IndirectAction, P4TableAction, P4TableEntry, P4TableMatch
from finsy.proto import p4r

from ..balance import largest_remainder, weight_sum
from ..names import Action, Table
from .errors import SwitchError
from .plan import Service
from .state import State


def choose_entry(service_id: int, weights: Mapping[int, int]) -> P4TableEntry:
    """The group whose weights R decides."""
    return _entry(Table.CHOOSE, Action.CHOOSE_SERVER, service_id, weights)


def capacities(service: Service) -> dict[int, int]:
    """Weights of the second choice: by configured capacity, whatever is measured or drained."""
    shares = {server.id: server.capacity for server in service.servers}
    return largest_remainder(shares, weight_sum(len(shares)), present=shares)


def choose(state: State) -> Iterator[P4TableEntry]:
    """One group a service."""
    for service in state.plan.services:
        yield choose_entry(service.id, state.weights[service.id])


def choose_stable(state: State) -> Iterator[P4TableEntry]:
    """One group a service; only a change of the configured pool changes it."""
    for service in state.plan.services:
        yield _entry(
            Table.CHOOSE_STABLE, Action.CHOOSE_STABLE_SERVER, service.id, capacities(service)
        )


def _entry(table: str, action: str, service_id: int, weights: Mapping[int, int]) -> P4TableEntry:
    if not weights or min(weights.values()) < 1:
        raise SwitchError(f"service {service_id}: a group needs members with weights of at least 1: {weights}")
    members = [(weight, P4TableAction(action, id=server)) for server, weight in sorted(weights.items())]
    return P4TableEntry(
        table, match=P4TableMatch(service=service_id), action=P4IndirectAction(members)
    )


def weights_of(entry: p4r.TableEntry) -> dict[int, int]:
    """The weights of a group as read back; repeated members add up."""
    weights: dict[int, int] = {}
    for member in entry.action.action_profile_action_set.action_profile_actions:
        server = int.from_bytes(member.action.params[0].value, "big")
        weights[server] = weights.get(server, 0) + member.weight
    return weights
