"""The outcome of each request at its client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from topo.plan import rows

HEADER = "due_s,client,server,size,connect_s,first_byte_s,done_s,bytes,outcome,retries,late_s"


class Ending(StrEnum):
    """How a request ended."""

    FINISHED = "finished"
    """Every byte of the answer arrived."""
    GAVE_UP = "gave_up"
    """The client gave up."""
    REFUSED = "refused"
    """The connection request was answered by a reset."""
    BROKEN = "broken"
    """The connection was reset, timed out in the kernel, or closed before every byte had arrived."""
    PENDING = "pending"
    """The run ended before the request."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request.  Times in seconds since it was due; None for what did not happen."""

    due_s: float
    """Seconds since the log's beginning."""
    client: int
    server: str
    size: int
    connect_s: float | None
    first_byte_s: float | None
    done_s: float | None
    """The time of the end, whatever its kind."""
    bytes: int
    """Bytes of the answer that arrived, without the header."""
    ending: Ending
    retries: int
    """SYNs that the kernel sent again."""
    late_s: float
    """Delay of the first SYN behind its due time, caused by the load generator."""


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write the file; it gets its name once it is complete."""
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{text}\n" for text in (HEADER, *(rows.line(outcome, 6) for outcome in outcomes))))
    partial.rename(path)


def read_outcomes(path: Path) -> list[Outcome]:
    """Read a file that `write_outcomes` wrote; raise ValueError for any other file."""
    lines = path.read_text().splitlines()
    if not lines or lines[0] != HEADER:
        raise ValueError(f"{path}: line 1 is not {HEADER!r}: these are no outcomes")
    return list(rows.read(Outcome, lines[1:]))
