"""What identifies a table entry, in a form in which equal keys are equal whoever wrote them."""

from __future__ import annotations

from finsy.proto import p4r

Key = tuple[int, bool, tuple[tuple[int, bytes, int], ...]]


def exactly(table: int, *numbers: int) -> Key:
    """The key of the entry that matches these numbers, in a table (by its id) whose fields are all matched exactly."""
    fields = tuple((at, number.to_bytes(4, "big").lstrip(b"\0"), -1) for at, number in enumerate(numbers, 1))
    return (table, False, fields)


def key_of(entry: p4r.TableEntry) -> Key:
    """Table, whether it is the default, and the match without leading zeros."""
    fields = [
        (m.field_id, m.exact.value.lstrip(b"\0"), -1)
        if m.HasField("exact")
        else (m.field_id, m.lpm.value.lstrip(b"\0"), m.lpm.prefix_len)
        for m in entry.match
    ]
    return (entry.table_id, entry.is_default_action, tuple(sorted(fields)))
