"""Load on a pool: connections offered at a rate, and busy processes beside a server's workers."""

from __future__ import annotations

import math
from dataclasses import dataclass

FD_SETSIZE = 1024
"""File descriptors that an httperf process can wait for, a few of them its own."""

USABLE_DESCRIPTORS = FD_SETSIZE - 24

PROCESSES = 2
"""Least number of httperf processes where the load has as many processors.  A single spinning process occupies one of
them, and the kernel moves it only every few seconds."""

HOGS = 24
"""Busy processes that share the server's CPU with Apache's workers."""


@dataclass(frozen=True, slots=True)
class Load:
    """Connections offered at a mean rate for a time; one is given up after `timeout_s` without progress."""

    rate_per_s: float
    seconds: float
    timeout_s: float = 5.0

    @property
    def connections(self) -> int:
        """The number of connections that are offered."""
        return max(1, round(self.rate_per_s * self.seconds))

    def processes(self, cores: int) -> int:
        """Return the number of httperf processes on so many processors: enough even if every connection lasts until its
        timeout."""
        needed = math.ceil(self.rate_per_s * self.timeout_s / USABLE_DESCRIPTORS)
        return min(self.connections, max(min(PROCESSES, cores), needed))
