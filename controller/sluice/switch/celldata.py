"""Converts register cells to numbers. Paired cells on Tofino are structs: the members' bits are concatenated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from finsy import P4Schema
from finsy.proto import p4d


@lru_cache(maxsize=2)
def member_widths(schema: P4Schema) -> Mapping[int, Sequence[int]]:
    """Return the width in bits of each struct member, by the id of each register whose cells are structs."""
    info = schema.p4info
    return {
        register.preamble.id: [
            member.type_spec.bitstring.bit.bitwidth
            for member in info.type_info.structs[register.type_spec.struct.name].members
        ]
        for register in info.registers
        if register.type_spec.HasField("struct")
    }


def value_of(data: p4d.P4Data, widths: Sequence[int]) -> int:
    """Return a cell's value. ``widths``: bits of each member; empty if the cell is not a struct."""
    if not data.HasField("struct"):
        return int.from_bytes(data.bitstring, "big")
    value = 0
    for width, member in zip(widths, data.struct.members, strict=True):
        value = value << width | int.from_bytes(member.bitstring, "big")
    return value
