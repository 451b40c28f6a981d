"""A request log as the replay reads it: one line per request, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

HEADER = "time_s,client,server,size,client_bytes_per_s"


class LogFormatError(ValueError):
    """A request log that cannot be read; the message names the place."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client."""

    time_s: float
    """Seconds since the log begins."""
    client: int
    """Number of the client; equal numbers are one address."""
    server: str
    """Name of the destination."""
    size: int
    """Bytes of the answer."""
    client_bytes_per_s: int = 0
    """What the client's own access link takes; 0 is all there is."""

    def compressed(self, factor: float) -> Request:
        """Return the request as it is when time runs `factor` times as fast: links carry that much more."""
        return replace(self, time_s=self.time_s / factor, client_bytes_per_s=round(self.client_bytes_per_s * factor))


def write_log(path: Path, requests: Iterable[Request]) -> int:
    """Write a log and return how many requests it has."""
    count = 0
    with path.open("w") as file:
        file.write(HEADER + "\n")
        for one in requests:
            file.write(f"{one.time_s:.6f},{one.client},{one.server},{one.size},{one.client_bytes_per_s}\n")
            count += 1
    return count


def read_log(path: Path) -> Iterator[Request]:
    """Read a log; raise LogFormatError, with the line, for what is none or goes back in time."""
    with path.open() as file:
        if file.readline().strip() != HEADER:
            raise LogFormatError(f"{path}: line 1 is not {HEADER!r}: this is no request log")
        latest = 0.0
        for number, line in enumerate(file, 2):
            try:
                time_s, client, server, size, pace = line.rstrip("\n").split(",")
                one = Request(float(time_s), int(client), server, int(size), int(pace))
            except ValueError as error:
                raise LogFormatError(f"{path}: line {number}: {line.strip()!r} is no request: {error}") from error
            if one.time_s < latest or one.size < 0:
                raise LogFormatError(f"{path}: line {number}: times must not fall, sizes must not be negative")
            latest = one.time_s
            yield one
