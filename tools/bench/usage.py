"""What a process uses, out of /proc."""

from __future__ import annotations

import os
import time
from pathlib import Path


def resident_mb(pid: int) -> float:
    """Megabytes (10^6) of memory that are resident."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def cpu_seconds(pid: int) -> float:
    """Processor time so far, of all threads."""
    # The name, in parentheses, may hold spaces; times are fields 14 and 15 (proc(5)).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle_cpu_percent(pid: int, seconds: float) -> float:
    """Share of a core, in percent, that the process takes while nobody asks anything of it."""
    before, start = cpu_seconds(pid), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - start)
