"""Tests of closing idle connections: decoding of the switch's cells, and the controller's tickle (a probe)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from fakeswitch import Memory
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from sluice.addresses import from_text
from sluice.names import INTO_PIPELINE, TICK_BASE, TICK_US, ClosingStatus, Register
from sluice.switch import pipeline
from sluice.switch.closing import Closing, Closings
from sluice.switch.errors import SwitchError

CLIENT, PORT, SERVER = from_text("192.0.2.7"), 40001, 3
SERVICE = (from_text("203.0.113.80"), 80)
FLOW = (1 << 17) + 5
NOW = TICK_BASE + 5000
TICK_S = TICK_US / 1e6
IDLE = 3 << 58
"""Bits of a cell of CLOSING_STATE: the server sent the last data, and the client has acknowledged that data."""


@dataclass
class Switch:
    """A session that records the packets that the controller sends."""

    address: str = "test:1"
    pipeline: Any = field(default_factory=pipeline.load)
    sent: list[tuple[bytes, int]] = field(default_factory=list)

    async def send_packet(self, payload: bytes, egress_port: int) -> None:
        self.sent.append((payload, egress_port))


class Cells(Memory):
    """The registers of the switch's stage `closing`, with methods that write cells as the switch does."""

    def hint(self, flow: int, ticks: int) -> None:
        self.cells[Register.CLOSING_HINT][flow % 4096] = flow << 41 | SERVER << 31 | ticks

    def put(self, flow: int, state: int, ticks: int, status: ClosingStatus = ClosingStatus.OPEN) -> None:
        self.cells[Register.CLOSING_STATE][flow] = status << 60 | state | ticks << 26
        self.cells[Register.CLOSING_PEER][flow] = int(CLIENT) << 31 | PORT << 15 | SERVER


@pytest.fixture
def switch() -> Switch:
    return Switch()


@pytest.fixture
def cells() -> Cells:
    return Cells()


@pytest.fixture
def closing(switch: Switch, cells: Cells) -> Closing:
    return Closing(cast(Any, switch), cells)


async def test_hints_are_remembered_when_others_take_their_cells(closing: Closing, cells: Cells) -> None:
    cells.hint(FLOW, NOW - 100)
    noted = await closing.read_idle(0.0)
    assert (noted.flow.tolist(), noted.server.tolist(), noted.idle_s.tolist()) == ([FLOW], [SERVER], [0.0])
    cells.hint(5, NOW)
    noted = await closing.read_idle(0.1)
    idle_times = dict(zip(noted.flow.tolist(), noted.idle_s.tolist(), strict=True))
    assert idle_times.keys() == {5, FLOW}
    assert idle_times[FLOW] == pytest.approx(100 * TICK_S)


async def test_who_is_idle_no_more_is_forgotten(closing: Closing, cells: Cells) -> None:
    for state, status in ((1 << 59, ClosingStatus.OPEN), (1 << 58, ClosingStatus.OPEN), (IDLE, ClosingStatus.CLOSED)):
        cells.hint(FLOW, NOW)
        cells.put(FLOW, state, NOW, status)
        assert (await closing.read_idle(0.0)).flow.size
        assert await closing.confirm_idle([FLOW], 0.0) == []
        assert not (await closing.read_idle(0.0)).flow.size
        cells.hint(FLOW, NOW - 1)
        await closing.read_idle(0.0)


async def test_the_age_is_that_of_the_last_payload(closing: Closing, cells: Cells) -> None:
    cells.hint(FLOW, NOW)
    cells.put(FLOW, IDLE, NOW - 20, ClosingStatus.PROBING)
    await closing.read_idle(0.0)
    (candidate,) = await closing.confirm_idle([FLOW], 0.0)
    assert (candidate.flow, candidate.server, candidate.idle_s) == (FLOW, SERVER, pytest.approx(20 * TICK_S))


async def test_the_tickle_is_in_the_clients_name(closing: Closing, cells: Cells, switch: Switch) -> None:
    cells.put(FLOW, IDLE, NOW)
    await closing.confirm_idle([FLOW], 0.0)
    await closing.tickle(FLOW, SERVICE, 2.0)
    ((payload, port),) = switch.sent
    assert port == INTO_PIPELINE
    assert int.from_bytes(payload[:4], "big") == int(2.0 / TICK_S)
    frame: Any = Ether(payload[4:])
    assert (frame[IP].src, frame[IP].dst) == (str(CLIENT), str(SERVICE[0]))
    assert (frame[TCP].sport, frame[TCP].dport, frame[TCP].seq, frame[TCP].ack) == (PORT, 80, 0, 0)
    assert str(frame[TCP].flags) == "A" and frame[IP].len == 40
    sums = frame[IP].chksum, frame[TCP].chksum
    del frame[IP].chksum, frame[TCP].chksum
    again: Any = Ether(bytes(frame))
    assert (again[IP].chksum, again[TCP].chksum) == sums


async def test_an_unconfirmed_connection_is_not_tickled(closing: Closing, switch: Switch) -> None:
    with pytest.raises(SwitchError, match="connection 7 was not confirmed idle; call confirm_idle first"):
        await closing.tickle(7, SERVICE, 0.0)
    assert switch.sent == []


async def test_what_became_of_tickles(closing: Closing, cells: Cells) -> None:
    for register, many in (
        (Register.CLOSING_TAKEN, 5),
        (Register.CLOSING_TAKEN_BACK, 2),
        (Register.CLOSING_RACED, 1),
    ):
        cells.count(register, SERVER, many)
    assert await closing.counts([SERVER, 4]) == {SERVER: Closings(5, 2, 1), 4: Closings(0, 0, 0)}
