"""Decodes register cells from the bytes of a ReadResponse, and encodes a WriteRequest, without an object per cell.

The controller reads registers of 64k cells several times a second. Parsed as protobuf messages, each read would take a
tenth of a second. The encoding of such a response repeats the same few fields for every cell (protobuf's encoding
guide, "Message Structure"), so numpy decodes all cells at once:

```
0a <length>  entity             (ReadResponse.entities)
  5a <length>  register_entry   (Entity.register_entry)
    08 <register id>            (RegisterEntry.register_id)
    12 <length>  [08 <index>]   (RegisterEntry.index; a zero is left out)
    1a <length>                 (RegisterEntry.data)
      0a <length> <value>       (P4Data.bitstring, big-endian)
```
The data of a struct (paired cells on Tofino) contain one bitstring for each member:
```
    1a <length>                 (RegisterEntry.data)
      2a <length>               (P4Data.struct)
        0a <length>             (P4StructLike.members)
          0a <length> <value>   (P4Data.bitstring)
```
The encoding of a write repeats `22 <length> 08 02 12 <length>` (WriteRequest.updates, Update.type MODIFY and entity)
and the same register_entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from finsy.proto import p4d, p4r
from numpy.typing import NDArray

_Bytes = NDArray[np.uint8]
_INDEX_BYTES = 5
"""The length in bytes of the longest varint with 32 bits."""
_VALUE_BYTES = 8


class OtherShape(Exception):
    """The response has a different encoding or contains other entities: parse it as a protobuf message instead."""


def decode(
    answer: bytes, register_ids: Sequence[int], structs: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]]:
    """Return register (its position in ``register_ids``), index and value of each cell of a serialised ReadResponse.

    ``structs``: for each register whose cells are structs, by register id, the width in bits of each member; at most 64
    bits in total. The value of such a cell consists of its members' bits, concatenated.

    Raises OtherShape for another encoding and for cells of any other register. O(bytes + cells times registers).
    """
    if not answer:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64)
    # The padding lets reads at the expected offsets stay inside the array. The checks below establish whether the
    # fields are there.
    raw = np.frombuffer(answer + bytes(16), np.uint8)
    heads = [_head(number) for number in register_ids]
    _require(len({len(head) for head in heads}) == 1)  # all ids of P4 registers are varints of equal length
    starts, owners = _starts(raw, heads)
    sizes = raw[starts + 1].astype(np.int64) + 2
    # Each cell begins where the previous one ends, from offset 0 to the last byte. So no other bytes were mistaken
    # for a cell, and no cell was missed.
    _require(starts.size > 0 and starts[0] == 0)
    ends = starts + sizes
    _require(bool((ends[:-1] == starts[1:]).all()) and int(ends[-1]) == len(answer))
    _require(bool((raw[starts + 3] == sizes - 4).all()))
    at = starts + len(heads[0])
    index_size = raw[at].astype(np.int64)
    indices = _indices(raw, at + 1, index_size)
    data = at + 1 + index_size
    _require(bool(((raw[data] == 0x1A) & (data + 2 + raw[data + 1] == ends)).all()))
    values = np.zeros(starts.size, np.uint64)
    for place, number in enumerate(register_ids):
        mask = owners == place
        begin = data[mask] + 2
        decoded = _members(raw, begin, structs[number]) if number in structs else _bitstrings(raw, begin)
        values[mask], member_end = decoded
        _require(bool((member_end == ends[mask]).all()))
    return owners, indices, values


def encode(register_id: int, indices: NDArray[np.int64], values: NDArray[np.uint64]) -> bytes:
    """Return the updates of a serialised WriteRequest that set these cells of a register, in order. O(cells) in numpy.

    Each row of the numpy array has room for the longest index and value; only the bytes in use are copied to the
    result.
    """
    octet = np.arange(_INDEX_BYTES)
    index_size = 1 + (indices[:, None] >> 7 * octet[1:] > 0).sum(1)
    index = (indices[:, None] >> 7 * octet & 0x7F) | np.where(octet < index_size[:, None] - 1, 0x80, 0)
    value = values.astype(">u8").view(np.uint8).reshape(-1, _VALUE_BYTES)
    size = 1 + (np.logical_or.accumulate(value[:, :-1] > 0, axis=1)).sum(1)
    number = p4r.RegisterEntry(register_id=register_id).SerializeToString()
    entry = len(number) + 2 + (1 + index_size) + 2 + (2 + size)
    head = (0x22, 6 + entry, 0x08, int(p4r.Update.MODIFY), 0x12, 2 + entry, 0x5A, entry, *number)
    head = (*head, 0x12, 1 + index_size, 0x08)
    data = (0x1A, 2 + size, 0x0A, size)
    rows = np.empty((len(indices), len(head) + _INDEX_BYTES + len(data) + _VALUE_BYTES), np.uint8)
    used = np.ones(rows.shape, np.bool_)
    middle, end = len(head) + _INDEX_BYTES, rows.shape[1] - _VALUE_BYTES
    for column, octets in [*enumerate(head), *enumerate(data, middle)]:
        rows[:, column] = octets
    rows[:, len(head) : middle], rows[:, end:] = index, value
    used[:, len(head) : middle] = octet < index_size[:, None]
    used[:, end:] = np.arange(_VALUE_BYTES) >= _VALUE_BYTES - size[:, None]
    return rows[used].tobytes()


def _require(condition: bool) -> None:
    if not condition:
        raise OtherShape


def _head(register_id: int) -> bytes:
    """Return the first bytes of a register's encoded cell, up to the index's tag. The length bytes among them are those
    of an example and differ from cell to cell."""
    entry = p4r.RegisterEntry(register_id=register_id, index=p4r.Index(index=1), data=p4d.P4Data(bitstring=b"\0"))
    example = p4r.ReadResponse(entities=[p4r.Entity(register_entry=entry)]).SerializeToString()
    return example[: -len(bytes.fromhex("02 08 01 1a 03 0a 01 00"))]


def _starts(raw: _Bytes, heads: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the offsets at which a cell's encoding begins, in order, and the position of each cell's register in
    ``heads``. Length bytes are not compared."""
    last = raw.size - len(heads[0])
    tags = [raw[place : place + last] == heads[0][place] for place in (0, 2, 4)]
    offsets = np.flatnonzero(tags[0] & tags[1] & tags[2])
    owners = np.full(offsets.size, -1)
    for number, head in enumerate(heads):
        is_match = np.ones(offsets.size, np.bool_)
        for place in range(5, len(head)):
            is_match &= raw[offsets + place] == head[place]
        owners[is_match] = number
    return offsets[owners >= 0], owners[owners >= 0]


def _indices(raw: _Bytes, at: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cell index in each Index message. ``at``: the messages' offsets; ``size``: their lengths in bytes. An
    empty message stands for index 0."""
    written = size > 0
    _require(int(size.max()) <= 1 + _INDEX_BYTES and bool((raw[at[written]] == 0x08).all()))
    indices = np.zeros(at.size, np.int64)
    for place in range(1, int(size.max())):
        continues = size > place
        octet = raw[at[continues] + place].astype(np.int64)
        _require(bool(((octet >= 0x80) == (size[continues] > place + 1)).all()))
        indices[continues] |= (octet & 0x7F) << 7 * (place - 1)
    return indices


def _bitstrings(raw: _Bytes, at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the values of the P4Data messages that begin at these offsets, and the offsets at which the messages
    end."""
    length = raw[at + 1].astype(np.int64)
    _require(bool(((raw[at] == 0x0A) & (length <= _VALUE_BYTES)).all()))
    return _values(raw, at + 2, length), at + 2 + length


def _members(raw: _Bytes, at: NDArray[np.int64], widths: Sequence[int]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the value of each struct P4Data message at these offsets (its members' bits concatenated), and the offset
    at which the message ends."""
    _require(bool((raw[at] == 0x2A).all()))
    end, value = at + 2 + raw[at + 1], np.zeros(at.size, np.uint64)
    at = at + 2
    for width in widths:
        _require(bool((raw[at] == 0x0A).all()))
        member_end = at + 2 + raw[at + 1]
        member, at = _bitstrings(raw, at + 2)
        _require(bool((at == member_end).all()))
        _require(width >= 64 or not (member >> np.uint64(width)).any())
        value = value << np.uint64(width) | member
    _require(bool((at == end).all()))
    return value, end


def _values(raw: _Bytes, at: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the big-endian numbers, each at most eight bytes long, at these offsets."""
    word = np.ndarray((raw.size - 7,), ">u8", raw.data, strides=(1,))
    shift = (8 * (8 - length)).astype(np.uint64)
    # A shift of a 64-bit number by 64 bits is undefined, hence the explicit 0 for an empty value.
    return np.where(length == 0, np.uint64(0), word[at].astype(np.uint64) >> np.minimum(shift, np.uint64(63)))
