"""Access to registers behind one interface: over P4Runtime if the target supports it, over Thrift on BMv2."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from finsy import P4RegisterEntry
from finsy.proto import p4d, p4r
from numpy.typing import NDArray

from sluice.dataplane.units import Units
from sluice.names import Register

from . import cellwire
from .celldata import member_widths, value_of
from .errors import SwitchError
from .session import BATCH, Session
from .targets import BMV2, RegisterAccess
from .thriftregisters import ThriftRegisters

_SLICE = 8192

_CELLS_PER_EXCHANGE = 8192
"""If the requested registers have at most this many cells in total, one exchange reads all of them; otherwise each
register is read in a separate exchange."""

_SET_THRIFT = "on BMv2 set switch.thrift, as in `thrift: 127.0.0.1:9090`"


class Registers(Protocol):
    """Access to the cells of the switch's registers, by the register's full name (Register, TofinoRegister)."""

    @property
    def units(self) -> Units:
        """The units of the times in the cells."""
        ...

    def has(self, register: str) -> bool:
        """Return whether the switch's program has a register."""
        ...

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        """Read the cells at ``indices``, or all of them. Raises SwitchError."""
        ...

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        """Read the cells at the same ``indices`` of several registers, a list each. Raises SwitchError."""
        ...

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        """Read all cells of several registers, an array each. Raises SwitchError."""
        ...

    async def write(self, register: str, index: int, value: int) -> None:
        """Write one cell. Raises SwitchError."""
        ...

    async def write_cells(self, register: str, cells: Mapping[int, int]) -> None:
        """Write cells of a register, given as values by index. Raises SwitchError."""
        ...

    async def close(self) -> None:
        """Close the connections that register access has opened."""
        ...


class P4RuntimeRegisters:
    """Register access by P4Runtime's RegisterEntry. This module decodes the answers itself, because finsy's decoding
    takes many times as long."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._cell_cost = session.target.cell_cost

    @property
    def units(self) -> Units:
        """The units of the times in the cells."""
        return self._session.target.units

    def has(self, register: str) -> bool:
        """Return whether the switch's program has a register."""
        return self._session.pipeline.schema.registers.get(register) is not None

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        """Read the cells at ``indices``, or all of them. Raises SwitchError."""
        size = self._size(register)
        if indices is not None and self._reads_all(len(indices), size):
            (column,) = await self.arrays([register])
            return column[np.array(indices, np.int64)].tolist()
        entries = (
            [P4RegisterEntry(register)]
            if indices is None
            else [P4RegisterEntry(register, index=index) for index in indices]
        )
        cells: dict[int, int] = {}
        for count, entity in enumerate(await self._session.read(entries), 1):
            entry = entity.register_entry
            cells[entry.index.index] = self._value(entry)
            if count % _SLICE == 0:
                await asyncio.sleep(0)  # lets other tasks run in between
        try:
            return [cells[index] for index in (range(size) if indices is None else indices)]
        except KeyError as missing:
            raise self._missing(register, missing.args[0]) from missing

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        """Read the cells at the same ``indices`` of several registers. Raises SwitchError.

        Unless it is faster to read the registers completely, one exchange reads the cells of all registers: for few
        cells, an exchange costs more time than the cells do.
        """
        if self._reads_all(len(indices), min(self._size(register) for register in registers)):
            positions = np.array(indices, np.int64)
            return [column[positions].tolist() for column in await self.arrays(registers)]
        entries = [P4RegisterEntry(register, index=index) for register in registers for index in indices]
        cells = {
            (entry.register_id, entry.index.index): self._value(entry)
            for entry in (entity.register_entry for entity in await self._session.read(entries))
        }
        result: list[list[int]] = []
        for register in registers:
            number = self._number(register)
            try:
                result.append([cells[number, index] for index in indices])
            except KeyError as missing:
                raise self._missing(register, missing.args[0][1]) from missing
        return result

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        """Read all cells of several registers. Raises SwitchError.

        65,536 cells take a few milliseconds; decoded as protobuf messages, they would take some 80 ms.
        """
        if sum(map(self._size, registers)) <= _CELLS_PER_EXCHANGE:
            return await self._exchange(registers)
        answers = await asyncio.gather(*(self._exchange([register]) for register in registers))
        return [column for (column,) in answers]

    async def _exchange(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        """Read all cells of several registers in one exchange; for small registers, an exchange costs more time than
        the cells do."""
        cells = [np.zeros(self._size(register), np.uint64) for register in registers]
        received = [np.zeros(column.size, bool) for column in cells]
        numbers = [self._number(register) for register in registers]
        for answer in await self._session.read_bytes([P4RegisterEntry(register) for register in registers]):
            owners, indices, values = self._decode(answer, numbers)
            for place, column in enumerate(cells):
                is_valid = (owners == place) & (indices < column.size)
                column[indices[is_valid]] = values[is_valid]
                received[place][indices[is_valid]] = True
        for register, is_received in zip(registers, received, strict=True):
            if not is_received.all():
                raise self._missing(register, int(np.argmin(is_received)))
        return cells

    def _decode(
        self, answer: bytes, numbers: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
        try:
            return cellwire.decode(answer, numbers, member_widths(self._session.pipeline.schema))
        except cellwire.OtherShape:
            entries = [entity.register_entry for entity in p4r.ReadResponse.FromString(answer).entities]
            entries = [entry for entry in entries if entry.register_id in numbers]
            return (
                np.array([numbers.index(entry.register_id) for entry in entries], np.int64),
                np.array([entry.index.index for entry in entries], np.int64),
                np.array([self._value(entry) for entry in entries], np.uint64),
            )

    def _value(self, entry: p4r.RegisterEntry) -> int:
        return value_of(entry.data, member_widths(self._session.pipeline.schema).get(entry.register_id, ()))

    def _reads_all(self, count: int, size: int) -> bool:
        """Return whether reading all ``size`` cells takes less time than reading ``count`` single ones."""
        return count * self._cell_cost > size

    def _number(self, register: str) -> int:
        return self._session.pipeline.schema.registers[register].id

    def _size(self, register: str) -> int:
        """Return the register's size in the running program; it differs between targets, and between builds."""
        return self._session.pipeline.schema.registers[register].size

    def _missing(self, register: str, index: int) -> SwitchError:
        return SwitchError(f"switch {self._session.address}: register {register}: no cell {index} in the answer")

    async def write(self, register: str, index: int, value: int) -> None:
        """Write one cell. Raises SwitchError."""
        await self.write_cells(register, {index: value})

    async def write_cells(self, register: str, cells: Mapping[int, int]) -> None:
        """Write cells of a register. Raises SwitchError."""
        number = self._number(register)
        indices = np.fromiter(cells.keys(), np.int64, len(cells))
        values = np.fromiter(cells.values(), np.uint64, len(cells))
        for start in range(0, len(cells), BATCH):
            batch = slice(start, start + BATCH)
            await self._session.write_bytes(cellwire.encode(number, indices[batch], values[batch]))

    async def close(self) -> None:
        """Do nothing: the session owns the connection."""


def cell_update(number: int, index: int, value: int) -> p4r.Update:
    """Return the update that writes one cell of the register with this id."""
    data = p4d.P4Data(bitstring=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
    entry = p4r.RegisterEntry(register_id=number, index=p4r.Index(index=index), data=data)
    return p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry))


async def open_registers(session: Session, thrift: str | None) -> Registers:
    """Open the register access of the session's target. Raises SwitchError, with the remedy, if none is possible.

    If a switch was detected as the embedded switch but does not support registers over P4Runtime, it is BMv2.
    """
    if session.target.registers is RegisterAccess.THRIFT:
        if thrift is None:
            raise SwitchError(f"switch {session.address}: {_SET_THRIFT}")
        return await ThriftRegisters.open(thrift)
    try:
        await P4RuntimeRegisters(session).read(Register.LEDGER_SYN, [0])
    except NotImplementedError as error:
        # The server is simple_switch_grpc: "Register reads are not supported yet" (UNIMPLEMENTED, p4lang/PI issue
        # 376).
        if thrift is None:
            raise SwitchError(
                f"switch {session.address}: no register access over P4Runtime ({error}); {_SET_THRIFT}"
            ) from error
        session.target = BMV2
        return await ThriftRegisters.open(thrift)
    return P4RuntimeRegisters(session)
