"""The key of a table entry, in a canonical form: keys of the same entry are equal, also if another controller wrote the
entry."""

from __future__ import annotations

from finsy.proto import p4r

Key = tuple[int, bool, tuple[tuple[int, bytes, int], ...]]


def exact_key(table: int, *numbers: int) -> Key:
    """Return the key of the entry that matches these numbers in a table (given by its id) with only exact matches."""
    fields = tuple(
        (field_id, number.to_bytes(4, "big").lstrip(b"\0"), -1) for field_id, number in enumerate(numbers, 1)
    )
    return (table, False, fields)


def key_of(entry: p4r.TableEntry) -> Key:
    """Return an entry's key: the table id, whether it is the default entry, and the match fields without leading
    zeros."""
    fields = [
        (m.field_id, m.exact.value.lstrip(b"\0"), -1)
        if m.HasField("exact")
        else (m.field_id, m.lpm.value.lstrip(b"\0"), m.lpm.prefix_len)
        for m in entry.match
    ]
    return (entry.table_id, entry.is_default_action, tuple(sorted(fields)))
