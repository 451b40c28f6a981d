"""Tests of decoding register cells from the bytes of a ReadResponse.

The decoder returns the values that protobuf returns, or raises OtherShape, but never returns a wrong value.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from finsy.proto import p4d, p4r
from sluice.switch.cellwire import OtherShape, decode, encode

REGISTER = 0x15A1_B2C3


def answer(cells: dict[int, bytes], register: int = REGISTER) -> bytes:
    """Return an encoded response with these cells of a register, as a switch sends it."""
    entries = [
        p4r.RegisterEntry(register_id=register, index=p4r.Index(index=index), data=p4d.P4Data(bitstring=value))
        for index, value in cells.items()
    ]
    return p4r.ReadResponse(entities=[p4r.Entity(register_entry=entry) for entry in entries]).SerializeToString()


def as_decoded(content: bytes) -> dict[int, int]:
    whose, indices, values = decode(content, [REGISTER])
    assert not whose.any()
    return dict(zip(indices.tolist(), values.tolist(), strict=True))


def test_indices_and_values_of_every_length() -> None:
    source = random.Random(1)
    places = [0, 1, 127, 128, 16_383, 16_384, (1 << 21) - 1, 1 << 21, (1 << 28) + 5, (1 << 31) + 1]
    cells = {index: source.randbytes(source.randrange(1, 9)) for index in places}
    cells |= {index: source.randbytes(source.randrange(1, 9)) for index in range(1000, 4000)}
    cells[2] = b"\0"
    cells[3] = b"\xff" * 8
    assert as_decoded(answer(cells)) == {index: int.from_bytes(value, "big") for index, value in cells.items()}


def test_no_cells() -> None:
    assert as_decoded(b"") == {}


def test_cells_of_several_registers_in_any_order() -> None:
    source = random.Random(3)
    registers = [REGISTER, REGISTER + 1, REGISTER + 300]
    cells = [(place, index, source.randrange(1 << 32)) for place in range(3) for index in range(200)]
    source.shuffle(cells)
    content = b"".join(answer({index: value.to_bytes(4, "big")}, registers[place]) for place, index, value in cells)
    whose, indices, values = decode(content, registers)
    assert list(zip(whose.tolist(), indices.tolist(), values.tolist(), strict=True)) == cells
    with pytest.raises(OtherShape):
        decode(content, registers[:2])


def test_an_empty_value_is_zero() -> None:
    """P4Runtime requires at least one byte per value, but protobuf accepts an empty value, which means 0."""
    _, indices, values = decode(answer({4: b"", 5: b"\1"}), [REGISTER])
    assert (indices.tolist(), values.tolist()) == ([4, 5], [0, 1])


def test_values_that_look_like_the_beginning_of_a_cell() -> None:
    head = answer({1: b"\1"})[:9]
    cells = {index: (head * 2)[shift : shift + 8] for index, shift in enumerate(range(9))}
    assert as_decoded(answer(cells)) == {index: int.from_bytes(value, "big") for index, value in cells.items()}


def test_anything_else_is_refused() -> None:
    good = answer({1: b"\1", 2: b"\2"})
    other_register = answer({1: b"\1"}, REGISTER + 1)
    meter = p4r.ReadResponse(entities=[p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=1))]).SerializeToString()
    for content in (
        other_register,
        meter,
        good + other_register,
        other_register + good,
        good + meter,
        meter + good,
        good[:-1],
        good[1:],
        good + b"\0",
        answer({1: b"\1" * 9}),
    ):
        with pytest.raises(OtherShape):
            decode(content, [REGISTER])


def test_a_changed_byte_is_never_read_as_another_cell_without_protobuf_agreeing() -> None:
    source = random.Random(2)
    good = answer({index: source.randbytes(source.randrange(1, 9)) for index in range(40)})
    for place in range(len(good)):
        for change in (1, 2, 0x80, 0xFF):
            content = bytearray(good)
            content[place] ^= change
            try:
                decoded = as_decoded(bytes(content))
            except OtherShape:
                continue
            message = p4r.ReadResponse.FromString(bytes(content))
            assert decoded == {
                entity.register_entry.index.index: int.from_bytes(entity.register_entry.data.bitstring, "big")
                for entity in message.entities
            }


def test_what_is_encoded_is_what_protobuf_says() -> None:
    """For indices and values of every length, the encoded bytes equal those of protobuf."""
    source = random.Random(4)
    indices = [1, 127, 128, 16_383, 16_384, (1 << 21) - 1, 1 << 21, (1 << 28) + 5, (1 << 31) + 1]
    cells = {index: source.getrandbits(8 * source.randrange(1, 9)) or 1 for index in [*indices, *range(1000, 3000)]}
    cells[2], cells[3] = 0, (1 << 64) - 1
    entries = [
        p4r.RegisterEntry(
            register_id=REGISTER,
            index=p4r.Index(index=index),
            data=p4d.P4Data(bitstring=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")),
        )
        for index, value in cells.items()
    ]
    updates = [p4r.Update(type=p4r.Update.MODIFY, entity=p4r.Entity(register_entry=entry)) for entry in entries]
    content = encode(REGISTER, np.array(list(cells), np.int64), np.array(list(cells.values()), np.uint64))
    assert content == p4r.WriteRequest(updates=updates).SerializeToString()


def test_index_zero_is_the_first_cell() -> None:
    content = encode(REGISTER, np.array([0]), np.array([5], np.uint64))
    (update,) = p4r.WriteRequest.FromString(content).updates
    entry = update.entity.register_entry
    assert (entry.HasField("index"), entry.index.index, entry.data.bitstring) == (True, 0, b"\5")


def test_nothing_is_encoded_as_nothing() -> None:
    assert encode(REGISTER, np.zeros(0, np.int64), np.zeros(0, np.uint64)) == b""


def pairs(cells: dict[int, tuple[bytes, ...]], register: int = REGISTER) -> bytes:
    """Return an encoded response with cells whose values are structs, as a switch sends it."""
    return b"".join(
        p4r.ReadResponse(
            entities=[
                p4r.Entity(
                    register_entry=p4r.RegisterEntry(
                        register_id=register,
                        index=p4r.Index(index=index),
                        data=p4d.P4Data(
                            struct=p4d.P4StructLike(members=[p4d.P4Data(bitstring=value) for value in members])
                        ),
                    )
                )
            ]
        ).SerializeToString()
        for index, members in cells.items()
    )


def test_structs_among_cells_of_one_number() -> None:
    source = random.Random(4)
    values = {index: (source.randrange(1 << 32), source.randrange(1 << 16)) for index in range(300)}
    cells = {
        index: tuple(value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big") for value in members)
        for index, members in values.items()
    }
    whose, indices, read = decode(
        pairs(cells) + answer({7: b"\3"}, REGISTER + 1), [REGISTER, REGISTER + 1], {REGISTER: (32, 16)}
    )
    assert whose.tolist() == [0] * 300 + [1] and indices.tolist() == [*range(300), 7]
    assert read.tolist() == [first << 16 | second for first, second in values.values()] + [3]


@pytest.mark.parametrize(
    "content",
    [
        answer({1: b"\1"}),
        pairs({1: (b"\1",)}),
        pairs({1: (b"\1", b"\2", b"\3")}),
        pairs({1: (b"\1", b"\2" * 9)}),
        pairs({1: (b"\1", b"\2")})[:-1],
    ],
)
def test_structs_of_another_form_are_refused(content: bytes) -> None:
    with pytest.raises(OtherShape):
        decode(content, [REGISTER], {REGISTER: (32, 32)})
