"""The request log that lab and simulation replay (one line per request, in the order of time), and the patience of
clients."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from topo.plan import rows


class LogFormatError(ValueError):
    """A request log that cannot be read; the message contains file and line."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client."""

    time_s: float
    """Seconds since the log begins."""
    client: int
    """Number of the client; requests with equal numbers have the same address."""
    server: str
    """Name of the destination."""
    size: int
    """Bytes of the answer."""
    client_bytes_per_s: int = 0
    """Rate of the client's own access link; 0: unlimited."""

    def compressed(self, factor: float) -> Request:
        """Return the request with its time divided by `factor` and its link's rate multiplied by `factor`."""
        return replace(self, time_s=self.time_s / factor, client_bytes_per_s=round(self.client_bytes_per_s * factor))


HEADER = rows.header(Request)


def write_log(path: Path, requests: Iterable[Request]) -> int:
    """Write a log and return how many requests it has."""
    lines = [rows.line(request, 6) for request in requests]
    path.write_text("".join(f"{text}\n" for text in (HEADER, *lines)))
    return len(lines)


def read_log(path: Path) -> Iterator[Request]:
    """Read a log. Raises LogFormatError with the line's number for a line that is no request, has a negative size, or
    has a time before the previous line's time."""
    with path.open() as file:
        if file.readline().strip() != HEADER:
            raise LogFormatError(f"{path}: line 1 is not {HEADER!r}: this is no request log")
        latest = 0.0
        for number, text in enumerate(file, 2):
            try:
                (request,) = rows.read(Request, [text.rstrip("\n")])
            except (ValueError, TypeError) as error:
                raise LogFormatError(f"{path}: line {number}: {text.strip()!r} is no request: {error}") from error
            if request.time_s < latest or request.size < 0:
                raise LogFormatError(f"{path}: line {number}: times must not fall, sizes must not be negative")
            latest = request.time_s
            yield request


def draw_wait(mean_s: float, source: random.Random) -> float:
    """Return a random number of seconds after which a client abandons a request; infinite for a mean of 0.

    A client waits for an exponential time with mean `mean_s`. With equal probability, it then abandons the request or
    waits for another such time, and so on. Chen & Heidemann use a mean of 60 s (section 7.6.1).
    """
    if mean_s <= 0:
        return math.inf
    waited = source.expovariate(1 / mean_s)
    while source.random() < 0.5:
        waited += source.expovariate(1 / mean_s)
    return waited
