"""Converts STF's table entries and default actions to P4Runtime. As in p4c, an unambiguous suffix of a name
suffices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from finsy.proto import p4i, p4r

from topo.testbed.entities import canonical

from .statements import Add, Call, SetDefault, StfError, number

Named = TypeVar("Named")

_DIGIT_BITS = {"0x": 4, "0b": 1, "0o": 3}
_INDEX = re.compile(r"\$(\d+)")


def find(what: str, name: str, items: Iterable[Named], name_of: Callable[[Named], str]) -> Named:
    """Return the item with this name, or the only item whose name ends in it. Raises StfError if there is no such item,
    or only several whose names end in it."""
    items = list(items)
    exact = [item for item in items if name_of(item) == name]
    by_end = exact or [item for item in items if name_of(item).endswith(name)]
    if not by_end:
        raise StfError(f"there is no {what} {name!r}, only {', '.join(map(name_of, items)) or 'none'}")
    if len(by_end) > 1:
        raise StfError(f"{what} {name!r} may be {' or '.join(map(name_of, by_end))}")
    return by_end[0]


class Entries:
    """Converts statements to P4Runtime updates, with a program's P4Info."""

    def __init__(self, p4info: p4i.P4Info) -> None:
        self._tables = p4info.tables
        self._actions = {action.preamble.id: action for action in p4info.actions}

    def insert(self, add: Add) -> p4r.Update:
        """Return the update for an `add` statement. Raises StfError."""
        table = find("table", add.table, self._tables, lambda table: table.preamble.name)
        entry = p4r.TableEntry(table_id=table.preamble.id, action=self._action(table, add.call))
        given = {_key(table, name).id: value for name, value in add.keys}
        kinds = {field.match_type for field in table.match_fields}
        for field in table.match_fields:
            match = _match(field, given.get(field.id))
            if match is not None:
                entry.match.append(match)
        kind = p4i.MatchField
        if kinds & {kind.TERNARY, kind.RANGE, kind.OPTIONAL}:
            entry.priority = (add.priority or 0) + 1  # P4Runtime's priorities begin at 1, STF's at 0.
        return p4r.Update(type=p4r.Update.INSERT, entity=p4r.Entity(table_entry=entry))

    def set_default(self, statement: SetDefault) -> p4r.Update:
        """Return the update for a `setdefault` statement. Raises StfError."""
        table = find("table", statement.table, self._tables, lambda table: table.preamble.name)
        action = self._action(table, statement.call)
        entry = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True, action=action)
        return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(table_entry=entry))

    def _action(self, table: p4i.Table, call: Call) -> p4r.TableAction:
        actions = [self._actions[reference.id] for reference in table.action_refs]
        action = find(f"action of {table.preamble.name}", call.action, actions, lambda action: action.preamble.name)
        made = p4r.Action(action_id=action.preamble.id)
        for name in call.arguments:
            find(f"parameter of {call.action}", name, action.params, lambda param: param.name)
        for param in action.params:
            if param.name not in call.arguments:
                raise StfError(f"parameter {param.name!r} of {call.action} is missing")
            value = canonical(number(call.arguments[param.name]))
            made.params.append(p4r.Action.Param(param_id=param.id, value=value))
        return p4r.TableAction(action=made)


def _key(table: p4i.Table, name: str) -> p4i.MatchField:
    """Return the key field with the given STF name: `extra$0.h` denotes `extra[0].h`, and `ipv4.valid` denotes
    `ipv4.$valid$`. Raises StfError."""
    wanted = _INDEX.sub(r"[\1]", name)
    validity = re.sub(r"(^|\.)valid$", r"\1$valid$", wanted)
    names = (wanted, f"{wanted}$", f"{wanted}.$valid$", validity)
    fields = {field.name: field for field in table.match_fields}
    for candidate in names:
        if candidate in fields:
            return fields[candidate]
    for candidate in names:
        for field in table.match_fields:
            if field.name.endswith(f".{candidate}"):
                return field
    raise StfError(f"table {table.preamble.name} has no key {name!r}, only {', '.join(fields)}")


def _value_and_mask(text: str, width: int) -> tuple[int, int]:
    """Return value and mask of `VALUE&&&MASK`, or of a number in which `*` stands for any digit. Raises ValueError."""
    everything = (1 << width) - 1
    value, given, mask = text.partition("&&&")
    if given:
        if number(value) > everything:
            raise ValueError(f"{value} has more than {width} bits")
        return number(value), number(mask) & everything
    bits = _DIGIT_BITS.get(text[:2].lower())
    if bits is None:
        return number(text), everything
    ones, known = (1 << bits) - 1, 0
    for digit in text[2:]:
        known = known << bits | (0 if digit == "*" else ones)
    # Leading digits that the text omits must be zero, except in a text with `*`, where they may have any value.
    known |= everything & ~((1 << bits * len(text[2:])) - 1) if "*" not in text else 0
    return number(text.replace("*", "0")), known & everything


def _prefix(text: str, width: int) -> tuple[int, int]:
    """Return the value and the length in bits of the prefix in a text of one of three forms.

    `VALUE/LENGTH`; a decimal number, whose length is `width`; a hexadecimal or binary number, whose length is that of
    its digits before the first `*`, at most `width`.
    """
    value, given, length = text.partition("/")
    if given:
        return number(value), number(length)
    bits = _DIGIT_BITS.get(text[:2].lower())
    if bits is None:
        return number(text), width
    return number(text.replace("*", "0")), min(width, bits * (len(text) - 2 - text.count("*")))


def _match(field: p4i.MatchField, text: str | None) -> p4r.FieldMatch | None:
    """Return the match of a key field; None if every value matches. Raises StfError."""
    match, width, kinds = p4r.FieldMatch(field_id=field.id), field.bitwidth, p4i.MatchField
    try:
        if field.match_type == kinds.EXACT:
            match.exact.value = canonical(number(text or "0"))
        elif text is None:
            return None
        elif field.match_type == kinds.LPM:
            value, length = _prefix(text, width)
            if length == 0:
                return None
            match.lpm.value = canonical(value >> (width - length) << (width - length))
            match.lpm.prefix_len = length
        elif field.match_type == kinds.TERNARY:
            value, mask = _value_and_mask(text, width)
            if mask == 0:
                return None
            match.ternary.value, match.ternary.mask = canonical(value & mask), canonical(mask)
        elif field.match_type == kinds.OPTIONAL:
            value, mask = _value_and_mask(text, width)
            if mask == 0:
                return None
            match.optional.value = canonical(value)
        else:
            low, _, high = text.replace("..", "->").partition("->")
            match.range.low, match.range.high = canonical(number(low)), canonical(number(high or low))
    except ValueError as error:
        raise StfError(f"key {field.name}: {error}") from None
    return match
