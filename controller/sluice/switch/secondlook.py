"""Stage second_look: the open connections of each server, and those among them that ended unseen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sluice.names import SERVERS, Register

from .connections import Slots
from .registers import Registers

STALE = (
    Register.STALE_FIRST,
    Register.STALE_OTHER,
    Register.STALE_THIRD,
    Register.STALE_FOURTH,
    Register.STALE_IDLE,
)
"""Copies for the first server that is looked at, and so on, and for idle ones; a program has two or all. The first
tells what has been written, and is written last."""

_WRAP = 1 << 32


async def read_loads(registers: Registers, servers: Sequence[int]) -> dict[int, int]:
    """Open connections of the given servers as the second look sees them. Raises SwitchError."""
    loads, stale = await registers.columns((Register.LOAD_FIRST, Register.STALE_FIRST), servers)
    return {server: _signed(load - gone) for server, load, gone in zip(servers, loads, stale, strict=True)}


def _signed(value: int) -> int:
    """A difference of two cells that wrap; below zero it is behind the truth, and counts as 0."""
    return value % _WRAP if value % _WRAP < _WRAP // 2 else 0


def count_expired(slots: Slots, kept: NDArray[np.bool_]) -> list[int]:
    """Connections whose time is over though their end was not seen, by server number."""
    over = ~kept & slots.open & (slots.servers < SERVERS)
    return np.bincount(slots.servers[over], minlength=SERVERS).tolist()


async def correct(registers: Registers, servers: Sequence[int], expired: Sequence[int]) -> dict[int, int]:
    """Take connections that ended unseen out of the loads; returns how many, where that changed. Raises SwitchError.

    They are those whose slot another connection has taken, and those that still have theirs and are expired: the loads
    themselves are not read, so that connections that come and go meanwhile do no harm.
    """
    copies = [register for register in STALE if registers.has(register)]
    evicted, known = await registers.columns((Register.LOAD_EVICTED, Register.STALE_FIRST), servers)
    changed: dict[int, int] = {}
    for server, gone, before in zip(servers, evicted, known, strict=True):
        stale = (gone + expired[server]) % _WRAP
        if stale != before:
            for register in reversed(copies):
                await registers.write(register, server, stale)
            changed[server] = stale
    return changed
