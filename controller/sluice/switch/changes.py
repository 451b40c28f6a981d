"""Describes the changes that a reload would make in the switch, as a readable diff of table entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from finsy import P4IndirectAction, P4MeterEntry, P4Schema, P4TableAction, P4TableEntry
from finsy.p4entity import P4WeightedAction
from finsy.proto import p4r

from sluice.addresses import IPV4_BITS, from_number

from .keys import key_of
from .plan import Plan
from .reconcile import Readback, changes_of
from .session import Session
from .state import State

_SIGNS = {p4r.Update.INSERT: "+", p4r.Update.MODIFY: "~", p4r.Update.DELETE: "-"}


class _Names:
    """Names of services, servers and neighbours by their numbers, before and after the change."""

    def __init__(self, neighbours: Mapping[int, str], *plans: Plan) -> None:
        self._neighbours = neighbours
        self._services = {service.id: service.name for plan in plans for service in plan.services}
        self._servers: dict[int, str] = {}
        for plan in plans:
            self._servers |= {retired.id: str(retired.endpoint[0]) for retired in plan.retired}
            self._servers |= {server.id: server.name for server in plan.servers}

    def value(self, field: str, value: Any, *, choice: bool = False) -> str:
        """Return the value of a match field or an action parameter in the notation of the configuration."""
        if isinstance(value, tuple):
            number, length = value
            return f"{from_number(number, IPV4_BITS)}/{length}"
        if field == "address":
            return str(from_number(value, IPV4_BITS))
        if field == "neighbour":
            return self._neighbours.get(value, str(value))
        if field.endswith("mac"):
            return value.to_bytes(6, "big").hex(":")
        names = self._services if field == "service" else self._servers if field == "server" or choice else {}
        return names.get(value, str(value))


def describe(session: Session, readback: Readback, state: State, before: Plan) -> list[str]:
    """Return a line for each update that would bring the switch to ``state``, in the order of writing. Writes nothing.

    ``before``: the plan whose names describe the switch's present entries. Raises SwitchError.
    """
    schema = session.pipeline.schema
    ids = [*readback.neighbour_ids.items(), *state.neighbour_ids.items()]
    names = _Names({number: str(address) for address, number in ids}, before, state.plan)
    changes = changes_of(session, readback, state)
    lines: list[str] = []
    for update in changes.updates:
        kind = update.entity.WhichOneof("entity")
        if kind == "meter_entry":
            lines.append(_meter(schema, names, update.entity))
            continue
        entry = update.entity.table_entry
        old = changes.installed.get(key_of(entry))
        new = None if update.type == p4r.Update.DELETE else entry
        lines.append(f"{_SIGNS[update.type]} {_entry(schema, names, old, new)}")
    return lines


def _entry(schema: P4Schema, names: _Names, old: p4r.TableEntry | None, new: p4r.TableEntry | None) -> str:
    either = new if new is not None else old
    assert either is not None
    table = schema.tables[either.table_id]
    match = P4TableEntry.decode_entry(either, schema).match or {}
    where = ", ".join(f"{field} {names.value(field, value)}" for field, value in match.items())
    head = f"{table.alias} {where or 'default'}"
    if new is None:
        return f"{head}: {_joined(_facts(schema, names, old))}"
    after = _facts(schema, names, new)
    if old is None:
        return f"{head}: {_joined(after)}"
    return f"{head}: {', '.join(_differences(_facts(schema, names, old), after)) or 'its note'}"


def _facts(schema: P4Schema, names: _Names, entry: p4r.TableEntry | None) -> dict[str, str]:
    """Return an entry's action and parameters, or the weights of its group's members, and its metadata as ``note``; an
    empty dict for None."""
    if entry is None:
        return {}
    decoded, facts = P4TableEntry.decode_entry(entry, schema), dict[str, str]()
    match decoded.action:
        case P4TableAction() as action:
            facts = {"action": action.name, **_arguments(names, action.args)}
        case P4IndirectAction(action_set=members) if members:
            facts = dict(_members(names, members))
        case unknown:
            facts = {"action": str(unknown)}
    return facts | ({"note": decoded.metadata.decode(errors="replace")} if decoded.metadata else {})


def _members(names: _Names, members: Sequence[P4WeightedAction]) -> Iterator[tuple[str, str]]:
    for weight, action in members:
        yield f"weight of {names.value('id', action.args['id'], choice=True)}", str(weight)


def _arguments(names: _Names, arguments: Mapping[str, Any]) -> dict[str, str]:
    return {field: names.value(field, value) for field, value in arguments.items()}


def _joined(facts: Mapping[str, str]) -> str:
    return ", ".join(value if field == "action" else f"{field} {value}" for field, value in facts.items())


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for field in dict.fromkeys((*old, *new)):
        before, after = old.get(field), new.get(field)
        if before != after:
            yield f"{field} {before or 'none'} -> {after or 'none'}"


def _meter(schema: P4Schema, names: _Names, entity: p4r.Entity) -> str:
    entry = P4MeterEntry.decode(entity, schema)
    of = names.value("service", entry.index) if entry.meter_id == "admission" else str(entry.index)
    if entry.config is None:
        return f"- {entry.meter_id} {of}: no limit"
    return f"~ {entry.meter_id} {of}: {entry.config.cir} per second, {entry.config.cburst} at once"
