"""Stage balance: the selector groups of each service.

Each group is written in one request, so that every packet is forwarded by the old or the new group, never by a mixture.
All groups are one-shot groups: BMv2 executes a MODIFY of a manual group as a series of single changes, and a group that
is empty in between sends packets to port 0. A one-shot MODIFY builds the new group, switches over to it, and deletes
the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from finsy import P4IndirectAction, P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4Table
from finsy.proto import p4r

from sluice.balance import largest_remainder, weight_sum
from sluice.balance.looks import IDLE_WORD, SMALL_POOL, seen_together, sought_idle
from sluice.balance.ratios import normalised
from sluice.names import SERVERS, SERVICES, Action, Table

from .errors import SwitchError
from .plan import Service
from .state import State


class Member(P4TableAction):
    """A group member's action, whose encoding is cached: every write contains all members of a group, but a balancing
    decision changes few of them."""

    def encode_action(self, schema: P4Schema | P4Table) -> p4r.Action:
        """Return the encoded action. Groups share the returned message: callers must not change it."""
        return _encoded(schema, self.name, tuple(self.args.items()))


@lru_cache(maxsize=1 << 14)
def _encoded(schema: P4Schema | P4Table, name: str, parameters: tuple[tuple[str, int], ...]) -> p4r.Action:
    return P4TableAction(name, **dict(parameters)).encode_action(schema)


def capacities(service: Service) -> dict[int, int]:
    """Return the weights for connections without a slot. They follow the configured capacities, not measurements or
    drains."""
    shares = {server.id: server.capacity for server in service.servers}
    return largest_remainder(shares, measured=shares)


def available(state: State, service: Service) -> dict[int, int]:
    """Return the weights of a content service's agents, by configured capacity.

    The agents are those that answer and accept connections or, if none accepts any, all agents that answer. An ejected
    agent retains the small share that keeps it measured (the probe floor).
    """
    answering = [agent for agent in service.servers if agent.id not in state.absent]
    accepting = [agent for agent in answering if not agent.drain and agent.id not in state.draining | state.leaving]
    floor = service.config.balance.production.probe_floor
    shares = {
        agent.id: agent.capacity * (floor if agent.id in state.ejected else 1.0) for agent in accepting or answering
    }
    return largest_remainder(normalised(shares), measured=shares) if shares else {}


def shares(state: State, service: Service) -> int:
    """Return the number of places of which each step of the Weyl sequence selects one. A server has as many places as
    its weight, so the number is the sum of the weights of all servers; 0 if the switch draws servers by hashes.

    A group from which servers are left out may have fewer places. Both numbers are powers of two, and the switch takes
    the selected place modulo the group's number of places, so it draws all these places equally often.
    """
    return weight_sum(len(service.servers)) if service.id in state.second_look else 0


def choose(state: State) -> Iterator[P4TableEntry]:
    """Yield one group per service, with the weights that the balancer has decided. Each member contains the number of
    the group from which the second look draws the servers to compare.

    Content services have no such group: they choose agents by capacity alone, since their clients' SYNs take no slot in
    the connection table.
    """
    for service in state.plan.services:
        if service.is_content:
            continue
        weights = state.weights[service.id]
        groups = {server: number for number, (_, servers) in others(state, service).items() for server in servers}
        members = [
            (weight, Member(Action.CHOOSE_SERVER, id=server, own_weight=weight, others_id=groups.get(server, 0)))
            for server, weight in sorted(weights.items())
        ]
        yield _group(Table.CHOOSE, P4TableMatch(service=service.id), members)


def others(state: State, service: Service) -> dict[int, tuple[dict[int, int], list[int]]]:
    """Return the groups from which the switch draws further servers to compare for a new connection: by group number,
    the weights of the group and the servers whose members refer to the group."""
    weights = state.weights[service.id]
    if not _takes_second_look(state, service):
        return {}
    if len(service.servers) > SMALL_POOL:
        return {SERVERS + service.id: (dict(weights), list(weights))}
    return {
        number: ({other: weight for other, weight in weights.items() if other != server}, [server])
        for server, number in _pairs(service).items()
        if server in weights
    }


def _takes_second_look(state: State, service: Service) -> bool:
    """Return whether the switch compares two or more servers for each new connection of the service."""
    return service.id in state.second_look and len(state.weights[service.id]) > 1


def _pairs(service: Service) -> dict[int, int]:
    """Return, for each server of a small pool, the number of the group that contains all other servers.

    A server that belongs to several groups of a content service has a separate number for each of those groups.
    """
    servers = [server.id for server in service.servers[:SMALL_POOL]]
    if service.group_of is None:
        return {server: server for server in servers}
    first = SERVERS + SERVICES + service.id * SMALL_POOL
    return dict(zip(servers, range(first, first + SMALL_POOL), strict=False))


def choose_other(state: State) -> Iterator[P4TableEntry]:
    """Yield the groups from which the switch draws further servers to compare for a new connection (second look)."""
    for service in state.plan.services:
        for number, (weights, _) in others(state, service).items():
            draws = seen_together(dict(sorted(weights.items())), min(service.looks, state.most_looks))
            members = [(places, _draw_of(servers, weights)) for places, servers in draws]
            yield _group(Table.CHOOSE_OTHER, P4TableMatch(others=number), members)


def idle_members(state: State) -> Iterator[P4TableEntry]:
    """Yield the sets of servers from which the switch may select an idle one for a new connection: an entry for each
    service and each range of IDLE_WORD server numbers in its group.

    Groups of content services have no entries: the FIN by which a server becomes idle is counted for the content
    service, not for its group.
    """
    for service in state.plan.services:
        if state.seeks_idle and service.group_of is None and _takes_second_look(state, service):
            sought = sought_idle(state.weights[service.id])
            for word, servers in sought.words.items():
                yield P4TableEntry(
                    Table.IDLE_MEMBERS,
                    match=P4TableMatch(service=service.id, word=word),
                    action=P4TableAction(Action.SEEK_IDLE, servers=servers, before_any=int(sought.before_any)),
                )


def _draw_of(servers: Sequence[int], weights: Mapping[int, int]) -> Member:
    """Return the action of a member that stands for one to three servers: a draw of the member yields all of them."""
    first, *more = servers
    if not more:
        return Member(Action.CHOOSE_OTHER_SERVER, id=first, own_weight=weights[first])
    third, fourth = more[0], more[1] if len(more) > 1 else 0
    return Member(
        Action.CHOOSE_OTHER_SERVERS,
        id=first,
        own_weight=weights[first],
        third=third,
        third_weight=weights[third],
        fourth=fourth,
        fourth_weight=weights.get(fourth, 0),
    )


def choose_stable(state: State) -> Iterator[P4TableEntry]:
    """Yield one group per service for connections without a slot (the stable choice). The group changes only with the
    configured pool or, in a content service, with the agents that are available."""
    for service in state.plan.services:
        weights = _stable_weights(state, service) if service.is_content else capacities(service)
        members = [
            (weight, Member(Action.CHOOSE_STABLE_SERVER, id=server)) for server, weight in sorted(weights.items())
        ]
        if not members and service.is_content:
            continue
        yield _group(Table.CHOOSE_STABLE, P4TableMatch(service=service.id), members)


def _stable_weights(state: State, service: Service) -> Mapping[int, int]:
    """Return the weights of a content service's agents; without any agent, those of the servers that receive the
    clients' connections directly, without an agent that reads the request."""
    return state.unread.get(service.id) or available(state, service)


def decision_keys(service: Service) -> dict[Table, list[tuple[int, ...]]]:
    """Return, for each table that a decision on a service may change, the match fields of every entry that can belong
    to the service, whatever its weights."""
    servers = [server.id for server in service.servers]
    return {
        Table.CHOOSE: [(service.id,)],
        Table.CHOOSE_STABLE: [(service.id,)],
        Table.CHOOSE_OTHER: [(group,) for group in (*_pairs(service).values(), SERVERS + service.id)],
        Table.IDLE_MEMBERS: [(service.id, word) for word in sorted({server // IDLE_WORD for server in servers})],
        Table.SERVERS: [(server,) for server in servers],
    }


def _group(table: Table, match: P4TableMatch, members: Sequence[tuple[int, P4TableAction]]) -> P4TableEntry:
    if not members or min(weight for weight, _ in members) < 1:
        raise SwitchError(f"{table}, {match}: a group needs members with weights of at least 1: {members}")
    return P4TableEntry(table, match=match, action=P4IndirectAction(members))


def weights_of(entry: p4r.TableEntry) -> dict[int, int]:
    """Return the weights of a group that was read back. The weights of repeated members add up."""
    weights: dict[int, int] = {}
    for member in entry.action.action_profile_action_set.action_profile_actions:
        server = next(int.from_bytes(p.value, "big") for p in member.action.params if p.param_id == 1)
        weights[server] = weights.get(server, 0) + member.weight
    return weights
