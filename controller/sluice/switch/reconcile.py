"""Reads back a switch's entries and meters, and brings the switch to a desired state by writing only differences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from finsy import P4MeterEntry, P4Schema, P4TableEntry
from finsy.proto import p4r

from sluice.addresses import IPV4_BITS, Address, from_number
from sluice.names import Action, Meter, Table
from sluice.resources.sharer import Defaults

from . import (
    admission,
    agents,
    balance,
    classify,
    connections,
    destinations,
    forward,
    local,
    ports,
    rates,
    resources,
    rules,
    sampling,
    translate,
    verdict,
)
from .bucket import Bucket
from .errors import SwitchError
from .keys import Key, exact_key, key_of
from .plan import Endpoint, InstalledServer
from .rules import Rules
from .session import Session
from .state import Neighbour, State
from .targets.profile import most_looks, seeks_idle

# The switch requires this order: an entry is written after the entries that it refers to. Deletions run in the
# reverse order.
_STAGES: tuple[tuple[Table, Callable[[State], Iterator[P4TableEntry]]], ...] = (
    (Table.PORTS, ports.entries),
    (Table.OWNED, local.entries),
    (Table.EGRESS_VLAN, forward.vlans),
    (Table.NEIGHBOURS, forward.neighbours),
    (Table.ROUTES, forward.routes),
    (Table.TIMERS, connections.timers),
    (Table.SERVERS, translate.entries),
    (Table.AGENT_HOPS, agents.hops),
    (Table.AGENTS, agents.entries),
    (Table.RESOURCES, resources.entries),
    (Table.ORIGINS, classify.origins),
    (Table.CHOOSE_STABLE, balance.choose_stable),
    (Table.CHOOSE_OTHER, balance.choose_other),
    (Table.IDLE_MEMBERS, balance.idle_members),
    (Table.CHOOSE, balance.choose),
    (Table.SERVICES, classify.services),
    (Table.DESTINATIONS, destinations.entries),
    (Table.RATE_SETTINGS, rates.settings),
    (Table.SAMPLING, sampling.settings),
)

_METERS: dict[Meter, Callable[[State], Mapping[int, Bucket]]] = {
    Meter.ADMISSION: admission.wanted,
    Meter.PUNT_LIMIT: verdict.wanted,
    Meter.DESTINATION_LIMIT: destinations.general_buckets,
    Meter.RETURNING_LIMIT: destinations.returning_buckets,
}

_KEYLESS = (Table.TIMERS, Table.RATE_SETTINGS, Table.SAMPLING)


@dataclass(slots=True)
class Readback:
    """A switch's content as read back: the entries, and the state from which a controller continues."""

    entries: dict[Key, p4r.TableEntry]
    meters: dict[Meter, Mapping[int, Bucket]]
    rounded: bool = True
    """Whether the meters are as the switch returned them (rounded) rather than as they were written."""
    services: dict[Endpoint, int] = field(default_factory=dict[Endpoint, int])
    """Numbers of the services in the switch, by endpoint."""
    origins: dict[Endpoint, InstalledServer] = field(default_factory=dict[Endpoint, InstalledServer])
    """Every server in the switch, by endpoint."""
    weights: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    """For each service, by service number: the selector weights by server number."""
    draining: frozenset[int] = frozenset()
    """Servers that were drained at run time."""
    ejected: frozenset[int] = frozenset()
    """Ejected servers: they get only the small share of new connections that keeps them measured (the probe floor)."""
    absent: frozenset[int] = frozenset()
    """Servers without an address in the switch: agents that had not answered the controller."""
    rules: Rules | None = None
    """Rules of the content services; None if no entry notes them."""
    neighbours: dict[Address, Neighbour] = field(default_factory=dict[Address, Neighbour])
    neighbour_ids: dict[Address, int] = field(default_factory=dict[Address, int])
    used_ids: set[int] = field(default_factory=set[int])
    """Ids of neighbours that any entry of the tables NEIGHBOURS and ROUTES contains."""
    destinations: dict[Address, int] = field(default_factory=dict[Address, int])
    limits: dict[Address, float] = field(default_factory=dict[Address, float])
    """Limits, in connections per second, that an earlier controller's flash-crowd control had set."""
    caps: dict[int, Defaults] = field(default_factory=dict[int, Defaults])
    """Default caps, for connections without a cap of their own, by server number."""


def wanted_entries(state: State, tables: Collection[Table] | None = None) -> list[P4TableEntry]:
    """Return the table entries of a state, in the order of writing; with ``tables``, only the entries of these
    tables."""
    return [entry for table, stage in _STAGES if tables is None or table in tables for entry in stage(state)]


async def read_back(session: Session) -> Readback:
    """Read back all entries, meters and groups that a controller has written to a switch. Raises SwitchError."""
    defaults = (P4TableEntry(table, is_default_action=True) for table in _KEYLESS)
    entities = await session.read([P4TableEntry(), *defaults])
    limits = {int(reason) for reason in verdict.PuntReason}
    meters = await session.read(
        [
            P4MeterEntry(Meter.ADMISSION),
            P4MeterEntry(Meter.DESTINATION_LIMIT),
            P4MeterEntry(Meter.RETURNING_LIMIT),
            *(P4MeterEntry(Meter.PUNT_LIMIT, index=index) for index in sorted(limits)),
        ]
    )
    entries = [e.table_entry for e in entities]
    readback = Readback(
        entries={key_of(entry): entry for entry in entries},
        meters={meter: _buckets(session, meter, meters) for meter in Meter},
    )
    _interpret(session, readback)
    return readback


async def reconcile(
    session: Session,
    readback: Readback,
    state: State,
    tables: Collection[Table] | None = None,
    meters: Collection[Meter] = (),
) -> int:
    """Write what differs between ``readback`` and ``state``. Returns the number of updates. Raises SwitchError.

    ``tables``: compare only these tables and ``meters``; None: compare all tables and meters. A state that is not
    complete requires ``tables`` to be the tables that a balancing decision changes, and ``meters`` to contain at most
    admission's meter. ``readback`` is updated, so that the next call writes only what has changed since then. After an
    error ``readback`` is not updated: read the switch again.
    """
    changes = changes_of(session, readback, state, tables, meters)
    await session.write(changes.updates)
    for key in changes.installed:
        del readback.entries[key]
    readback.entries |= changes.wanted
    readback.meters = {**readback.meters, **changes.buckets}
    if state.is_complete:
        readback.neighbour_ids = dict(state.neighbour_ids)
    readback.rounded = readback.rounded and tables is not None
    return len(changes.updates)


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference between a switch and a desired state, and all entries that were compared."""

    updates: list[p4r.Update]
    installed: dict[Key, p4r.TableEntry]
    """Those entries of the switch that were compared."""
    wanted: dict[Key, p4r.TableEntry]
    buckets: dict[Meter, Mapping[int, Bucket]]


def changes_of(
    session: Session,
    readback: Readback,
    state: State,
    tables: Collection[Table] | None = None,
    meters: Collection[Meter] = (),
) -> Changes:
    """Return the changes that ``reconcile`` writes. Raises SwitchError."""
    schema, target = session.pipeline.schema, session.target
    if (reason := target.objection(state.plan.config, schema)) is not None:
        raise SwitchError(f"switch {session.address}: {reason}")
    state = replace(state, units=target.units, most_looks=most_looks(schema), seeks_idle=seeks_idle(schema))
    encoded = (entry.encode_entry(schema) for entry in wanted_entries(state, tables))
    wanted = {key_of(entry): entry for entry in encoded}
    installed = _compared(readback, schema, state, tables or Table)
    updates = difference(installed, wanted)
    buckets: dict[Meter, Mapping[int, Bucket]] = {
        meter: _cells_of_others(readback, meter, state)
        | {i: target.bucket(bucket) for i, bucket in wanted(state).items()}
        for meter, wanted in _METERS.items()
        if tables is None or meter in meters
    }
    updates += [
        p4r.Update(type=p4r.Update.MODIFY, entity=change.encode(schema))
        for meter, desired in buckets.items()
        for change in admission.changes(meter, readback.meters[meter], desired, rounded=readback.rounded)
    ]
    return Changes(updates, installed, wanted, buckets)


def _cells_of_others(readback: Readback, meter: Meter, state: State) -> dict[int, Bucket]:
    """Return the meter cells of services that an incomplete state does not contain; these cells stay unchanged."""
    if state.is_complete:
        return {}
    assert meter is Meter.ADMISSION, f"{meter} does not count by services"
    covered = {service.id for service in state.plan.services}
    return {index: bucket for index, bucket in readback.meters[meter].items() if index not in covered}


def _compared(
    readback: Readback, schema: P4Schema, state: State, tables: Collection[Table]
) -> dict[Key, p4r.TableEntry]:
    """Return those of the switch's entries that may differ from the state: all entries of the tables or, if the state
    contains only some services, only the entries that these services can have."""
    numbers = {table: info.id for table in tables if (info := schema.tables.get(table))}
    if state.is_complete:
        compared = set(numbers.values())
        return {key: entry for key, entry in readback.entries.items() if key[0] in compared}
    keys = [
        exact_key(numbers[table], *matched)
        for service in state.plan.services
        for table, matches in {**balance.decision_keys(service), **resources.decision_keys(service)}.items()
        if table in numbers
        for matched in matches
    ]
    return {key: readback.entries[key] for key in keys if key in readback.entries}


def difference(installed: dict[Key, p4r.TableEntry], desired: dict[Key, p4r.TableEntry]) -> list[p4r.Update]:
    """Return INSERTs and MODIFYs in the order of ``desired``, then DELETEs of surplus entries in reverse stage
    order."""
    updates: list[p4r.Update] = []
    for key, entry in desired.items():
        old = installed.get(key)
        if old is not None and _weights(old) == _weights(entry) and _meaning(old) == _meaning(entry):
            continue
        kind = p4r.Update.INSERT if old is None and not entry.is_default_action else p4r.Update.MODIFY
        updates.append(p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry)))
    order = {key[0]: position for position, key in enumerate(desired)}
    surplus = [(order.get(key[0], -1), key) for key in installed if key not in desired and not key[1]]
    for _, key in sorted(surplus, reverse=True):
        bare = p4r.TableEntry(table_id=key[0], match=installed[key].match, priority=installed[key].priority)
        updates.append(p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=bare)))
    return updates


def _weights(entry: p4r.TableEntry) -> list[int]:
    """Return a group's weights in ascending order. Most decisions change weights, so a comparison of weights often
    makes a comparison of the members unnecessary."""
    return sorted(m.weight for m in entry.action.action_profile_action_set.action_profile_actions)


def _meaning(entry: p4r.TableEntry) -> object:
    """Return an entry's effect in a canonical form: entries with the same effect compare equal."""
    if entry.action.HasField("action_profile_action_set"):
        members = [
            (_call(member.action), member.weight)
            for member in entry.action.action_profile_action_set.action_profile_actions
        ]
        return (sorted(members), entry.metadata)
    return (_call(entry.action.action), entry.metadata)


def _call(action: p4r.Action) -> tuple[int, tuple[tuple[int, bytes], ...]]:
    return (action.action_id, tuple(sorted((p.param_id, p.value.lstrip(b"\0")) for p in action.params)))


def _buckets(session: Session, meter: Meter, entities: Iterable[p4r.Entity]) -> dict[int, Bucket]:
    number = session.pipeline.schema.meters[meter].id
    return {
        e.meter_entry.index.index: Bucket(e.meter_entry.config.cir, e.meter_entry.config.cburst)
        for e in entities
        if e.meter_entry.meter_id == number
        and e.meter_entry.HasField("config")
        # BMv2 returns the largest possible rates for a meter that was never set.
        and e.meter_entry.config.cir < 1 << 32
    }


def _interpret(session: Session, readback: Readback) -> None:
    schema = session.pipeline.schema
    tables = {info.id: table for table in Table if (info := schema.tables.get(table))}
    draining, unwilling = set[int](), set[int]()
    deny, grouped, content = (
        info.id if (info := schema.actions.get(name)) else None
        for name in (Action.DENY_DIRECT, Action.FROM_CONTENT, Action.TO_CONTENT)
    )
    placed: set[int] = set()
    for entry in readback.entries.values():
        match = {m.field_id: int.from_bytes(m.exact.value, "big") for m in entry.match}
        params = _params(entry.action.action.params)
        match tables.get(entry.table_id):
            case Table.SERVICES if entry.action.action.action_id != deny:
                readback.services[from_number(match[1], IPV4_BITS), match[2], match[3]] = params[0]
                if entry.action.action.action_id == content:
                    readback.rules = rules.read(params[1], entry.metadata)
            case Table.ORIGINS:
                endpoint = (from_number(match[1], IPV4_BITS), match[2], match[3])
                in_group = entry.action.action.action_id == grouped
                readback.origins[endpoint] = InstalledServer(params[0], endpoint, params[1], in_group)
            case Table.SERVERS:
                placed.add(match[1])
                draining |= {match[1]} if entry.metadata == translate.DRAINING else set()
                unwilling |= {match[1]} if params[2] else set()
            case Table.NEIGHBOURS:
                readback.used_ids.add(match[1])
                if (address := forward.address_noted(entry.metadata)) is not None:
                    readback.neighbours[address] = Neighbour(params[0], params[2].to_bytes(6, "big").hex(":"))
                    readback.neighbour_ids[address] = match[1]
            case Table.ROUTES if params:
                readback.used_ids.add(params[0])
                if (address := forward.address_noted(entry.metadata)) is not None:
                    readback.neighbour_ids[address] = params[0]
            case Table.AGENT_HOPS if params:
                readback.used_ids.add(params[0])
            case Table.DESTINATIONS if params[0] != destinations.UNLISTED:
                address = from_number(match[1], IPV4_BITS)
                readback.destinations[address] = params[0]
                limit = destinations.limit_noted(entry.metadata)
                if limit is not None:
                    readback.limits[address] = limit
            case Table.RESOURCES:
                readback.caps[match[1]] = Defaults(*params[-2:])
            case Table.CHOOSE:
                readback.weights[match[1]] = balance.weights_of(entry)
            case _:
                pass
    readback.draining = frozenset(draining)
    readback.ejected = frozenset(unwilling - draining - _without_weight(readback))
    readback.absent = frozenset(origin.id for origin in readback.origins.values()) - placed


def _without_weight(readback: Readback) -> set[int]:
    """Return the servers that their service's group leaves out because they drain or are full.

    Any other server has a weight of at least 1, even an ejected server.
    """
    return {
        origin.id
        for origin in readback.origins.values()
        if readback.weights.get(origin.service_id) and origin.id not in readback.weights[origin.service_id]
    }


def _params(params: Sequence[p4r.Action.Param]) -> list[int]:
    return [int.from_bytes(p.value, "big") for p in sorted(params, key=lambda p: p.param_id)]
