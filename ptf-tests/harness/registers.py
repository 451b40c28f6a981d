"""Register cells behind one interface: P4Runtime where the target has it, Thrift on BMv2.

BMv2's P4Runtime server answers UNIMPLEMENTED to register reads and writes (p4lang/PI issue 376), hence Thrift.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, Protocol

from finsy import P4Schema
from finsy.proto import p4d, p4r
from sluice.names import REGISTER_SIZES, Register
from thriftpy2.parser.parser import parse_fp
from thriftpy2.protocol import TBinaryProtocol, TMultiplexedProtocol
from thriftpy2.thrift import TClient
from thriftpy2.transport import TBufferedTransport, TSocket

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
        self._ids = {register: client.schema.registers[register].id for register in Register}

    def read(self, cells: Iterable[tuple[Register, int]]) -> list[int]:
        wanted = list(cells)
        if not wanted:
            return []
        entities = self._client.read(_Cell(self._ids[register], index) for register, index in wanted)
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
    """What to read, in the form that Client.read encodes."""

    def __init__(self, register_id: int, index: int) -> None:
        self._entry = p4r.RegisterEntry(register_id=register_id, index=p4r.Index(index=index))

    def encode(self, schema: P4Schema) -> p4r.Entity:
        del schema  # the id was looked up once
        return p4r.Entity(register_entry=self._entry)


def _update(register_id: int, index: p4r.Index | None, value: int) -> p4r.Update:
    data = p4d.P4Data(bitstring=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
    entry = p4r.RegisterEntry(register_id=register_id, index=index, data=data)
    return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry))


# The calls that are used, of BMv2's service "standard".
_IDL = """
namespace py bm_runtime.standard
enum RegisterOperationErrorCode { INVALID_REGISTER_NAME = 1, INVALID_INDEX = 2, ERROR = 3 }
exception InvalidRegisterOperation { 1: RegisterOperationErrorCode code }
service Standard {
  i64 bm_register_read(1: i32 cxt_id, 2: string register_array_name, 3: i32 idx)
    throws (1: InvalidRegisterOperation ouch)
  void bm_register_write(1: i32 cxt_id, 2: string register_array_name, 3: i32 index, 4: i64 value)
    throws (1: InvalidRegisterOperation ouch)
  void bm_register_write_range(1: i32 cxt_id, 2: string register_array_name, 3: i32 start_index,
    4: i32 end_index, 5: i64 value) throws (1: InvalidRegisterOperation ouch)
}
"""
_CONTEXT = 0


class ThriftRegisters:
    """BMv2's runtime interface. Values are signed 64-bit: cells of at most 63 bits."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        service: Any = parse_fp(io.StringIO(_IDL), "bm_runtime_standard_thrift")
        self._socket: Any = TSocket(host, int(port))
        transport: Any = TBufferedTransport(self._socket)
        transport.open()
        protocol: Any = TMultiplexedProtocol(TBinaryProtocol(transport), "standard")
        self._client: Any = TClient(service.Standard, protocol)

    def read(self, cells: Iterable[tuple[Register, int]]) -> list[int]:
        return [self._client.bm_register_read(_CONTEXT, register, index) for register, index in cells]

    def write(self, register: Register, index: int, value: int) -> None:
        self._client.bm_register_write(_CONTEXT, register, index, value)

    def clear(self, register: Register) -> None:
        # Not bm_register_reset: it replaces the cells while packets use them.
        self._client.bm_register_write_range(_CONTEXT, register, 0, REGISTER_SIZES[register], 0)
