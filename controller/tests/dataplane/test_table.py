"""Tests of the model of the connection table: timeouts of hours, and states that packet tests cannot observe."""

from __future__ import annotations

import pytest
from sluice.addresses import from_text
from sluice.dataplane.connection import Connection
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import CLOSED, LIFETIMES, Event, Pin, is_open
from sluice.dataplane.table import ConnectionTable
from sluice.names import TICK_BASE, PinState, Register

PLACE = Connection(from_text("10.0.1.7").packed, 40000, from_text("10.0.0.100").packed, 80).place
SERVER, OTHER = 1, 2
NOW = TICK_BASE + 100_000
TIMES = {state: 100 * (1 + state) for state in PinState}


def pinned(state: PinState, age: int = 1) -> tuple[Memory, ConnectionTable]:
    """Return a table with a connection to SERVER in state `state`, whose time stamp is `age` ticks before NOW."""
    memory = Memory()
    memory.of(Register.PIN_KEY_1)[PLACE.slot_1] = PLACE.fingerprint << 36 | state << 32 | NOW - age
    memory.of(Register.PIN_SERVER_1)[PLACE.slot_1] = SERVER
    return memory, ConnectionTable(memory, TIMES)


@pytest.mark.parametrize("state", PinState)
def test_a_slot_is_kept_for_the_time_of_its_state(state: PinState) -> None:
    for late in (0, 1):
        memory, table = pinned(state, TIMES[state] + late)
        slot = table.syn(NOW, PLACE)
        if late or state >= CLOSED:  # a SYN replaces a closed or reset connection at once
            assert slot == 1
            table.claim(NOW, PLACE, 1, OTHER)
            assert memory.of(Register.PIN_SERVER_1)[PLACE.slot_1] == OTHER
            assert memory.of(Register.LOAD_EVICTED)[SERVER] == is_open(state)
        else:
            assert isinstance(slot, Pin) and slot.server == SERVER


@pytest.mark.parametrize("state", PinState)
def test_a_pin_that_moves_takes_its_load_along(state: PinState) -> None:
    memory, table = pinned(state)
    memory.of(Register.LOAD_FIRST)[SERVER] = 5
    pin = table.move(NOW, PLACE, OTHER)
    assert pin is not None and pin.server == OTHER
    assert memory.of(Register.LOAD_FIRST)[SERVER : OTHER + 1] == [5 - is_open(state), 1]


@pytest.mark.parametrize("event", Event)
def test_other_servers_change_nothing(event: Event) -> None:
    memory, table = pinned(PinState.PENDING)
    before = memory.of(Register.PIN_KEY_1)[PLACE.slot_1]
    table.answer(NOW, PLACE, event, OTHER)
    assert memory.of(Register.PIN_KEY_1)[PLACE.slot_1] == before


def test_every_state_has_a_time() -> None:
    assert sorted(state for states in LIFETIMES.values() for state in states) == list(PinState)
