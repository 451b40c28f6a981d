"""Stage connections: the timers, and what the connection table holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from finsy import P4TableAction, P4TableEntry

from ..names import TICK_US, Action, PinState, Register, Table
from .registers import Registers
from .state import State

_STAMP = (1 << 32) - 1
_HALF = 1 << 31


def ticks(seconds: float) -> int:
    """A time in the switch's ticks, rounded up."""
    return math.ceil(seconds * 1_000_000 / TICK_US)


def timers(state: State) -> Iterator[P4TableEntry]:
    """The default action of the keyless table."""
    times = state.plan.config.connections
    yield P4TableEntry(
        Table.TIMERS,
        is_default_action=True,
        action=P4TableAction(
            Action.SET_TIMERS,
            idle_time=ticks(times.idle_s),
            pending_time=ticks(times.pending_s),
            answered_time=ticks(times.answered_s),
            linger_time=ticks(times.linger_s),
        ),
    )


@dataclass(frozen=True, slots=True)
class Pins:
    """Connections that are pinned."""

    by_server: dict[int, int]
    """Open ones, by server number: a FIN or RST has not been seen."""
    by_state: dict[PinState, int]
    held: frozenset[int] = frozenset()
    """Servers with any connection whose slot is not free yet, closing ones included."""


async def read_pins(registers: Registers, idle_s: float) -> Pins:
    """Count the live connections. Reads the whole table: some 10^5 cells a register, once a minute at most.

    The switch's clock is taken from the newest stamp, so that an idle table seems livelier than it is, never
    less.
    """
    keys = await registers.read(Register.PIN_KEY_1) + await registers.read(Register.PIN_KEY_2)
    servers = await registers.read(Register.PIN_SERVER_1) + await registers.read(Register.PIN_SERVER_2)
    states = await registers.read(Register.PIN_STATE_1) + await registers.read(Register.PIN_STATE_2)
    used = [(key & _STAMP, server, state) for key, server, state in zip(keys, servers, states, strict=True) if key]
    if not used:
        return Pins({}, {})
    now = used[0][0]
    for stamp, _, _ in used:
        if 0 < (stamp - now) & _STAMP < _HALF:
            now = stamp
    idle = ticks(idle_s)
    live = [(server, state) for stamp, server, state in used if (now - stamp) & _STAMP <= idle]
    names = {int(state) for state in PinState}
    return Pins(
        by_server=dict(Counter(server for server, state in live if state != PinState.CLOSING)),
        by_state=dict(Counter(PinState(state) for _, state in live if state in names)),
        held=frozenset(server for server, _ in live),
    )
