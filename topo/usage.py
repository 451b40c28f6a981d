"""What a process uses, out of /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def processor_s(pid: int) -> float:
    """Return the seconds a process's first thread has run, to the nanosecond (/proc/PID/schedstat)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def threads_s(pid: int) -> float:
    """Return the seconds that all threads of a process have run, to the nanosecond; of threads that ended, nothing."""
    seconds = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            seconds += int((thread / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def process_usage(pid: int) -> tuple[float, int]:
    """Return the seconds of CPU a process has used, all threads, and its resident bytes (proc(5))."""
    columns = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(columns[11]) + int(columns[12])
    return ticks / TICKS_PER_S, int(columns[21]) * PAGE_BYTES
