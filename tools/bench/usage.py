"""What an idle process takes of the processor."""

from __future__ import annotations

import time

from topo.testbed.processes import process_usage


def idle_cpu_percent(pid: int, seconds: float) -> float:
    """Share of a core, in percent, that the process takes while nobody asks anything of it."""
    before, start = process_usage(pid)[0], time.monotonic()
    time.sleep(seconds)
    return 100 * (process_usage(pid)[0] - before) / (time.monotonic() - start)
