"""Load on a pool of servers: connections offered at a rate, and busy processes that compete with a server's workers."""

from __future__ import annotations

import math
from dataclasses import dataclass

FD_SETSIZE = 1024
"""Number of file descriptors that an httperf process can wait for, including some that it needs for itself."""

USABLE_DESCRIPTORS = FD_SETSIZE - 24

PROCESSES = 2
"""Least number of httperf processes if the machine has as many processors. httperf spins; a single process would occupy
one processor, and the kernel would move it to another one only every few seconds."""

HOGS = 24
"""Number of busy processes (of `stress`) that share the CPU of a loaded server with Apache's workers."""


@dataclass(frozen=True, slots=True)
class Load:
    """Connections offered at a mean rate for a time. A client gives a connection up after `timeout_s` without
    progress."""

    rate_per_s: float
    seconds: float
    timeout_s: float = 5.0

    @property
    def connections(self) -> int:
        """The number of connections that are offered."""
        return max(1, round(self.rate_per_s * self.seconds))

    def processes(self, cores: int) -> int:
        """Return the number of httperf processes on a machine with `cores` processors. The processes have enough file
        descriptors even if every connection lasts until its timeout."""
        needed = math.ceil(self.rate_per_s * self.timeout_s / USABLE_DESCRIPTORS)
        return min(self.connections, max(min(PROCESSES, cores), needed))
