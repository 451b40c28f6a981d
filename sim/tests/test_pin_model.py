"""The model of the connection table that a replay decides from does what the table of states says, in virtual time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import pin_table
from harness.pin_table import LIFETIMES, NEXT, RENEWING, Kind
from sluice.config import ConnectionsConfig
from sluice.names import TICK_BASE, PinState, Register
from sluice.replay.memory import Memory
from sluice.replay.pincells import Connection, PinCells

CONNECTION: Connection = (1, 40000, 2, 80)
SERVER, OTHER = 1, 2
NOW_S = 20_000.0

MEETS: dict[Kind, Callable[[PinCells, float], object]] = {
    pin_table.SYN: lambda pins, now_s: pins.syn(now_s, CONNECTION, SERVER),
    pin_table.ACK: lambda pins, now_s: pins.ack(now_s, CONNECTION, SERVER),
    pin_table.FIN: lambda pins, now_s: pins.client_fin(now_s, CONNECTION),
    pin_table.RST: lambda pins, now_s: pins.client_reset(now_s, CONNECTION),
    pin_table.SERVERS_SYN_ACK: lambda pins, now_s: pins.syn_ack(now_s, CONNECTION, SERVER),
    pin_table.SERVERS_ACK: lambda pins, now_s: pins.answer(now_s, CONNECTION, SERVER),
    pin_table.SERVERS_FIN: lambda pins, now_s: pins.server_fin(now_s, CONNECTION, SERVER),
    pin_table.SERVERS_RST: lambda pins, now_s: pins.server_reset(now_s, CONNECTION, SERVER),
}
"""The model's words for a kind of packet; data is an ACK to it, and every segment with a FIN is a FIN."""


def pinned(state: PinState, age_s: float) -> tuple[Memory, PinCells]:
    """A model with one connection, to SERVER, in a state since ``age_s`` seconds before NOW_S."""
    memory = Memory()
    pins = PinCells(memory, ConnectionsConfig())
    pins.syn(0.0, CONNECTION, SERVER)
    memory.of(Register.PIN_KEY_1)[0] = 1 << 36 | state << 32 | ticks(NOW_S - age_s)
    for cells in (Register.LOAD_FIRST, Register.LOAD_EVICTED):
        memory.of(cells)[SERVER] = 0
    return memory, pins


def ticks(time_s: float) -> int:
    return TICK_BASE + int(time_s * 1e6) // 65_536


@pytest.mark.parametrize("kind", MEETS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("state", PinState)
def test_every_packet_makes_of_every_state_what_the_table_says(kind: Kind, state: PinState) -> None:
    memory, pins = pinned(state, age_s=1.0)
    MEETS[kind](pins, NOW_S)
    key = memory.of(Register.PIN_KEY_1)[0]
    after = PinState(key >> 32 & 0xF)
    assert after is NEXT[kind].get(state, state)
    counts = not kind.by_client or state in RENEWING[kind]
    assert key & 0xFFFFFFFF == ticks(NOW_S if counts else NOW_S - 1.0)
    opened = (after < PinState.SERVER_CLOSING) - (state < PinState.SERVER_CLOSING)
    claimed = kind is pin_table.SYN and state >= PinState.CLOSED
    assert memory.of(Register.LOAD_FIRST)[SERVER] == (1 if claimed else opened) % (1 << 32)


@pytest.mark.parametrize("state", PinState)
def test_a_slot_is_kept_for_the_time_of_its_state(state: PinState) -> None:
    times = ConnectionsConfig()
    (name,) = [name for name, states in LIFETIMES.items() if state in states]
    lifetime_s = float(getattr(times, f"{name}_s"))
    for age_s, kept in ((lifetime_s - 0.2, True), (lifetime_s + 0.2, False)):
        memory, pins = pinned(state, age_s)
        pins.syn(NOW_S, CONNECTION, OTHER)
        stays = kept and state < PinState.CLOSED  # a SYN on closed or reset is a new connection at once
        assert memory.of(Register.PIN_SERVER_1)[0] == (SERVER if stays else OTHER)


@pytest.mark.parametrize("state", [state for state in PinState if state < PinState.CLOSED])
def test_a_pin_moves_with_the_candidates_ack_and_not_before(state: PinState) -> None:
    memory, pins = pinned(state, age_s=1.0)
    pins.syn(NOW_S, CONNECTION, OTHER)
    assert pins.syn_ack(NOW_S, CONNECTION, OTHER), "its first answer"
    assert not pins.syn_ack(NOW_S + 1, CONNECTION, OTHER), "sent again"
    assert memory.of(Register.PIN_SERVER_1)[0] == SERVER
    assert pins.ack(NOW_S + 2, CONNECTION, OTHER), "it completes a handshake"
    assert memory.of(Register.PIN_SERVER_1)[0] == OTHER
    assert memory.of(Register.LOAD_FIRST)[OTHER] == 1
