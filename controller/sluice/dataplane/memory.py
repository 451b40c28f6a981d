"""Registers in memory, with the interface of a switch's registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sluice.names import REGISTER_SIZES, Register

from .units import MICROSECONDS


class Memory:
    """Cells of every register, zero at first. Implements sluice.switch.registers.Registers."""

    units = MICROSECONDS

    def __init__(self) -> None:
        self.cells: dict[Register, list[int]] = {register: [] for register in Register}

    def has(self, register: str) -> bool:
        """Return whether the model has a register."""
        return register in set(Register)

    def of(self, register: str) -> list[int]:
        """Return a register's cells, which callers may change in place. The first call allocates them."""
        cells = self.cells[Register(register)]
        if not cells:
            cells.extend([0] * REGISTER_SIZES[Register(register)])
        return cells

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        """Read the cells at ``indices``, or all of them."""
        cells = self.of(register)
        return list(cells) if indices is None else [cells[index] for index in indices]

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        """Read the cells at the same ``indices`` of several registers."""
        return [await self.read(register, indices) for register in registers]

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        """Read all cells of several registers."""
        return [np.array(self.of(register), np.uint64) for register in registers]

    async def write(self, register: str, index: int, value: int) -> None:
        """Write one cell."""
        self.of(register)[index] = value

    async def write_cells(self, register: str, cells: Mapping[int, int]) -> None:
        """Write cells of a register, given as values by index."""
        for index, value in cells.items():
            self.of(register)[index] = value

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""
