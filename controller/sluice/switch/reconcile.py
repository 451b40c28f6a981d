"""Brings a switch to a desired state by writing what differs, and reads back what it holds."""

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
from .keys import Key, exactly, key_of
from .plan import Endpoint, Retired
from .rules import Rules
from .session import Session
from .state import Neighbour, State
from .targets.profile import most_looks, seeks_idle

# What is referred to comes before what refers to it; deletions go the other way round.
_STAGES: tuple[tuple[Table, Callable[[State], Iterator[P4TableEntry]]], ...] = (
    (Table.PORTS, ports.entries),
    (Table.OWNED, local.entries),
    (Table.EGRESS_VLAN, forward.vlans),
    (Table.ROUTES, forward.routes),
    (Table.NEIGHBOURS, forward.neighbours),
    (Table.TIMERS, connections.timers),
    (Table.SERVERS, translate.entries),
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
    Meter.DESTINATION_LIMIT: destinations.for_anybody,
    Meter.RETURNING_LIMIT: destinations.for_returning,
}

_KEYLESS = (Table.TIMERS, Table.RATE_SETTINGS, Table.SAMPLING)


@dataclass(slots=True)
class Found:
    """What a switch holds that a controller goes on from."""

    entries: dict[Key, p4r.TableEntry]
    meters: dict[Meter, Mapping[int, Bucket]]
    rounded: bool = True
    """The meters are as the switch gave them back, rounded; not as they were written."""
    services: dict[Endpoint, int] = field(default_factory=dict[Endpoint, int])
    """Numbers of the services in the switch."""
    origins: dict[Endpoint, Retired] = field(default_factory=dict[Endpoint, Retired])
    """Every server in the switch."""
    weights: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])
    draining: frozenset[int] = frozenset()
    """Servers drained at run time."""
    ejected: frozenset[int] = frozenset()
    """Servers that take no new connection but their probe's share."""
    absent: frozenset[int] = frozenset()
    """Servers without an address: agents that did not answer."""
    rules: Rules | None = None
    """Of content services; None without a note."""
    neighbours: dict[Address, Neighbour] = field(default_factory=dict[Address, Neighbour])
    destinations: dict[Address, int] = field(default_factory=dict[Address, int])
    limits: dict[Address, float] = field(default_factory=dict[Address, float])
    """Connections per second, where an earlier flash-crowd control had set a limit."""
    caps: dict[int, Defaults] = field(default_factory=dict[int, Defaults])
    """Of connections without a cap of their own, by the number of the server."""


def wanted_entries(state: State, tables: Collection[Table] | None = None) -> list[P4TableEntry]:
    """The table entries of a state (of some tables), in the order of writing."""
    return [entry for table, stage in _STAGES if tables is None or table in tables for entry in stage(state)]


async def read_back(session: Session) -> Found:
    """Everything a switch was programmed with. Raises SwitchError."""
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
    found = Found(
        entries={key_of(entry): entry for entry in entries},
        meters={meter: _buckets(session, meter, meters) for meter in Meter},
    )
    _interpret(session, found)
    return found


async def reconcile(
    session: Session,
    found: Found,
    state: State,
    tables: Collection[Table] | None = None,
    meters: Collection[Meter] = (),
) -> int:
    """Write what differs between ``found`` and ``state``; returns the number of updates. Raises SwitchError.

    With ``tables`` only those and ``meters`` are looked at; a state that is not whole needs ``tables`` that a decision
    changes, and no meter but admission's. ``found`` is brought up to date, so
    that the next call writes only what has changed since; after an error it is not, and the switch is to be read again.
    """
    changes = changes_of(session, found, state, tables, meters)
    await session.write(changes.updates)
    for key in changes.have:
        del found.entries[key]
    found.entries |= changes.wanted
    found.meters = {**found.meters, **changes.buckets}
    found.rounded = found.rounded and tables is not None
    return len(changes.updates)


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs between a switch and a state."""

    updates: list[p4r.Update]
    have: dict[Key, p4r.TableEntry]
    """Entries of the switch that were compared."""
    wanted: dict[Key, p4r.TableEntry]
    buckets: dict[Meter, Mapping[int, Bucket]]


def changes_of(
    session: Session,
    found: Found,
    state: State,
    tables: Collection[Table] | None = None,
    meters: Collection[Meter] = (),
) -> Changes:
    """See reconcile, which writes it. Raises SwitchError."""
    schema, target = session.pipeline.schema, session.target
    if (reason := target.objection(state.plan.config, schema)) is not None:
        raise SwitchError(f"switch {session.address}: {reason}")
    state = replace(state, units=target.units, most_looks=most_looks(schema), seeks_idle=seeks_idle(schema))
    encoded = (entry.encode_entry(schema) for entry in wanted_entries(state, tables))
    wanted = {key_of(entry): entry for entry in encoded}
    have = _compared(found, schema, state, tables or Table)
    updates = difference(have, wanted)
    buckets: dict[Meter, Mapping[int, Bucket]] = {
        meter: _others(found, meter, state) | {i: target.bucket(bucket) for i, bucket in wanted(state).items()}
        for meter, wanted in _METERS.items()
        if tables is None or meter in meters
    }
    updates += [
        p4r.Update(type=p4r.Update.MODIFY, entity=change.encode(schema))
        for meter, want in buckets.items()
        for change in admission.changes(meter, found.meters[meter], want, rounded=found.rounded)
    ]
    return Changes(updates, have, wanted, buckets)


def _others(found: Found, meter: Meter, state: State) -> dict[int, Bucket]:
    """What of a meter is not a state's to say: where it has some services only, all of the others' cells."""
    if state.whole:
        return {}
    assert meter is Meter.ADMISSION, f"{meter} does not count by services"
    theirs = {service.id for service in state.plan.services}
    return {index: bucket for index, bucket in found.meters[meter].items() if index not in theirs}


def _compared(found: Found, schema: P4Schema, state: State, tables: Collection[Table]) -> dict[Key, p4r.TableEntry]:
    """What the switch has that may differ: all of the tables or, of some services, only what can be theirs."""
    numbers = {table: one.id for table in tables if (one := schema.tables.get(table))}
    if state.whole:
        looked_at = set(numbers.values())
        return {key: entry for key, entry in found.entries.items() if key[0] in looked_at}
    keys = [
        exactly(numbers[table], *matched)
        for service in state.plan.services
        for table, matches in {**balance.decided(service), **resources.decided(service)}.items()
        if table in numbers
        for matched in matches
    ]
    return {key: found.entries[key] for key in keys if key in found.entries}


def difference(have: dict[Key, p4r.TableEntry], want: dict[Key, p4r.TableEntry]) -> list[p4r.Update]:
    """INSERTs and MODIFYs in the order of ``want``, then DELETEs of what is not wanted, last stage first."""
    updates: list[p4r.Update] = []
    for key, entry in want.items():
        old = have.get(key)
        if old is not None and _weights(old) == _weights(entry) and _meaning(old) == _meaning(entry):
            continue
        kind = p4r.Update.INSERT if old is None and not entry.is_default_action else p4r.Update.MODIFY
        updates.append(p4r.Update(type=kind, entity=p4r.Entity(table_entry=entry)))
    order = {key[0]: position for position, key in enumerate(want)}
    surplus = [(order.get(key[0], -1), key) for key in have if key not in want and not key[1]]
    for _, key in sorted(surplus, reverse=True):
        bare = p4r.TableEntry(table_id=key[0], match=have[key].match, priority=have[key].priority)
        updates.append(p4r.Update(type=p4r.Update.DELETE, entity=p4r.Entity(table_entry=bare)))
    return updates


def _weights(entry: p4r.TableEntry) -> list[int]:
    """A group's weights in order: where they differ, as they do after most decisions, nothing else need be compared."""
    return sorted(m.weight for m in entry.action.action_profile_action_set.action_profile_actions)


def _meaning(entry: p4r.TableEntry) -> object:
    """What an entry does, in a form in which equal entries are equal."""
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
        # A meter that was never set reads back on BMv2 as the largest rates there are.
        and e.meter_entry.config.cir < 1 << 32
    }


def _interpret(session: Session, found: Found) -> None:
    schema = session.pipeline.schema
    tables = {one.id: table for table in Table if (one := schema.tables.get(table))}
    draining, unwilling = set[int](), set[int]()
    deny, grouped, content = (
        one.id if (one := schema.actions.get(name)) else None
        for name in (Action.DENY_DIRECT, Action.FROM_CONTENT, Action.TO_CONTENT)
    )
    placed: set[int] = set()
    for entry in found.entries.values():
        match = {m.field_id: int.from_bytes(m.exact.value, "big") for m in entry.match}
        params = _params(entry.action.action.params)
        match tables.get(entry.table_id):
            case Table.SERVICES if entry.action.action.action_id != deny:
                found.services[from_number(match[1], IPV4_BITS), match[2], match[3]] = params[0]
                if entry.action.action.action_id == content:
                    found.rules = rules.read(params[1], entry.metadata)
            case Table.ORIGINS:
                endpoint = (from_number(match[1], IPV4_BITS), match[2], match[3])
                in_group = entry.action.action.action_id == grouped
                found.origins[endpoint] = Retired(params[0], endpoint, params[1], in_group)
            case Table.SERVERS:
                placed.add(match[1])
                draining |= {match[1]} if entry.metadata == translate.DRAINING else set()
                unwilling |= {match[1]} if params[2] else set()
            case Table.NEIGHBOURS:
                mac = params[2].to_bytes(6, "big").hex(":")
                found.neighbours[from_number(match[1], IPV4_BITS)] = Neighbour(params[0], mac)
            case Table.DESTINATIONS if params[0] != destinations.UNLISTED:
                address = from_number(match[1], IPV4_BITS)
                found.destinations[address] = params[0]
                limit = destinations.limit_noted(entry.metadata)
                if limit is not None:
                    found.limits[address] = limit
            case Table.RESOURCES:
                found.caps[match[1]] = Defaults(*params[-2:])
            case Table.CHOOSE:
                found.weights[match[1]] = balance.weights_of(entry)
            case _:
                pass
    found.draining = frozenset(draining)
    found.ejected = frozenset(unwilling - draining - _left_out(found))
    found.absent = frozenset(origin.id for origin in found.origins.values()) - placed


def _left_out(found: Found) -> set[int]:
    """Servers that their service's group leaves out: they drain, or are full.

    Any other server has a weight of at least 1, an ejected one its probe's share.
    """
    return {
        origin.id
        for origin in found.origins.values()
        if found.weights.get(origin.service_id) and origin.id not in found.weights[origin.service_id]
    }


def _params(params: Sequence[p4r.Action.Param]) -> list[int]:
    return [int.from_bytes(p.value, "big") for p in sorted(params, key=lambda p: p.param_id)]
