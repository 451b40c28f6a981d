"""Stage second_look, which compares servers for a new connection: each server's number of open connections, and a
correction for connections whose end the switch did not see."""

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
"""Registers with copies of the correction. For a new connection the switch compares up to four servers, each by its own
copy, in this order; idle servers have the last copy.

A program has either the first two registers or all of them. The first register is written last, because the module
reads it back to learn which correction was written completely.
"""

_WRAP = 1 << 32


async def read_loads(registers: Registers, servers: Sequence[int]) -> dict[int, int]:
    """Read the open connections of the given servers, as the switch counts them for comparisons. Raises SwitchError."""
    loads, stale = await registers.columns((Register.LOAD_FIRST, Register.STALE_FIRST), servers)
    return {
        server: _signed(load - stale_count) for server, load, stale_count in zip(servers, loads, stale, strict=True)
    }


def _signed(value: int) -> int:
    """Return a difference of two cells that wrap at 2^32. A negative difference is a momentary state, and counts as
    0."""
    return value % _WRAP if value % _WRAP < _WRAP // 2 else 0


def count_expired(slots: Slots, unexpired: NDArray[np.bool_]) -> list[int]:
    """Return, for each server, the number of open connections whose slots have expired without a FIN or RST."""
    expired = ~unexpired & slots.open & (slots.servers < SERVERS)
    return np.bincount(slots.servers[expired], minlength=SERVERS).tolist()


async def correct(registers: Registers, servers: Sequence[int], expired: Sequence[int]) -> dict[int, int]:
    """Correct the loads by the numbers of connections whose end the switch did not see. Returns the corrections that
    have changed, by server number.

    Those connections either lost their slot to another connection or have an expired slot; ``expired`` contains the
    numbers of the latter, from ``count_expired``. The loads themselves are
    neither read nor written, so connections that begin or end in the meantime are counted correctly. Raises
    SwitchError.
    """
    copies = [register for register in STALE if registers.has(register)]
    evicted, written = await registers.columns((Register.LOAD_EVICTED, Register.STALE_FIRST), servers)
    changed: dict[int, int] = {}
    for server, evictions, previous in zip(servers, evicted, written, strict=True):
        stale = (evictions + expired[server]) % _WRAP
        if stale != previous:
            for register in reversed(copies):
                await registers.write(register, server, stale)
            changed[server] = stale
    return changed
