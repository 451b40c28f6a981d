"""Mean connect time that R and a client's SYN timers predict, for comparison with the measured time.

The functions are pure, except for `timers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topo.testbed.nodes import syn_sysctls

FIRST_S = 1.0
"""Seconds from the first SYN to its first repetition: TCP_TIMEOUT_INIT (include/net/tcp.h; RFC 6298, section 2)."""


@dataclass(frozen=True, slots=True)
class SynTimers:
    """A client's schedule of SYN repetitions: `linear` repetitions at constant intervals, then at intervals that
    double."""

    retries: int
    linear: int

    def sent_after(self) -> Iterator[float]:
        """Yield the time of each SYN in seconds after the first SYN, beginning with 0.

        Linux's `tcp_retransmit_timer` doubles the timeout once the back-off count exceeds `tcp_syn_linear_timeouts`.
        """
        at, timeout = 0.0, FIRST_S
        yield at
        for count in range(1, self.retries + 1):
            at += timeout
            yield at
            if count > self.linear:
                timeout *= 2

    def connect_s(self, r: float, given_up_s: float) -> float:
        """Return the mean connect time in seconds of the connections that are answered within `given_up_s`, if each SYN
        is lost with probability R / (1 + R)."""
        lost = r / (1 + r)
        total = answered = 0.0
        share = 1.0
        for at in self.sent_after():
            if at >= given_up_s:
                break
            answered += share * (1 - lost)
            total += share * (1 - lost) * at
            share *= lost
        return total / answered


def timers(pid: int) -> SynTimers:
    """Return the SYN timers that the kernel uses in the network namespace of process `pid`."""
    retries, linear = syn_sysctls(pid)
    return SynTimers(retries, linear)
