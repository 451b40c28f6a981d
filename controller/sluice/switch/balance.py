"""Stage balance: the selectors of a service, written in one request that packets see whole.

One-shot groups only: on BMv2 a MODIFY of a manual group is a series of single changes, and an empty group on the way
sends packets to port 0. A one-shot MODIFY builds the new group, switches over, and deletes the old one.
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
    """An action of a group, encoded once: a decision changes few members of a large pool; groups are written whole."""

    def encode_action(self, schema: P4Schema | P4Table) -> p4r.Action:
        """See P4TableAction. The message is shared: it is not to be changed."""
        return _encoded(schema, self.name, tuple(self.args.items()))


@lru_cache(maxsize=1 << 14)
def _encoded(schema: P4Schema | P4Table, name: str, parameters: tuple[tuple[str, int], ...]) -> p4r.Action:
    return P4TableAction(name, **dict(parameters)).encode_action(schema)


def capacities(service: Service) -> dict[int, int]:
    """Weights of the second choice: by configured capacity, whatever is measured or drained."""
    shares = {server.id: server.capacity for server in service.servers}
    return largest_remainder(shares, measured=shares)


def available(state: State, service: Service) -> dict[int, int]:
    """Weights of a content service's agents: of those that are there and take connections or, when there are none, of
    those that are there. An ejected one is probed."""
    there = [agent for agent in service.servers if agent.id not in state.absent]
    taking = [agent for agent in there if not agent.drain and agent.id not in state.draining | state.leaving]
    floor = service.config.balance.production.probe_floor
    shares = {one.id: one.capacity * (floor if one.id in state.ejected else 1.0) for one in taking or there}
    return largest_remainder(normalised(shares), measured=shares) if shares else {}


def shares(state: State, service: Service) -> int:
    """What the weights of the whole pool sum to: places in its group are counted in these when it draws evenly; 0: it
    draws by hashes.

    A pool of which servers are left out may sum to less. Both are powers of two: a place counts modulo the group's
    size, and the draws stay even.
    """
    return weight_sum(len(service.servers)) if service.id in state.second_look else 0


def choose(state: State) -> Iterator[P4TableEntry]:
    """One group a service: the weights that R decides. Each server names the group to draw the other one from. Content
    services choose by capacity alone: their clients' SYNs take no slot."""
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
    """The groups of a service's second look by number: their weights, and the servers that name them."""
    weights = state.weights[service.id]
    if not _looks(state, service):
        return {}
    if len(service.servers) > SMALL_POOL:
        return {SERVERS + service.id: (dict(weights), list(weights))}
    return {
        number: ({one: weight for one, weight in weights.items() if one != server}, [server])
        for server, number in _pairs(service).items()
        if server in weights
    }


def _looks(state: State, service: Service) -> bool:
    """Whether its new connections look at more servers than one."""
    return service.id in state.second_look and len(state.weights[service.id]) > 1


def _pairs(service: Service) -> dict[int, int]:
    """The number of each server's group of the others. Of a server in several groups of a content service each has one
    of its own."""
    servers = [server.id for server in service.servers[:SMALL_POOL]]
    if service.of is None:
        return {server: server for server in servers}
    first = SERVERS + SERVICES + service.id * SMALL_POOL
    return dict(zip(servers, range(first, first + SMALL_POOL), strict=False))


def choose_other(state: State) -> Iterator[P4TableEntry]:
    """The groups that a second look draws from."""
    for service in state.plan.services:
        for number, (weights, _) in others(state, service).items():
            seen = seen_together(dict(sorted(weights.items())), min(service.looks, state.most_looks))
            members = [(places, _seen(servers, weights)) for places, servers in seen]
            yield _group(Table.CHOOSE_OTHER, P4TableMatch(others=number), members)


def idle_members(state: State) -> Iterator[P4TableEntry]:
    """The servers that a second look seeks out while they are idle. Of groups it knows none: the FINs of their servers
    belong to their content service."""
    for service in state.plan.services:
        if state.seeks_idle and service.of is None and _looks(state, service):
            sought = sought_idle(state.weights[service.id])
            for word, servers in sought.words.items():
                yield P4TableEntry(
                    Table.IDLE_MEMBERS,
                    match=P4TableMatch(service=service.id, word=word),
                    action=P4TableAction(Action.SEEK_IDLE, servers=servers, before_any=int(sought.before_any)),
                )


def _seen(servers: Sequence[int], weights: Mapping[int, int]) -> Member:
    """The action that draws so many servers at once."""
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
    """One group a service; only a change of the configured pool changes it, or of the agents that there are."""
    for service in state.plan.services:
        weights = _readers(state, service) if service.is_content else capacities(service)
        members = [
            (weight, Member(Action.CHOOSE_STABLE_SERVER, id=server)) for server, weight in sorted(weights.items())
        ]
        if not members and service.is_content:
            continue
        yield _group(Table.CHOOSE_STABLE, P4TableMatch(service=service.id), members)


def _readers(state: State, service: Service) -> Mapping[int, int]:
    """A content service's agents or, without any, the servers that get its clients unread."""
    return state.unread.get(service.id) or available(state, service)


def decided(service: Service) -> dict[Table, list[tuple[int, ...]]]:
    """What a decision on a service changes: the tables, and what their entries match that can be its own, whatever its
    weights."""
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
    """The weights of a group as read back; repeated members add up."""
    weights: dict[int, int] = {}
    for member in entry.action.action_profile_action_set.action_profile_actions:
        server = next(int.from_bytes(p.value, "big") for p in member.action.params if p.param_id == 1)
        weights[server] = weights.get(server, 0) + member.weight
    return weights
