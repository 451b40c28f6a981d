"""Access to register cells by one interface: over P4Runtime where the target supports registers, over Thrift on BMv2.

BMv2's P4Runtime server answers UNIMPLEMENTED to reads and writes of registers (p4lang/PI issue 376).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from finsy import P4Schema
from finsy.proto import p4d, p4r
from sluice.names import REGISTER_SIZES, Register
from sluice.switch import bmv2thrift
from sluice.switch.celldata import member_widths, value_of

from topo.testbed.p4runtime import RPC_S

from .client import Client

BATCH = 2000
"""Largest number of cells that one request writes."""


class Registers(Protocol):
    """Register cells as unsigned integers; a register is given by its full name (Register, TofinoRegister)."""

    def read(self, cells: Iterable[tuple[str, int]]) -> list[int]:
        """Return the values of the cells, in the order of the cells."""
        ...

    def write(self, register: str, index: int, value: int) -> None:
        """Set one cell."""
        ...

    def write_all(self, cells: Iterable[tuple[str, int, int]]) -> None:
        """Set cells, each given by register, index and value."""
        ...

    def clear(self, *registers: str) -> None:
        """Set every cell of these registers to 0."""
        ...


class P4RuntimeRegisters:
    """Registers over RegisterEntry messages of P4Runtime; an entry without an index means all cells."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._widths = member_widths(client.schema)
        self._ids = {info.preamble.name: info.preamble.id for info in client.schema.p4info.registers}

    def read(self, cells: Iterable[tuple[str, int]]) -> list[int]:
        requested = list(cells)
        if not requested:
            return []
        entities = self._client.find(_Cell(self._ids[register], index) for register, index in requested)
        values = {
            (entry.register_id, entry.index.index): value_of(entry.data, self._widths.get(entry.register_id, ()))
            for entry in (entity.register_entry for entity in entities)
        }
        return [values[self._ids[register], index] for register, index in requested]

    def write(self, register: str, index: int, value: int) -> None:
        self.write_all([(register, index, value)])

    def write_all(self, cells: Iterable[tuple[str, int, int]]) -> None:
        updates = [self._update(self._ids[register], p4r.Index(index=index), value) for register, index, value in cells]
        for begin in range(0, len(updates), BATCH):
            self._client.write(updates[begin : begin + BATCH])

    def clear(self, *registers: str) -> None:
        self._client.write([self._update(self._ids[register], None, 0) for register in registers])

    def _update(self, number: int, index: p4r.Index | None, value: int) -> p4r.Update:
        data = p4d.P4Data()
        if widths := self._widths.get(number):
            for place, width in enumerate(widths):
                member = value >> sum(widths[place + 1 :]) & ((1 << width) - 1)
                data.struct.members.add().bitstring = _shortest(member)
        else:
            data.bitstring = _shortest(value)
        entry = p4r.RegisterEntry(register_id=number, index=index, data=data)
        return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry))


class _Cell:
    """A cell to read, with the method by which Client.find encodes entities."""

    def __init__(self, register_id: int, index: int) -> None:
        self._entry = p4r.RegisterEntry(register_id=register_id, index=p4r.Index(index=index))

    def encode(self, schema: P4Schema) -> p4r.Entity:
        del schema  # the constructor has received the register's id
        return p4r.Entity(register_entry=self._entry)


def _shortest(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


_CONTEXT = 0


class ThriftRegisters:
    """Registers over BMv2's Thrift interface; values are signed 64-bit numbers, so cells have at most 63 bits."""

    def __init__(self, address: str) -> None:
        self._client: Any = bmv2thrift.connect(address, "Standard", RPC_S)

    def read(self, cells: Iterable[tuple[str, int]]) -> list[int]:
        return [self._client.bm_register_read(_CONTEXT, register, index) for register, index in cells]

    def write(self, register: str, index: int, value: int) -> None:
        self._client.bm_register_write(_CONTEXT, register, index, value)

    def write_all(self, cells: Iterable[tuple[str, int, int]]) -> None:
        for register, index, value in cells:
            self.write(register, index, value)

    def clear(self, *registers: str) -> None:
        # bm_register_reset is not used, because it replaces the cells while packets use them.
        for register in registers:
            self._client.bm_register_write_range(_CONTEXT, register, 0, REGISTER_SIZES[Register(register)], 0)
