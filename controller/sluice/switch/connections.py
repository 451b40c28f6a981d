"""Stage connections: the lifetimes of slots in the connection table, and the slots' contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from finsy import P4TableAction, P4TableEntry
from numpy.typing import NDArray

from sluice.config.model import ConnectionsConfig
from sluice.dataplane.pins import LIFETIMES
from sluice.dataplane.table import FINGERPRINT_SHIFT, STATE_BITS, STATE_SHIFT, WRAP
from sluice.dataplane.units import Units
from sluice.names import Action, PinState, Register, Table

from .registers import Registers
from .state import State

_STAMP, _HALF = WRAP - 1, WRAP // 2
_STATE = (1 << STATE_BITS) - 1
_SERVER_BITS = 16


def timers(state: State) -> Iterator[P4TableEntry]:
    """Yield the default action of the keyless table TIMERS, which sets the lifetimes."""
    times, ticks = state.plan.config.connections, state.units.ticks
    yield P4TableEntry(
        Table.TIMERS,
        is_default_action=True,
        action=P4TableAction(
            Action.SET_TIMERS,
            idle_time=ticks(times.idle_s if state.idle_s is None else state.idle_s),
            pending_time=ticks(times.pending_s),
            answered_time=ticks(times.answered_s),
            half_closed_time=ticks(times.half_closed_s),
            linger_time=ticks(times.linger_s),
        ),
    )


def lifetime_s(state: PinState, times: ConnectionsConfig, idle_s: float) -> float:
    """Return for how many seconds a slot remains after the last packet that renewed it (docs/reference/pipeline.md,
    "The life of a pin")."""
    by_name = {
        "pending": times.pending_s,
        "answered": times.answered_s,
        "idle": idle_s,
        "half_closed": times.half_closed_s,
        "linger": times.linger_s,
    }
    return next(by_name[name] for name, states in LIFETIMES.items() if state in states)


def idle_for(occupancy: float, times: ConnectionsConfig) -> float:
    """Return the idle time, in seconds, for a connection table of which a share from 0 to 1 is occupied.

    The idle time is ``idle_s`` (RFC 5382, REQ-5) up to a share of a quarter, and ``idle_least_s`` from a half on;
    between these shares it falls geometrically. Each connection has only two possible slots, and may find both occupied
    long before the table is full.
    """
    pressure = min(1.0, max(0.0, (occupancy - 0.25) / 0.25))
    return times.idle_s * (min(times.idle_least_s, times.idle_s) / times.idle_s) ** pressure


@dataclass(frozen=True, slots=True)
class Slots:
    """All slots of the connection table that have ever been used: one element per slot in each column."""

    stamps: NDArray[np.int64]
    servers: NDArray[np.int64]
    states: NDArray[np.int64]
    """Values of PinState."""
    identities: NDArray[np.int64]
    """A number per slot that distinguishes its connection from others, by `identity_of`."""
    places: NDArray[np.int64]
    """Each slot's index; the slots of way 2 (the second hash) follow those of way 1."""
    size: int
    """The number of all slots, unused ones included."""

    @property
    def newest(self) -> int | None:
        """The latest stamp, in ticks modulo 2^32; None without any slot."""
        if not self.stamps.size:
            return None
        ahead = (self.stamps - self.stamps[0]) & _STAMP
        return int(self.stamps[0] + ahead[ahead < _HALF].max()) & _STAMP

    def unexpired(self, times: ConnectionsConfig, idle_s: float, units: Units, now: int) -> NDArray[np.bool_]:
        """Return which slots have not expired at ``now``, a time in the table's ticks.

        On targets whose keys do not contain the connection's state, the switch itself has set each stamp back by the
        difference between the idle time and the state's lifetime; so all slots there expire after ``idle_s``.
        """
        seconds = {state: idle_s if units.pin_states else lifetime_s(state, times, idle_s) for state in PinState}
        lifetimes = np.array([units.ticks(seconds[state]) for state in PinState], np.int64)
        return (now - self.stamps) & _STAMP <= lifetimes[np.minimum(self.states, len(lifetimes) - 1)]

    @property
    def open(self) -> NDArray[np.bool_]:
        """Whether each slot's connection counts for its server's load."""
        return self.states < PinState.SERVER_CLOSING


def identity_of(keys: NDArray[np.uint64], servers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a number per slot that distinguishes its connection from others: its fingerprint and its server."""
    return keys >> np.uint64(FINGERPRINT_SHIFT) << np.uint64(_SERVER_BITS) | servers


async def read_slots(registers: Registers) -> Slots:
    """Read the complete connection table. Call this function at most once a minute, because each register has some 10^5
    cells. Raises SwitchError."""
    pairs: list[tuple[str, str]] = [
        (Register.PIN_KEY_1, Register.PIN_KEY_2),
        (Register.PIN_SERVER_1, Register.PIN_SERVER_2),
    ]
    if registers.units.pin_states:
        pairs.append(registers.units.pin_states)
    keys, servers, *separate_states = [np.concatenate(await registers.arrays(pair)) for pair in pairs]
    states = separate_states[0] if separate_states else keys >> np.uint64(STATE_SHIFT) & np.uint64(_STATE)
    used = np.flatnonzero(keys)
    return Slots(
        identities=identity_of(keys[used], servers[used]).astype(np.int64),
        places=used,
        stamps=(keys[used] & np.uint64(_STAMP)).astype(np.int64),
        servers=servers[used].astype(np.int64),
        states=states[used].astype(np.int64),
        size=keys.size,
    )


@dataclass(frozen=True, slots=True)
class Pins:
    """Counts of pinned connections (connections with an entry in the connection table)."""

    by_server: dict[int, int]
    """Open connections by server number: neither a FIN of the server nor an RST has passed the switch."""
    by_state: dict[PinState, int]
    pinned: frozenset[int] = frozenset()
    """Numbers of servers with any connection whose slot has not expired, closed connections included."""


def pins_of(slots: Slots, unexpired: NDArray[np.bool_]) -> Pins:
    """Count the connections whose slots have not expired."""
    by_state = Counter(slots.states[unexpired].tolist())
    return Pins(
        by_server=dict(Counter(slots.servers[unexpired & slots.open].tolist())),
        by_state={state: by_state[state] for state in PinState if state in by_state},
        pinned=frozenset(slots.servers[unexpired].tolist()),
    )
