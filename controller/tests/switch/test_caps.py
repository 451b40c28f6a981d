"""Tests of the register writes for caps of single connections."""

from __future__ import annotations

import numpy as np
import pytest
from fakeswitch import Memory
from sluice.names import Register
from sluice.resources.sharer import Caps
from sluice.switch import caps


def of(*rows: tuple[int, int, int]) -> Caps:
    """Return caps from rows of connection number, fingerprint and bytes."""
    return Caps(*np.array(rows, np.int64).reshape(-1, 3).T)


async def test_each_connection_s_cell_carries_its_fingerprint() -> None:
    memory = Memory()
    await caps.write(memory, Register.SEND_CAP, of((7, 0x5A5_5A5A, 20_000), (200_000, 1, 0)))
    await caps.write(memory, Register.RECEIVE_CAP, of((200_000, 1, (1 << 32) - 1)))
    assert memory.cells[Register.SEND_CAP] == {7: 0x5A5_5A5A << 32 | 20_000, 200_000: 1 << 32}
    assert memory.cells[Register.RECEIVE_CAP] == {200_000: 1 << 32 | (1 << 32) - 1}


@pytest.mark.parametrize("cap", [-1, 1 << 32])
async def test_a_cap_that_no_cell_holds_is_refused_and_nothing_written(cap: int) -> None:
    memory = Memory()
    with pytest.raises(ValueError, match=f"a cap of {cap} bytes"):
        await caps.write(memory, Register.SEND_CAP, of((1, 1, 1), (2, 1, cap)))
    assert not any(memory.cells.values())
