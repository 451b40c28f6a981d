"""Tests of the targets' profiles: token buckets, programs, clocks, and the detection of a switch's target."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import grpc
import pytest
import tofinoprogram
from fakeswitch import FakeSwitch, Memory
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import example, given
from hypothesis import strategies as st
from sluice.config.model import ConnectionsConfig
from sluice.dataplane.units import MICROSECONDS, NANOSECONDS
from sluice.names import PinState, Register
from sluice.switch.bucket import Bucket
from sluice.switch.connections import pins_of, read_slots
from sluice.switch.errors import SwitchError
from sluice.switch.pipeline import artefacts, load
from sluice.switch.session import Session
from sluice.switch.targets import EMBEDDED, TOFINO, bfpipeline
from sluice.switch.targets.detect import detect
from sluice.switch.targets.tofinometer import CLOCK_HZ, MOST_BURST, nearest, programmed
from tofinoswitch import TofinoSwitch

LEAST = CLOCK_HZ / (1 << 27)
"""Smallest rate of a Tofino's meter in 1/s (9.1), which is also the step between rates up to 511 times as large."""


@given(st.integers(1, 10_000_000), st.integers(1, 10_000_000))
@example(1, 1)
@example(100, 1)
@example(250, 25)
@example(10_000_000, 10_000_000)
def test_the_rate_held_is_near_the_rate_wanted(rate: int, burst: int) -> None:
    asked = nearest(Bucket(rate, burst))
    got = programmed(asked)
    assert got.rate > 0
    assert abs(got.rate - rate) <= max(LEAST, 0.04 * rate) + 1
    assert got.burst == asked.burst >= min(burst, MOST_BURST)
    assert got.burst <= max(1.02 * burst, 33)


@given(st.integers(1, 10_000_000), st.integers(1, 10_000_000))
def test_what_is_read_back_is_taken_for_what_was_written(rate: int, burst: int) -> None:
    asked = nearest(Bucket(rate, burst))
    assert programmed(asked).is_close(asked)


def test_small_rates_of_a_tofino() -> None:
    """The driver rounds down: 250/s becomes 245/s, and 5/s becomes 0, which admits nothing."""
    assert programmed(Bucket(250, 100)) == Bucket(245, 100)
    assert programmed(Bucket(5, 10)).rate == 0
    assert nearest(Bucket(5, 10)).rate == 10


def test_the_device_configuration(tmp_path: Path) -> None:
    """The device configuration is decoded by protobuf, independently of sluice's encoder."""
    folder = tofinoprogram.write(tmp_path / "tofino")
    message = _bf_pipeline_config().FromString(bfpipeline.code(folder))
    assert message.p4_name == "sluice"
    assert message.bfruntime_info == (folder / "bfrt.json").read_bytes()
    (profile,) = message.profiles
    assert (profile.profile_name, list(profile.pipe_scope)) == ("pipe", [0, 1, 2, 3])
    assert profile.context == (folder / "pipe" / "context.json").read_bytes()
    assert profile.binary == bytes(range(256))


def test_the_program_that_comes_with_sluice_is_whole() -> None:
    """sluice's own program folder is the default of a Tofino; the device configuration contains all its files."""
    folder = artefacts() / TOFINO.folder
    message = _bf_pipeline_config().FromString(bfpipeline.code(folder))
    (profile,) = message.profiles
    assert json.loads(message.bfruntime_info)["tables"]
    assert json.loads(profile.context)["target"] == "tofino"
    assert profile.binary == (folder / "pipe" / "tofino.bin").read_bytes()


def _bf_pipeline_config() -> type:
    """Return a message class with the field numbers and types of ForwardingPipelineConfig in bfruntime.proto. The test
    parses the controller's device configuration by it."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="bf.proto", package="bf", syntax="proto3")
    whole = file.message_type.add(name="BfPipelineConfig")
    profile = whole.nested_type.add(name="Profile")
    for number, (name, kind, label) in enumerate(
        [
            ("profile_name", kinds.TYPE_STRING, kinds.LABEL_OPTIONAL),
            ("context", kinds.TYPE_BYTES, kinds.LABEL_OPTIONAL),
            ("binary", kinds.TYPE_BYTES, kinds.LABEL_OPTIONAL),
            ("pipe_scope", kinds.TYPE_UINT32, kinds.LABEL_REPEATED),
        ],
        1,
    ):
        profile.field.add(name=name, number=number, type=kind, label=label)
    whole.field.add(name="p4_name", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    whole.field.add(name="bfruntime_info", number=2, type=kinds.TYPE_BYTES, label=kinds.LABEL_OPTIONAL)
    whole.field.add(
        name="profiles",
        number=3,
        type=kinds.TYPE_MESSAGE,
        label=kinds.LABEL_REPEATED,
        type_name=".bf.BfPipelineConfig.Profile",
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bf.BfPipelineConfig"))


@pytest.mark.parametrize("name", ["bfrt.json", "pipe/context.json", "pipe/tofino.bin"])
def test_a_file_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    folder = tofinoprogram.write(tmp_path / "tofino")
    (folder / name).unlink()
    with pytest.raises(SwitchError, match=f"{Path(name).name}: No such file.*make p4 TARGET=tofino"):
        bfpipeline.code(folder)


@pytest.mark.parametrize("text", ["", "{}", '{"p4_devices": []}', '{"p4_devices": [{"p4_programs": [{}]}]}', "[1]"])
def test_a_description_that_is_not_one_is_named(tmp_path: Path, text: str) -> None:
    folder = tofinoprogram.write(tmp_path / "tofino")
    (folder / "sluice.conf").write_text(text)
    with pytest.raises(SwitchError, match=r"sluice\.conf: not what p4c writes"):
        bfpipeline.code(folder)


@pytest.fixture
async def switches() -> AsyncGenerator[tuple[FakeSwitch, TofinoSwitch]]:
    async with FakeSwitch() as plain, TofinoSwitch() as tofino:
        yield plain, tofino


async def test_an_empty_switch_says_which_programs_it_takes(switches: tuple[FakeSwitch, TofinoSwitch]) -> None:
    plain, tofino = switches
    assert await detect(plain.address, 1) is EMBEDDED
    assert await detect(tofino.address, 1) is TOFINO


async def test_a_switch_with_a_program_is_known_by_it(switches: tuple[FakeSwitch, TofinoSwitch]) -> None:
    """A controller that installs no program detects the target by the program that another controller installed."""
    for switch, target in zip(switches, (EMBEDDED, TOFINO), strict=True):
        program = load(target=target)
        async with Session(switch.address, 1, program) as session:
            await session.push_pipeline()
        assert await detect(switch.address, 1) is target


async def test_a_switch_that_answers_no_capabilities_runs_v1models_programs(
    switches: tuple[FakeSwitch, TofinoSwitch], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(_: object, _request: object, context: Any) -> None:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Method not found!")

    monkeypatch.setattr(FakeSwitch, "Capabilities", unknown)
    async with FakeSwitch() as old:
        assert await detect(old.address, 1) is EMBEDDED


@pytest.mark.parametrize("units", [MICROSECONDS, NANOSECONDS])
@pytest.mark.parametrize("start", [1 << 24, (1 << 32) - 5])
async def test_pins_age_alike_whatever_the_clock_also_when_it_wraps(units: object, start: int) -> None:
    assert units in (MICROSECONDS, NANOSECONDS)
    memory = Memory(units)  # type: ignore[arg-type]
    for slot, (age_s, server) in enumerate([(0.0, 1), (295.0, 2), (310.0, 3)], 1):
        stamp = (start + memory.units.ticks(400) - memory.units.ticks(age_s)) % (1 << 32)
        state = 0 if memory.units.pin_states else PinState.ESTABLISHED << 32
        await memory.write(Register.PIN_KEY_1, slot, state | stamp)
        await memory.write(Register.PIN_SERVER_1, slot, server)
        if memory.units.pin_states:
            await memory.write(memory.units.pin_states[0], slot, PinState.ESTABLISHED)
    slots = await read_slots(memory)
    unexpired = slots.unexpired(ConnectionsConfig(), 300.0, memory.units, slots.newest or 0)
    assert pins_of(slots, unexpired).by_server == {1: 1, 2: 1}
