"""Caps of single connections: what is written."""

from __future__ import annotations

import pytest
from fakeswitch import Memory
from sluice.names import Register
from sluice.resources.sharer import Cap
from sluice.switch import caps


async def test_each_connection_s_cells_carry_its_fingerprint() -> None:
    memory = Memory()
    await caps.write(memory, {7: Cap(0x5A5_5A5A, 20_000, 0), 200_000: Cap(1, 1, (1 << 32) - 1)})
    assert memory.cells[Register.SEND_CAP] == {7: 0x5A5_5A5A << 32 | 20_000, 200_000: 1 << 32 | 1}
    assert memory.cells[Register.RECEIVE_CAP] == {7: 0x5A5_5A5A << 32, 200_000: 1 << 32 | (1 << 32) - 1}


@pytest.mark.parametrize("cap", [-1, 1 << 32])
async def test_a_cap_that_no_cell_holds_is_refused_and_nothing_written(cap: int) -> None:
    memory = Memory()
    with pytest.raises(ValueError, match="a cap of"):
        await caps.write(memory, {1: Cap(1, 1, 1), 2: Cap(1, 1, cap)})
    assert not any(memory.cells.values())
