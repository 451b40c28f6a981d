"""The outcomes of requests, as their clients record them."""

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
    """The SYN was answered by a RST."""
    BROKEN = "broken"
    """The connection was reset, timed out in the kernel, or closed before every byte had arrived."""
    PENDING = "pending"
    """The run ended before the request had ended."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request. Times are in seconds since the request was due; None: the event did not occur."""

    due_s: float
    """Time at which the request was due, in seconds since the log begins."""
    client: int
    server: str
    size: int
    connect_s: float | None
    first_byte_s: float | None
    done_s: float | None
    """The time at which the request ended, with any `ending`."""
    bytes: int
    """Bytes of the answer that arrived, without the header."""
    ending: Ending
    retries: int
    """Number of SYNs that the kernel retransmitted."""
    late_s: float
    """Seconds by which the load generator sent the first SYN too late."""


def write_outcomes(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Write outcomes to a file; the file has a temporary name until it is complete."""
    partial = path.with_suffix(".partial")
    partial.write_text("".join(f"{text}\n" for text in (HEADER, *(rows.line(outcome, 6) for outcome in outcomes))))
    partial.rename(path)


def read_outcomes(path: Path) -> list[Outcome]:
    """Read a file that `write_outcomes` wrote; raise ValueError for any other file."""
    lines = path.read_text().splitlines()
    if not lines or lines[0] != HEADER:
        raise ValueError(f"{path}: line 1 is not {HEADER!r}: these are no outcomes")
    return list(rows.read(Outcome, lines[1:]))
