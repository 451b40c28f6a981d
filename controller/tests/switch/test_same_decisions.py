"""One series of packets leads to the same decisions on every target, although the targets count in different units."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import tofinoprogram
from configs import web
from fakeswitch import FakeSwitch, Memory
from pytest import approx
from sluice.config.load import parse
from sluice.config.model import ConnectionsConfig, NewsConfig
from sluice.dataplane.units import MICROSECONDS, NANOSECONDS, Units
from sluice.features import Balance, world_of
from sluice.loops.adoption import adopt
from sluice.names import Meter, PinState, Register
from sluice.switch import pipeline
from sluice.switch.connections import Pins, pins_of, read_slots
from sluice.switch.ledger import read_ledger
from sluice.switch.pipeline import Pipeline
from sluice.switch.rates import FlowReader
from sluice.switch.reconcile import read_back, reconcile
from sluice.switch.registers import open_registers
from sluice.switch.session import Session
from tofinoswitch import TofinoSwitch

SECONDS = 30


def train(second: int) -> dict[int, tuple[int, int]]:
    """Return SYNs and SYN-ACKs of each server in a second; server 1 is overloaded from 5 to 15 s."""
    return {1: (40, 15 if 5 <= second < 15 else 40), 2: (40, 40)}


@dataclass
class Outcome:
    """The decisions of a controller on the series of packets."""

    ratios: list[dict[int, float]]
    reasons: list[str]
    weights: dict[int, int]
    limit: tuple[int, int]


async def drive(switch: FakeSwitch, program: Pipeline) -> Outcome:
    """Process the series second by second as a controller does: read the counters, decide, write the weights."""
    text = web(period_s=1.0, window_s=2.0).replace(
        "  servers:", "  admission: {rate_per_s: 2500, burst: 500}\n  servers:"
    )
    world = world_of(parse(text))
    async with Session(switch.address, 1, program) as session:
        await session.push_pipeline()
        readback = await read_back(session)
        adopt(world, readback, now_s=0.0)
        await reconcile(session, readback, world.state())
        registers = await open_registers(session, None)
        (service,) = world.plan.services
        outcome = Outcome([], [], {}, (0, 0))
        for second in range(SECONDS):
            for server, (syns, answers) in train(second).items():
                switch.count("ledger_syn", server, syns)
                switch.count("ledger_synack", server, answers)
                switch.count("ledger_completed", server, answers)
            balancer = world[Balance].views[service.id].balancer
            decision = balancer.observe(float(second), await read_ledger(registers, [1, 2]))
            if decision is not None:
                await reconcile(session, readback, world.state())
                outcome.ratios.append(dict(decision.ratios))
                outcome.reasons.append(decision.reason)
        outcome.weights = switch.weights(service.id)
        admission = session.pipeline.schema.meters[Meter.ADMISSION].id
        config = switch.meters[admission, service.id]
        outcome.limit = (config.cir, config.cburst)
    return outcome


@pytest.fixture
async def both() -> AsyncGenerator[tuple[FakeSwitch, TofinoSwitch]]:
    async with FakeSwitch() as plain, TofinoSwitch() as tofino:
        yield plain, tofino


async def test_same_ratios_same_weights_and_nearly_the_same_limit(
    both: tuple[FakeSwitch, TofinoSwitch], tmp_path: Path
) -> None:
    plain, tofino = both
    first = await drive(plain, pipeline.load())
    other = await drive(tofino, pipeline.load(tofinoprogram.write(tmp_path / "tofino")))
    assert first.ratios == other.ratios
    assert first.reasons == other.reasons
    assert len(set(map(str, first.ratios))) > 3, "the train is to move something"
    assert first.weights == other.weights
    assert other.limit == (approx(first.limit[0], rel=0.004), first.limit[1])


@dataclass(frozen=True)
class Packet:
    """A packet of the series, with its time in seconds."""

    at_s: float
    slot: int
    octets: int


PACKETS = [Packet(0.1 * number, number % 7 + 1, 200 + number) for number in range(100)]


async def _seen(units: Units, cell: Callable[[int, int], int]) -> tuple[Pins, list[float]]:
    """Return the connections and response rates that a controller reads after the series of packets.

    `units` is the switch's clock; `cell` makes the value of a cell from fingerprint and time stamp.
    """
    memory, reader, options = Memory(units), FlowReader(), NewsConfig()
    await reader.read(memory, options)
    step = units.step(options.rate_window_s)
    for packet in PACKETS:
        stamp = (1 << 24) + units.ticks(packet.at_s)
        state = 0 if units.pin_states else PinState.ESTABLISHED << 32
        await memory.write(Register.PIN_KEY_1, packet.slot, cell(99 << 4, stamp) | state)
        await memory.write(Register.PIN_SERVER_1, packet.slot, packet.slot % 3 + 1)
        if units.pin_states:
            await memory.write(units.pin_states[0], packet.slot, PinState.ESTABLISHED)
        # The time stamp is in the middle of a step of either clock, so that rounding moves no packet to another step.
        time = (1 << 24) + round(packet.at_s * 1e6 / units.rate_tick_us) // step * step + step // 2
        await memory.write(Register.RATE_FLOW, packet.slot, cell(99, time))
        before = (await memory.read(Register.RATE_BYTES, [packet.slot]))[0]
        await memory.write(Register.RATE_BYTES, packet.slot, before + packet.octets)
    rates = (await reader.read(memory, options)).rates
    slots = await read_slots(memory)
    unexpired = slots.unexpired(ConnectionsConfig(), 9.5, units, slots.newest or 0)
    return pins_of(slots, unexpired), rates.tolist()


async def test_same_connections_and_nearly_the_same_rates() -> None:
    """The switches measure a rate over a window, whose length is a power of two in ticks of the switch's clock.

    So the windows of the two clocks differ a little in seconds, and the rates are inversely proportional to them.
    """
    pins, rates = await _seen(MICROSECONDS, lambda fingerprint, stamp: fingerprint << 32 | stamp)
    others, other_rates = await _seen(NANOSECONDS, lambda _, stamp: stamp)
    assert pins == others
    windows = [units.step(1.0) * units.rate_tick_us for units in (MICROSECONDS, NANOSECONDS)]
    assert [rate * windows[0] for rate in rates] == approx([rate * windows[1] for rate in other_rates])
    assert windows[1] == approx(windows[0], rel=0.05)
