"""Stage connections: the timers, and what the connection table holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from finsy import P4TableAction, P4TableEntry
from numpy.typing import NDArray

from sluice.names import Action, PinState, Register, Table

from .registers import Registers
from .state import State

_STAMP = (1 << 32) - 1
_HALF = 1 << 31


def timers(state: State) -> Iterator[P4TableEntry]:
    """The default action of the keyless table."""
    times, ticks = state.plan.config.connections, state.units.ticks
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


def newest(stamps: NDArray[np.int64]) -> int:
    """The latest of stamps that wrap: what the switch's clock is taken from."""
    ahead = (stamps - stamps[0]) & _STAMP
    return int(stamps[0] + ahead[ahead < _HALF].max())


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
    keys, servers, states = [
        np.concatenate(await registers.arrays(ways))
        for ways in (
            (Register.PIN_KEY_1, Register.PIN_KEY_2),
            (Register.PIN_SERVER_1, Register.PIN_SERVER_2),
            (Register.PIN_STATE_1, Register.PIN_STATE_2),
        )
    ]
    used = np.flatnonzero(keys)
    if used.size == 0:
        return Pins({}, {})
    stamps = (keys[used] & np.uint64(_STAMP)).astype(np.int64)
    live = used[(newest(stamps) - stamps) & _STAMP <= registers.units.ticks(idle_s)]
    by_server = Counter(servers[live[states[live] != PinState.CLOSING]].tolist())
    by_state = Counter(states[live].tolist())
    return Pins(
        by_server=dict(by_server),
        by_state={state: by_state[state] for state in PinState if state in by_state},
        held=frozenset(servers[live].tolist()),
    )
