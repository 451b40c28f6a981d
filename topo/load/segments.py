"""TCP segments as NumPy columns, and their conversion from and to Ethernet frames. A segment has four bytes of payload,
or no payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
TCP = 6
TTL = 64

_FIELDS: Sequence[tuple[str, str]] = (
    *(("eth_dst", "S6"), ("eth_src", "S6"), ("eth_type", ">u2")),
    *(("version", "u1"), ("tos", "u1"), ("length", ">u2"), ("id", ">u2"), ("fragment", ">u2")),
    *(("ttl", "u1"), ("protocol", "u1"), ("checksum", ">u2"), ("src", ">u4"), ("dst", ">u4")),
    *(("src_port", ">u2"), ("dst_port", ">u2"), ("sequence", ">u4"), ("acknowledgement", ">u4")),
    *(("offset", "u1"), ("flags", "u1"), ("window", ">u2"), ("tcp_checksum", ">u2"), ("urgent", ">u2")),
)
_BARE = np.dtype(list(_FIELDS))
_WORDY = np.dtype([*_FIELDS, ("word", ">u4")])
_IP, _TCP = 14, 34
"""Offsets of the IP and TCP headers in a frame."""

Column = NDArray[np.uint32]


@dataclass
class Segments:
    """TCP segments as columns of header fields; a segment is a row."""

    src: Column
    src_port: Column
    dst: Column
    dst_port: Column
    sequence: Column
    acknowledgement: Column
    flags: Column
    word: Column
    """The payload of four bytes as a number."""
    has_word: NDArray[np.bool_]

    def of(self, which: NDArray[np.bool_]) -> Self:
        """Return the segments for which ``which`` is True."""
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))


def segments(size: int, *, word: int | NDArray[Any] | None = None, **columns: int | NDArray[Any]) -> Segments:
    """Return ``size`` segments with the fields ``columns``; a scalar applies to all segments, and a missing field is 0.

    Without ``word`` the segments have no payload.
    """

    def column(name: str) -> Column:
        return np.broadcast_to(np.asarray(columns.get(name, 0)).astype(np.uint32), (size,))

    names = (field.name for field in fields(Segments))
    payload = np.broadcast_to(np.asarray(0 if word is None else word).astype(np.uint32), (size,))
    headers = [column(name) for name in names if name not in ("word", "has_word")]
    return Segments(*headers, word=payload, has_word=np.full(size, word is not None))


def read(frames: NDArray[np.uint8]) -> Segments:
    """Return the TCP segments in IPv4 frames; other frames, and frames with IP options, are ignored."""
    rows = np.ascontiguousarray(frames[:, : _WORDY.itemsize]).view(_WORDY)[:, 0]
    rows = rows[(rows["version"] == 0x45) & (rows["protocol"] == TCP)]
    names = ("src", "src_port", "dst", "dst_port", "sequence", "acknowledgement", "flags", "word")
    columns = (rows[name].astype(np.uint32) for name in names)
    return Segments(*columns, has_word=rows["length"] > _BARE.itemsize - _IP)


def frames(macs: tuple[bytes, bytes], made: Segments) -> NDArray[np.uint8]:
    """Return the Ethernet frames of segments, of which either all or none have a payload. ``macs``: destination and
    source MAC address."""
    wordy = bool(made.has_word.any())
    rows = np.zeros(made.src.size, _WORDY if wordy else _BARE)
    rows["eth_dst"], rows["eth_src"] = macs
    rows["eth_type"], rows["version"], rows["ttl"], rows["protocol"] = 0x0800, 0x45, TTL, TCP
    rows["length"] = rows.dtype.itemsize - _IP
    for name in ("src", "src_port", "dst", "dst_port", "sequence", "acknowledgement", "flags"):
        rows[name] = getattr(made, name)
    rows["offset"], rows["window"] = 5 << 4, 0xFFFF
    if wordy:
        rows["word"] = made.word
    octets = rows.view(np.uint8).reshape(rows.size, -1)
    rows["checksum"] = _checksum(octets[:, _IP:_TCP])
    pseudo = TCP + octets.shape[1] - _TCP
    rows["tcp_checksum"] = _checksum(octets[:, _TCP - 8 :], pseudo)
    return octets


def _checksum(octets: NDArray[np.uint8], more: int = 0) -> NDArray[np.uint32]:
    """Return the Internet checksum (RFC 1071) of each row; ``more`` is a number that is added to each sum."""
    words = np.ascontiguousarray(octets).view(">u2").astype(np.uint32)
    total = words.sum(axis=1, dtype=np.uint32) + np.uint32(more)
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
