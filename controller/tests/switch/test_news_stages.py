"""Tests of flash-crowd control's registers: decoding of rates and samples, and encoding of settings."""

from __future__ import annotations

import numpy as np
import pytest
from fakeswitch import Memory
from pytest import approx
from sluice.addresses import IPV4_BITS, from_text, packed
from sluice.config.model import NewsConfig
from sluice.dataplane.units import MICROSECONDS
from sluice.names import SAMPLES, Register
from sluice.news import Requests
from sluice.news.rates import flow_mask
from sluice.switch.destinations import ALL_SHARED, ALL_UNLISTED, limit_noted, read_requests
from sluice.switch.rates import FlowReader, decode
from sluice.switch.sampling import SampleReader


@pytest.mark.parametrize(("window_s", "step"), [(1.0, 128), (0.9175, 128), (0.125, 16), (0.001, 1), (60, 8192)])
def test_window_becomes_the_nearest_step(window_s: float, step: int) -> None:
    assert MICROSECONDS.step(window_s) == step


@pytest.mark.parametrize(("share", "mask"), [(1.0, 0), (0.5, 1), (0.3, 3), (1e-9, (1 << 20) - 1)])
def test_share_becomes_a_mask(share: float, mask: int) -> None:
    assert flow_mask(share) == mask


def test_rate_of_a_flow() -> None:
    """The flow sent 10,000 bytes in its measurement window, which is 983,040 us long.

    The window is the last 7 complete steps of 128 units of 1,024 us, and the 64 units of the next step until the flow's
    last packet.
    """
    flow = np.array([7 << 32 | (1 << 24) + 64], np.uint64)
    assert decode(flow, np.array([10_000], np.uint64), 128) == approx([80_000 / 0.98304])


async def test_only_flows_with_packets_since_the_last_reading() -> None:
    memory, reader, options = Memory(), FlowReader(), NewsConfig()
    cells = memory.cells
    cells[Register.RATE_FLOW] |= {1: 5 << 32 | 1 << 24, 2: 6 << 32 | 1 << 24}
    cells[Register.RATE_BYTES] |= {1: 1000, 2: 1000}
    assert (await reader.read(memory, options)).keys.size == 0, "the first reading is a base"
    cells[Register.RATE_BYTES][2] += 500
    cells[Register.RATE_FLOW][3] = 9 << 32 | 1 << 24
    read = await reader.read(memory, options)
    assert read.keys.tolist() == [2 << 32 | 6, 3 << 32 | 9]
    assert read.rates.tolist() == approx([1500 * 8e6 / (896 * 1024), 0])


@pytest.mark.parametrize("start", [1 << 24, (1 << 32) - 5, (1 << 31) - 5])
async def test_slots_are_taken_while_a_packet_is_not_too_old(start: int) -> None:
    """A slot stays occupied for 32 steps of 128 clock ticks after its last packet.

    The time of the newest packet in any slot serves as the current time.
    """
    memory, reader, options = Memory(), FlowReader(), NewsConfig()
    assert (await reader.read(memory, options)).slots is None

    def packet(slot: int, time: int) -> None:
        memory.cells[Register.RATE_FLOW][slot] = 5 << 32 | time % (1 << 32)
        memory.cells[Register.RATE_BYTES][slot] = memory.cells[Register.RATE_BYTES].get(slot, 0) + 1

    packet(1, start)
    first = (await reader.read(memory, options)).slots
    assert first is not None and first.taken == approx(1 / 4096) and first.seconds == 0
    assert first.held_s == approx(32 * 128 * 1024e-6)
    assert (await reader.read(memory, options)).slots is None, "no packet, no time"
    packet(2, start + 4096)
    second = (await reader.read(memory, options)).slots
    assert second is not None and second.taken == approx(2 / 4096)
    assert second.seconds == approx(4096 * 1024e-6)
    packet(3, start + 4097)
    packet(2, start + 4090)
    third = (await reader.read(memory, options)).slots
    assert third is not None and third.taken == approx(2 / 4096), "the first is free again"


async def test_samples_are_read_once_and_round_the_ring() -> None:
    memory, reader = Memory(), SampleReader()
    ring, end = memory.cells[Register.SAMPLE_RING], memory.cells[Register.SAMPLE_NEXT]
    end[0] = 5
    assert list(await reader.read(memory)) == []
    ring |= {5: 50, 6: 60}
    end[0] = 7
    assert list(await reader.read(memory)) == [packed(50, IPV4_BITS), packed(60, IPV4_BITS)]
    assert list(await reader.read(memory)) == []
    end[0] = 7 + 3 * SAMPLES
    assert len(await reader.read(memory)) == SAMPLES
    reader.rebase()
    end[0] += 10
    assert list(await reader.read(memory)) == []


async def test_requests_with_those_of_unlisted_destinations() -> None:
    memory = Memory()
    memory.cells[Register.REQUESTS_OFFERED] |= {0: 9, 3: 5}
    memory.cells[Register.REQUESTS_ADMITTED] |= {0: 9, 3: 4}
    memory.cells[Register.REQUESTS_REFUSED] |= {3: 1}
    memory.cells[Register.REQUESTS_RETURNING] |= {3: 2}
    requests = await read_requests(memory, {from_text("10.0.0.9"): 3, from_text("10.0.0.2"): 3})
    assert requests == {ALL_UNLISTED: Requests(9, 9, 0, 0), ALL_SHARED: Requests(5, 4, 1, 2)}
    alone = await read_requests(memory, {from_text("10.0.0.9"): 3})
    assert alone == {ALL_UNLISTED: Requests(9, 9, 0, 0), from_text("10.0.0.9").packed: Requests(5, 4, 1, 2)}


def test_noted_limit() -> None:
    assert limit_noted(b"limit=12.5") == 12.5
    assert limit_noted(b"") is None
    assert limit_noted(b"limit=many") is None
