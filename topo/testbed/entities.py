"""P4Runtime entities by names in a P4Info. A name may be complete, or the last part of a complete name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from finsy.proto import p4i, p4r

Value = int | tuple[int, int]
"""A match value: a number for exact and optional fields, else a pair of a number and a prefix length (LPM), a mask
(ternary) or an upper bound (range)."""


def canonical(value: int) -> bytes:
    """Return the shortest byte string of a value, as P4Runtime requires (section 8.4)."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Entities:
    """Creates entities for a P4 program. Raises KeyError for a name that the program does not define."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self.p4info = p4info
        self._actions = {action.preamble.id: action for action in p4info.actions}

    def table(self, name: str) -> p4i.Table:
        """Return the P4Info of a table."""
        return _named(self.p4info.tables, name)

    def entry(
        self, table: str, match: Mapping[str, Value], action: str, args: Mapping[str, int], priority: int = 0
    ) -> p4r.Entity:
        """Return a table entry with a direct action."""
        made = self._key(table, match, priority)
        made.action.action.CopyFrom(self._action(table, action, args))
        return p4r.Entity(table_entry=made)

    def group_entry(
        self, table: str, match: Mapping[str, Value], action: str, members: Iterable[tuple[int, Mapping[str, int]]]
    ) -> p4r.Entity:
        """Return a table entry with a one-shot group of actions; ``members`` contains, for each
        member of the group, its weight and the arguments of its action."""
        made = self._key(table, match, 0)
        for weight, args in members:
            made.action.action_profile_action_set.action_profile_actions.add(
                weight=weight, action=self._action(table, action, args)
            )
        return p4r.Entity(table_entry=made)

    def default(self, table: str, action: str, args: Mapping[str, int]) -> p4r.Entity:
        """Return an entry that sets a table's default action."""
        made = p4r.TableEntry(table_id=self.table(table).preamble.id, is_default_action=True)
        made.action.action.CopyFrom(self._action(table, action, args))
        return p4r.Entity(table_entry=made)

    def digest(self, name: str) -> p4r.Entity:
        """Return the configuration of a digest by which the switch sends each message at once."""
        number = _named(self.p4info.digests, name).preamble.id
        config = p4r.DigestEntry.Config(max_list_size=1)
        return p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=number, config=config))

    def meter(self, name: str, index: int, config: p4r.MeterConfig) -> p4r.Entity:
        """Return the configuration of a meter's cell."""
        meter = _named(self.p4info.meters, name)
        entry = p4r.MeterEntry(meter_id=meter.preamble.id, index=p4r.Index(index=index), config=config)
        return p4r.Entity(meter_entry=entry)

    def _key(self, name: str, match: Mapping[str, Value], priority: int) -> p4r.TableEntry:
        table = self.table(name)
        made = p4r.TableEntry(table_id=table.preamble.id, priority=priority)
        fields = {field.name: field for field in table.match_fields}
        kinds = p4i.MatchField
        for field_name, value in match.items():
            field = fields[field_name]
            key = p4r.FieldMatch(field_id=field.id)
            low, high = value if isinstance(value, tuple) else (value, 0)
            if field.match_type == kinds.EXACT:
                key.exact.value = canonical(low)
            elif field.match_type == kinds.OPTIONAL:
                key.optional.value = canonical(low)
            elif field.match_type == kinds.LPM:
                key.lpm.value, key.lpm.prefix_len = canonical(low), high
            elif field.match_type == kinds.TERNARY:
                key.ternary.value, key.ternary.mask = canonical(low), canonical(high)
            else:
                key.range.low, key.range.high = canonical(low), canonical(high)
            made.match.append(key)
        return made

    def _action(self, table: str, name: str, args: Mapping[str, int]) -> p4r.Action:
        actions = [self._actions[reference.id] for reference in self.table(table).action_refs]
        action = _named(actions, name)
        params = {param.name: param.id for param in action.params}
        made = p4r.Action(action_id=action.preamble.id)
        for param, value in args.items():
            made.params.add(param_id=params[param], value=canonical(value))
        return made


class _Named(Protocol):
    @property
    def preamble(self) -> p4i.Preamble: ...


Item = TypeVar("Item", bound=_Named)


def _named(items: Iterable[Item], name: str) -> Item:
    for item in items:
        full = item.preamble.name
        if full == name or full.endswith(f".{name}"):
            return item
    raise KeyError(name)
