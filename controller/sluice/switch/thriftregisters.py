"""Registers of BMv2 over its Thrift server."""

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

_FEW = 16
"""Up to so many cells are read one by one (30-70 us each); more than that in one call."""

_TIMEOUT_S = 10.0


class ThriftRegisters:
    """One connection; calls take turns on it, in a thread, and a broken one is opened again by the next call."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client: Any = None
        self._lock = threading.Lock()

    @classmethod
    async def open(cls, address: str) -> ThriftRegisters:
        """Connect. Raises SwitchError when nobody answers there."""
        registers = cls(address)
        await registers.read(Register.LEDGER_SYN, [0])
        return registers

    @property
    def units(self) -> Units:
        """See registers.Registers."""
        return MICROSECONDS

    def has(self, register: str) -> bool:
        """See registers.Registers."""
        return register in set(Register)

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        """See registers.Registers."""
        name = str(register)
        if indices is not None and len(indices) <= _FEW:
            return [await self._call("bm_register_read", name, index) for index in indices]
        cells: list[int] = await self._call("bm_register_read_all", name)
        return cells if indices is None else [cells[index] for index in indices]

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        """See registers.Registers."""
        return [await self.read(register, indices) for register in registers]

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        """See registers.Registers."""
        return [np.array(await self.read(register), np.uint64) for register in registers]

    async def write(self, register: str, index: int, value: int) -> None:
        """See registers.Registers."""
        await self.write_cells(register, {index: value})

    async def write_cells(self, register: str, cells: Mapping[int, int]) -> None:
        """See registers.Registers. One call a cell: Thrift has no other."""
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
