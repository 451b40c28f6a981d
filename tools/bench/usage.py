"""Measures the processor time of an idle process."""

from __future__ import annotations

import time

from topo.testbed.processes import process_usage


def idle_cpu_percent(pid: int, seconds: float) -> float:
    """Return the share of a core, in percent, that the process uses without any request or packet."""
    before, start = process_usage(pid)[0], time.monotonic()
    time.sleep(seconds)
    return 100 * (process_usage(pid)[0] - before) / (time.monotonic() - start)
