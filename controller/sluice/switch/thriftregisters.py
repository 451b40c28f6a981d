"""Access to BMv2's registers over its Thrift server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from thriftpy2.thrift import TException

from sluice.dataplane.units import MICROSECONDS, Units
from sluice.names import Register

from . import bmv2thrift
from .errors import SwitchError, SwitchLost

_MOST_SINGLE = 16
"""The largest number of cells that are read one by one (30-70 us each); more cells are read by one call for the
complete register."""

_TIMEOUT_S = 10.0


class ThriftRegisters:
    """BMv2's registers over one connection.

    Calls run in a thread, one after the other. After an error the next call reconnects.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None
        self._lock = threading.Lock()

    @classmethod
    async def open(cls, address: str) -> ThriftRegisters:
        """Connect to the Thrift server at ``address`` (HOST:PORT). Raises SwitchError if no server answers there."""
        registers = cls(address)
        await registers.read(Register.LEDGER_SYN, [0])
        return registers

    @property
    def units(self) -> Units:
        """The units of the times in the cells."""
        return MICROSECONDS

    def has(self, register: str) -> bool:
        """Return whether the switch's program has a register."""
        return register in set(Register)

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        """Read the cells at ``indices``, or all of them. Raises SwitchError."""
        name = str(register)
        if indices is not None and len(indices) <= _MOST_SINGLE:
            return [await self._call("bm_register_read", name, index) for index in indices]
        cells: list[int] = await self._call("bm_register_read_all", name)
        return cells if indices is None else [cells[index] for index in indices]

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        """Read the cells at the same ``indices`` of several registers. Raises SwitchError."""
        return [await self.read(register, indices) for register in registers]

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        """Read all cells of several registers. Raises SwitchError."""
        return [np.array(await self.read(register), np.uint64) for register in registers]

    async def write(self, register: str, index: int, value: int) -> None:
        """Write one cell. Raises SwitchError."""
        await self.write_cells(register, {index: value})

    async def write_cells(self, register: str, cells: Mapping[int, int]) -> None:
        """Write cells, with one call per cell: Thrift has no call for several cells. Raises SwitchError."""
        await asyncio.to_thread(self._write, str(register), list(cells.items()))

    def _write(self, register: str, cells: Sequence[tuple[int, int]]) -> None:
        for index, value in cells:
            self._blocking("bm_register_write", (register, index, value))

    async def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

    async def _call(self, method: str, *arguments: object) -> Any:
        return await asyncio.to_thread(self._blocking, method, arguments)

    def _blocking(self, method: str, arguments: tuple[object, ...]) -> Any:
        with self._lock:
            try:
                if self._client is None:
                    self._client = bmv2thrift.connect(self._address, "Standard", _TIMEOUT_S)
                return getattr(self._client, method)(0, *arguments)
            except bmv2thrift.interface().InvalidRegisterOperation as error:
                text = f"switch {self._address} (Thrift): {method}{arguments}: refused with code {error.code}"
                raise SwitchError(text) from error
            except (TException, OSError) as error:
                self._drop()
                text = f"switch {self._address} (Thrift): {method}: {error}; is switch.thrift right?"
                raise SwitchLost(text) from error

    def _drop(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._client.close()
            self._client = None
