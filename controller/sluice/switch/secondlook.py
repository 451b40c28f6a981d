"""Stage second_look: the open connections of each server, and those among them that ended unseen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sluice.names import SERVERS, PinState, Register

from .connections import newest
from .registers import Registers
from .switchclock import SwitchClock

_WRAP = 1 << 32


async def read_loads(registers: Registers, servers: Sequence[int]) -> dict[int, int]:
    """Open connections of the given servers as the second look sees them. Raises SwitchError."""
    loads, stale = await registers.columns((Register.LOAD_FIRST, Register.STALE_FIRST), servers)
    return {server: _signed(load - gone) for server, load, gone in zip(servers, loads, stale, strict=True)}


def _signed(value: int) -> int:
    """A difference of two cells that wrap; below zero it is behind the truth, and counts as 0."""
    return value % _WRAP if value % _WRAP < _WRAP // 2 else 0


async def count_expired(registers: Registers, idle_s: float, clock: SwitchClock, now_s: float) -> list[int]:
    """Connections whose time is over though no FIN or RST came, by server number. Reads the whole connection table.

    ``now_s`` is the controller's time, in seconds.
    """
    expired, ticks = np.zeros(SERVERS, np.int64), registers.units.ticks(idle_s)
    ways = (
        (Register.PIN_KEY_1, Register.PIN_SERVER_1, Register.PIN_STATE_1),
        (Register.PIN_KEY_2, Register.PIN_SERVER_2, Register.PIN_STATE_2),
    )
    columns = [await registers.arrays(way) for way in ways]
    stamps = [(keys & np.uint64(_WRAP - 1)).astype(np.int64) for keys, _, _ in columns]
    used = np.concatenate([stamp[keys > 0] for stamp, (keys, _, _) in zip(stamps, columns, strict=True)])
    if used.size == 0:
        return expired.tolist()
    now = clock.at(now_s, newest(used))
    for stamp, (keys, servers, states) in zip(stamps, columns, strict=True):
        over = (keys > 0) & ((now - stamp) % _WRAP > ticks) & (states != PinState.CLOSING) & (servers < SERVERS)
        expired += np.bincount(servers[over].astype(np.int64), minlength=SERVERS)
    return expired.tolist()


async def correct(
    registers: Registers, servers: Sequence[int], idle_s: float, clock: SwitchClock, now_s: float
) -> dict[int, int]:
    """Take connections that ended unseen out of the loads; returns how many, where that changed. Raises SwitchError.

    They are those whose slot another connection has taken, and those that still have theirs and are expired: the loads
    themselves are not read, so that connections that come and go meanwhile do no harm.
    """
    expired = await count_expired(registers, idle_s, clock, now_s)
    evicted, known = await registers.columns((Register.LOAD_EVICTED, Register.STALE_FIRST), servers)
    changed: dict[int, int] = {}
    for server, gone, before in zip(servers, evicted, known, strict=True):
        stale = (gone + expired[server]) % _WRAP
        if stale != before:
            await registers.write(Register.STALE_FIRST, server, stale)
            await registers.write(Register.STALE_OTHER, server, stale)
            changed[server] = stale
    return changed
