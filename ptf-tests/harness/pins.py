"""Where a program keeps its pins: the cells of a slot, read and written by one interface on every target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from finsy import P4Schema
from sluice.dataplane.table import STAMP_BITS, STATE_BITS
from sluice.names import PinState, Register, TofinoRegister

from .registers import Registers
from .slots import Tuple5

WAYS = (
    (Register.PIN_KEY_1, Register.PIN_SERVER_1, TofinoRegister.PIN_STATE_1),
    (Register.PIN_KEY_2, Register.PIN_SERVER_2, TofinoRegister.PIN_STATE_2),
)
_WORD = 1 << 32
COARSE = {
    PinState.REOPENING: PinState.PENDING,
    PinState.CLIENT_CLOSING: PinState.CLOSED,
    PinState.SERVER_CLOSING: PinState.CLOSED,
    PinState.CLIENT_RESET: PinState.CLOSED,
    PinState.RESET: PinState.CLOSED,
}
"""The states that Tofino has instead (p4src/tna/externs/steps.p4): each FIN or RST closes, a SYN starts again."""


@dataclass(frozen=True)
class Pin:
    """A connection's slot."""

    way: int
    server: int
    state: PinState
    stamp: int
    """Time of the last packet that counted, in ticks; on Tofino the time at which the slot expires, less the idle time.
    """


class PinTable(Protocol):
    """The connection table's cells."""

    def find(self, key: Tuple5) -> list[Pin]:
        """Return where the table holds a connection: in way 1, way 2, both or neither."""
        ...

    def put(self, pins: Iterable[tuple[Tuple5, Pin]]) -> None:
        """Write the slots of connections."""
        ...

    def free(self, way: int, slot: int) -> None:
        """Free a slot by a zeroed key, which is older than any time."""
        ...

    def stored(self, state: PinState) -> PinState:
        """Return the state that the table stores for this state."""
        ...


class KeyedPins:
    """v1model's pins: the key has fingerprint, state and stamp."""

    def __init__(self, registers: Registers) -> None:
        self._registers = registers

    def find(self, key: Tuple5) -> list[Pin]:
        """Return where the table holds a connection."""
        slots = (key.slot_1, key.slot_2)
        values = self._registers.read((cell, slot) for way, slot in zip(WAYS, slots, strict=True) for cell in way[:2])
        pins: list[Pin] = []
        for way, (cell, server) in enumerate((values[:2], values[2:]), start=1):
            rest, stamp = divmod(cell, 1 << STAMP_BITS)
            fingerprint, state = divmod(rest, 1 << STATE_BITS)
            if fingerprint == key.fingerprint:
                pins.append(Pin(way, server, PinState(state), stamp))
        return pins

    def put(self, pins: Iterable[tuple[Tuple5, Pin]]) -> None:
        """Write the slots of connections."""
        self._registers.write_all(cell for key, pin in pins for cell in self._cells(key, pin))

    @staticmethod
    def _cells(key: Tuple5, pin: Pin) -> Iterator[tuple[str, int, int]]:
        cell, server, _ = WAYS[pin.way - 1]
        slot = (key.slot_1, key.slot_2)[pin.way - 1]
        yield cell, slot, (key.fingerprint << STATE_BITS | pin.state) << STAMP_BITS | pin.stamp
        yield server, slot, pin.server

    def free(self, way: int, slot: int) -> None:
        """Free a slot."""
        self._registers.write(WAYS[way - 1][0], slot, 0)

    def stored(self, state: PinState) -> PinState:
        """Return the same state: v1model stores every state."""
        return state


class SplitPins:
    """Tofino's pins: the key is the 32-bit fingerprint and the stamp; states have a register of their own."""

    def __init__(self, registers: Registers, slots: int) -> None:
        self._registers = registers
        self._slots = slots

    def _place(self, key: Tuple5, way: int) -> int:
        return (key.slot_1, key.slot_2)[way - 1] % self._slots

    def find(self, key: Tuple5) -> list[Pin]:
        """Return where the table holds a connection."""
        cells = [(cell, self._place(key, way)) for way in (1, 2) for cell in WAYS[way - 1]]
        values = self._registers.read(cells)
        pins: list[Pin] = []
        for way, (cell, server, state) in enumerate((values[:3], values[3:]), start=1):
            fingerprint, stamp = divmod(cell, _WORD)
            if fingerprint == key.full_fingerprint:
                pins.append(Pin(way, server, PinState(state), stamp))
        return pins

    def put(self, pins: Iterable[tuple[Tuple5, Pin]]) -> None:
        """Write the slots of connections."""
        self._registers.write_all(cell for key, pin in pins for cell in self._cells(key, pin))

    def _cells(self, key: Tuple5, pin: Pin) -> Iterator[tuple[str, int, int]]:
        slot = self._place(key, pin.way)
        values = (key.full_fingerprint * _WORD | pin.stamp, pin.server, self.stored(pin.state))
        for cell, value in zip(WAYS[pin.way - 1], values, strict=True):
            yield cell, slot, value

    def free(self, way: int, slot: int) -> None:
        """Free a slot."""
        self._registers.write(WAYS[way - 1][0], slot % self._slots, 0)

    def stored(self, state: PinState) -> PinState:
        """Return the coarser state that Tofino stores."""
        return COARSE.get(state, state)


def pin_table(schema: P4Schema, registers: Registers) -> PinTable:
    """Return the interface to the cells that a program has."""
    if schema.registers.get(TofinoRegister.PIN_STATE_1) is None:
        return KeyedPins(registers)
    return SplitPins(registers, schema.registers[Register.PIN_KEY_1].size)
