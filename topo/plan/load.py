"""Load on a pool: connections offered at a rate, and busy processes beside a server's workers."""

from __future__ import annotations

import math
from dataclasses import dataclass

FD_SETSIZE = 1024
"""httperf selects over at most this many descriptors, a few of them its own."""

USABLE_DESCRIPTORS = FD_SETSIZE - 24

PROCESSES = 2
"""At least, where so many processors are the load's: one that spins alone is on one of them, and the kernel moves it
only every few seconds."""

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
        """How many connections are offered."""
        return max(1, round(self.rate_per_s * self.seconds))

    def processes(self, cores: int) -> int:
        """Return how many httperf processes are used on so many processors: enough if every connection should last
        until its timeout."""
        needed = math.ceil(self.rate_per_s * self.timeout_s / USABLE_DESCRIPTORS)
        return min(self.connections, max(min(PROCESSES, cores), needed))
