"""The access logs of the 1998 World Cup's web site: 20-byte records, big-endian.

The logs are public (Internet Traffic Archive, "WorldCup98"), gzipped or not.  A record has four fields of 32 bits: time
(seconds since 1970, GMT), client, object, size in bytes. Four fields of 8 bits follow: method, status, type, server;
the upper three bits of `server` are the region. The times have a resolution of 1 s, so the requests of a second are
spread evenly over the second.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from topo.plan.requests import LogFormatError, Request

RECORD = struct.Struct(">IIIIBBBB")
REGION_SHIFT = 5
SIZE_UNKNOWN = 0xFFFF_FFFF
"""Code for a size that the server did not log; such a request becomes one with an empty answer."""
RECORDS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Record:
    """A record with the fields of the file."""

    timestamp: int
    client: int
    object: int
    size: int
    method: int = 0
    status: int = 0
    type: int = 0
    server: int = 0

    @property
    def region(self) -> int:
        """Number of the server's region (Chen & Heidemann use one region only)."""
        return self.server >> REGION_SHIFT

    def pack(self) -> bytes:
        """Return the 20 bytes of the record."""
        return RECORD.pack(
            self.timestamp, self.client, self.object, self.size, self.method, self.status, self.type, self.server
        )


def read_records(path: Path) -> Iterator[Record]:
    """Read a binary log, gzipped if its name ends in .gz; raise LogFormatError if its length is not a multiple of 20
    bytes, OSError or EOFError if it cannot be read."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
        offset = 0
        while block := file.read(RECORD.size * RECORDS_AT_ONCE):
            if len(block) % RECORD.size:
                place = offset + len(block) - len(block) % RECORD.size
                raise LogFormatError(f"{path}: byte {place}: the last record is cut off; is it gzipped without .gz?")
            for fields in RECORD.iter_unpack(block):
                yield Record(*fields)
            offset += len(block)


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write a binary log."""
    with path.open("wb") as file:
        for record in records:
            file.write(record.pack())


def as_requests(records: Iterable[Record], server: str, *, region: int | None = None) -> Iterator[Request]:
    """Convert records into requests to `server`, with times from 0 on; ``region``: only records of this region, None:
    all records. Raises LogFormatError for a record that is earlier than its predecessor."""
    first: int | None = None
    second: list[Record] = []
    for record in records:
        if region is not None and record.region != region:
            continue
        if first is None:
            first = record.timestamp
        if second and record.timestamp != second[0].timestamp:
            if record.timestamp < second[0].timestamp:
                raise LogFormatError(f"time goes back from {second[0].timestamp} to {record.timestamp}")
            yield from _spread(second, first, server)
            second = []
        second.append(record)
    if first is not None:
        yield from _spread(second, first, server)


def _spread(second: list[Record], first: int, server: str) -> Iterator[Request]:
    for place, record in enumerate(second):
        size = 0 if record.size == SIZE_UNKNOWN else record.size
        yield Request(record.timestamp - first + place / len(second), record.client, server, size)
