"""Tests of the controller's readings of measured transfers, from cells that the switch's model has written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import ACK, SYN
from sluice.dataplane.transfers import INTERVAL_BITS, Flow, Segment, TransferCells
from sluice.names import TRANSFERS, PinState, Register
from sluice.switch.transfers import read

FLOW = Flow(7 + 5 * TRANSFERS, 0x4ABCDEF, 9)
BEGIN_US = 77_000_000_000
MSS = 1000


class Path:
    """A transfer through the model of the switch, with a round trip of 100 ms."""

    def __init__(self, memory: Memory, flow: Flow = FLOW, first: int = 1) -> None:
        self.cells, self.flow, self.first = TransferCells(memory), flow, first
        self.now_us = BEGIN_US
        answer = Segment(True, (first - 1) % (1 << 32), 1, 0, SYN | ACK, PinState.PENDING, PinState.ANSWERED)
        self.cells.packet(self.now_us, flow, answer)
        self.acknowledges(0)

    def sends(self, place: int) -> None:
        """Let the server send a segment that begins `place` segments after the first."""
        segment = Segment(True, (self.first + place * MSS) % (1 << 32), 1, MSS, ACK)
        self.cells.packet(self.now_us, self.flow, segment)

    def acknowledges(self, place: int) -> None:
        """Let the client acknowledge, 100 ms later, all segments before `place`."""
        self.now_us += 100_000
        self.cells.packet(self.now_us, self.flow, Segment(False, 1, (self.first + place * MSS) % (1 << 32), 0, ACK))


async def test_columns_name_the_connection_and_what_it_did() -> None:
    memory = Memory()
    path = Path(memory)
    for place in range(4):
        path.sends(place)
    path.acknowledges(1)
    path.sends(1)
    seen = await read(memory)
    slot = FLOW.slot
    assert (seen.flow[slot], seen.fingerprint[slot], seen.server[slot]) == FLOW
    assert (seen.segments[slot], seen.sent[slot], seen.again[slot], seen.losses[slot]) == (5, 4 * MSS, 1, 1)
    assert (seen.under_way[slot], seen.mss[slot], seen.flight[slot]) == (3 * MSS, MSS, 63 * 64)
    assert (seen.least_rtt_s[slot], seen.rtt_s[slot]) == (0.100001, 0.100001)
    assert (seen.flow >= 0).sum() == 1
    assert np.isnan(seen.rtt_s[slot + 1])


async def test_an_interval_is_what_changed_and_a_new_transfer_all_of_its_own() -> None:
    memory = Memory()
    path = Path(memory)
    path.sends(0)
    path.acknowledges(1)
    first = await read(memory)
    path.sends(1)
    path.sends(2)
    path.sends(1)
    second = await read(memory)
    change, slot = second.since(first), FLOW.slot
    assert (change.segments[slot], change.losses[slot], change.is_new[slot]) == (3, 1, False)
    assert (change.timeouts[slot], change.under_way[slot]) == (0, 2 * MSS)
    assert np.isnan(change.rtt_s[slot])
    assert change.rto_s[slot] == second.rtt_s[slot] + 0.2
    Path(memory, first=70_000).sends(0)
    again = (await read(memory)).since(second)
    assert (again.segments[slot], again.losses[slot], again.is_new[slot]) == (1, 0, True)
    assert second.since(None).segments[slot] == 4


@pytest.mark.parametrize(("wait_us", "losses"), [(99_000, 0), (101_000, 1)])
async def test_what_fills_a_hole_in_the_next_interval_is_a_loss_if_it_comes_a_round_trip_later(
    wait_us: int, losses: int
) -> None:
    memory = Memory()
    path = Path(memory)
    path.sends(0)
    path.acknowledges(1)
    start = await read(memory)
    path.sends(2)
    hole = await read(memory)
    assert hole.since(start).losses[FLOW.slot] == 0
    path.now_us += wait_us
    path.sends(1)
    filled = (await read(memory)).since(hole)
    assert (filled.losses[FLOW.slot], filled.segments[FLOW.slot]) == (losses, 1)


async def test_counts_wrap() -> None:
    memory = Memory()
    path = Path(memory)
    memory.of(Register.TRANSFER_SENT)[FLOW.slot] = 1000 << 28 | (1 << 28) - 1
    memory.of(Register.TRANSFER_LOSSES)[FLOW.slot] = 0xFFFF << 31
    memory.of(Register.TRANSFER_RTT)[FLOW.slot] = ((1 << 40) - 50_000) << 23 | (1 << 23) - 1
    before = await read(memory)
    path.sends(0)
    path.acknowledges(1)
    for place in (1, 2, 1):
        path.sends(place)
    change = (await read(memory)).since(before)
    slot = FLOW.slot
    assert (change.segments[slot], change.losses[slot]) == (4, 1)
    assert change.rtt_s[slot] == 0.100001
    assert memory.of(Register.TRANSFER_LOSSES)[slot] >> 47 == 1
    path.now_us += 1_000_000
    path.sends(1)
    assert (await read(memory)).since(before).timeouts[slot] == 1


async def test_a_slot_whose_owner_changes_meanwhile_is_left_out() -> None:
    class Torn(Memory):
        async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
            arrays = await super().arrays(registers)
            if Register.TRANSFER_SENT in registers:
                Path(self, FLOW._replace(fingerprint=1))
            return arrays

    memory = Torn()
    other = Flow(8, 3, 2)
    Path(memory, other)
    Path(memory)
    memory.of(Register.TRANSFER_OWNER)[FLOW.slot] -= 1000  # silent for 65 s, so a new transfer may take the slot
    seen = await read(memory)
    assert (seen.flow[FLOW.slot], seen.flow[other.slot]) == (-1, 8)


@pytest.mark.parametrize("intervals", [1, 2])
async def test_a_flight_of_an_interval_that_begins_while_cells_are_read_is_seen(intervals: int) -> None:
    class Torn(Memory):
        async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
            arrays: list[NDArray[np.uint64]] = []
            for register in registers:
                if register == Register.TRANSFER_FLIGHT:
                    path.now_us += intervals << INTERVAL_BITS
                    path.sends(1)
                arrays += await super().arrays([register])
            return arrays

    memory = Torn()
    path = Path(memory)
    path.sends(0)
    seen = await read(memory)
    assert seen.flight[FLOW.slot] == -(-2 * MSS // 64) * 64


async def test_a_flight_of_long_ago_is_none_when_the_numbers_of_intervals_have_wrapped() -> None:
    memory = Memory()
    path, other = Path(memory), Path(memory, Flow(8, 3, 2))
    path.sends(0)
    other.now_us += 1 << 15 + INTERVAL_BITS
    other.sends(0)
    seen = await read(memory)
    assert (seen.flight[FLOW.slot], seen.flight[other.flow.slot]) == (0, 1024)


async def test_a_flight_of_long_ago_is_none() -> None:
    memory = Memory()
    path = Path(memory)
    path.sends(0)
    other = Path(memory, Flow(8, 3, 2))

    async def flight_after(us: int) -> int:
        other.now_us = BEGIN_US + us
        other.sends(0)
        return int((await read(memory)).flight[FLOW.slot])

    assert [await flight_after(us) for us in (100_000, 1 << 20, 3 << 20)] == [1024, 1024, 0]
