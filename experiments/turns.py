"""Counts of the turns (time slices) of processes on a CPU, and of the turns that ended because the process slept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Turns:
    """Cumulative counts of a process and its children."""

    turns: int
    """Number of times that the kernel put a process on a CPU (the third number of /proc/PID/schedstat)."""
    sleeps: int
    """Number of turns that ended because the process waited (voluntary_ctxt_switches of /proc/PID/status)."""
    waited_s: float
    """Seconds for which a process was runnable but had no CPU."""

    def since(self, before: Turns) -> Turns:
        """Return the difference between these counts and an earlier reading."""
        return Turns(self.turns - before.turns, self.sleeps - before.sleeps, self.waited_s - before.waited_s)


def turns_of(pid: int) -> Turns:
    """Return the counts of a process and its children; children that have ended do not count."""
    turns = sleeps = waited_ns = 0
    for process in _family(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            _, waited, slices = map(int, (PROC / str(process) / "schedstat").read_text().split())
            status = dict(line.split(":", 1) for line in (PROC / str(process) / "status").read_text().splitlines())
            turns, waited_ns = turns + slices, waited_ns + waited
            sleeps += int(status["voluntary_ctxt_switches"])
    return Turns(turns, sleeps, waited_ns / 1e9)


def _family(pid: int) -> Iterator[int]:
    yield pid
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in (PROC / str(pid) / "task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))
