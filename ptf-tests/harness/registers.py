"""Register cells behind one interface: P4Runtime where the target has it, Thrift on BMv2.

BMv2's P4Runtime server answers UNIMPLEMENTED to register reads and writes (p4lang/PI issue 376), hence Thrift.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from finsy import P4Schema
from finsy.proto import p4d, p4r
from sluice.names import REGISTER_SIZES, Register
from sluice.switch import bmv2thrift

from tools.target.client import RPC_S

from .client import Client


class Registers(Protocol):
    """Cells of a register are unsigned integers."""

    def read(self, cells: Iterable[tuple[Register, int]]) -> list[int]:
        """Values of the cells, in their order."""
        ...

    def write(self, register: Register, index: int, value: int) -> None:
        """Set one cell."""
        ...

    def clear(self, register: Register) -> None:
        """Set every cell to 0."""
        ...


class P4RuntimeRegisters:
    """RegisterEntry of P4Runtime; an entry without an index means every cell."""

    def __init__(self, client: Client) -> None:
        self._client = client
        found = ((register, client.schema.registers.get(register)) for register in Register)
        self._ids = {register: there.id for register, there in found if there is not None}

    def read(self, cells: Iterable[tuple[Register, int]]) -> list[int]:
        wanted = list(cells)
        if not wanted:
            return []
        entities = self._client.find(_Cell(self._ids[register], index) for register, index in wanted)
        values = {
            (entity.register_entry.register_id, entity.register_entry.index.index): int.from_bytes(
                entity.register_entry.data.bitstring, "big"
            )
            for entity in entities
        }
        return [values[self._ids[register], index] for register, index in wanted]

    def write(self, register: Register, index: int, value: int) -> None:
        self._client.write([_update(self._ids[register], p4r.Index(index=index), value)])

    def clear(self, register: Register) -> None:
        self._client.write([_update(self._ids[register], None, 0)])


class _Cell:
    """What to read, in the form that Client.find encodes."""

    def __init__(self, register_id: int, index: int) -> None:
        self._entry = p4r.RegisterEntry(register_id=register_id, index=p4r.Index(index=index))

    def encode(self, schema: P4Schema) -> p4r.Entity:
        del schema  # the id was looked up once
        return p4r.Entity(register_entry=self._entry)


def _update(register_id: int, index: p4r.Index | None, value: int) -> p4r.Update:
    data = p4d.P4Data(bitstring=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
    entry = p4r.RegisterEntry(register_id=register_id, index=index, data=data)
    return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry))


_CONTEXT = 0


class ThriftRegisters:
    """BMv2's runtime interface. Values are signed 64-bit: cells of at most 63 bits."""

    def __init__(self, address: str) -> None:
        self._client: Any = bmv2thrift.connect(address, "Standard", RPC_S)

    def read(self, cells: Iterable[tuple[Register, int]]) -> list[int]:
        return [self._client.bm_register_read(_CONTEXT, register, index) for register, index in cells]

    def write(self, register: Register, index: int, value: int) -> None:
        self._client.bm_register_write(_CONTEXT, register, index, value)

    def clear(self, register: Register) -> None:
        # Not bm_register_reset: it replaces the cells while packets use them.
        self._client.bm_register_write_range(_CONTEXT, register, 0, REGISTER_SIZES[register], 0)
