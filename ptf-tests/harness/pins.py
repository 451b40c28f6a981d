"""Reading and writing of pins (connections' entries in the connection table) by one interface on every target."""

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
"""States that Tofino stores in place of others (p4src/tna/externs/steps.p4).

On Tofino each FIN or RST makes a connection closed, and a SYN makes it pending.
"""


@dataclass(frozen=True)
class Pin:
    """A connection's pin: its server and state, and the way (1 or 2) by whose hash its slot was selected."""

    way: int
    server: int
    state: PinState
    stamp: int
    """Time in ticks of the last packet that renewed the pin; on Tofino, the time of expiry minus the idle timeout."""


class PinTable(Protocol):
    """The cells of the connection table."""

    def find(self, key: Tuple5) -> list[Pin]:
        """Return the pins of a connection: in way 1 or way 2 (the slots of its two hashes), in both or in none."""
        ...

    def put(self, pins: Iterable[tuple[Tuple5, Pin]]) -> None:
        """Write pins of connections, each into the slot of its way."""
        ...

    def free(self, way: int, slot: int) -> None:
        """Free a slot: set its key to 0; the switch always regards a stamp of 0 as expired."""
        ...

    def stored(self, state: PinState) -> PinState:
        """Return the state that the table stores in place of this state."""
        ...


class KeyedPins:
    """Pins on v1model: a slot's key consists of fingerprint, state and stamp."""

    def __init__(self, registers: Registers) -> None:
        self._registers = registers

    def find(self, key: Tuple5) -> list[Pin]:
        """Return the pins of a connection."""
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
        """Write pins of connections, each into the slot of its way."""
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
        """Return the given state, because v1model stores every state."""
        return state


class SplitPins:
    """Pins on Tofino: a slot's key consists of a 32-bit fingerprint and the stamp; states have their own register."""

    def __init__(self, registers: Registers, slots: int) -> None:
        self._registers = registers
        self._slots = slots

    def _place(self, key: Tuple5, way: int) -> int:
        return (key.slot_1, key.slot_2)[way - 1] % self._slots

    def find(self, key: Tuple5) -> list[Pin]:
        """Return the pins of a connection."""
        cells = [(cell, self._place(key, way)) for way in (1, 2) for cell in WAYS[way - 1]]
        values = self._registers.read(cells)
        pins: list[Pin] = []
        for way, (cell, server, state) in enumerate((values[:3], values[3:]), start=1):
            fingerprint, stamp = divmod(cell, _WORD)
            if fingerprint == key.full_fingerprint:
                pins.append(Pin(way, server, PinState(state), stamp))
        return pins

    def put(self, pins: Iterable[tuple[Tuple5, Pin]]) -> None:
        """Write pins of connections, each into the slot of its way."""
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
    """Return the interface that matches the program's registers."""
    if schema.registers.get(TofinoRegister.PIN_STATE_1) is None:
        return KeyedPins(registers)
    return SplitPins(registers, schema.registers[Register.PIN_KEY_1].size)
