"""A register cell as one number: of a struct, as Tofino's pairs are, its members' bits one behind the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from finsy import P4Schema
from finsy.proto import p4d


@lru_cache(maxsize=2)
def member_widths(schema: P4Schema) -> Mapping[int, Sequence[int]]:
    """Bits of each member, by the id of each register whose cells are structs."""
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
    """A cell's value. ``widths``: of its members, empty where it is none of a struct."""
    if not data.HasField("struct"):
        return int.from_bytes(data.bitstring, "big")
    value = 0
    for width, member in zip(widths, data.struct.members, strict=True):
        value = value << width | int.from_bytes(member.bitstring, "big")
    return value
