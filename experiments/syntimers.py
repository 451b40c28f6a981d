"""Mean connect time that a client's SYN timers cause for a share of lost SYNs, for comparison with R.

Without side effects, except for `timers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from topo.testbed.nodes import syn_sysctls

FIRST_S = 1.0
"""Seconds until the first repetition: TCP_TIMEOUT_INIT (include/net/tcp.h; RFC 6298, section 2)."""


@dataclass(frozen=True, slots=True)
class SynTimers:
    """How a client repeats its SYN: `linear` times at steady intervals, then at doubled ones."""

    retries: int
    linear: int

    def sent_after(self) -> Iterator[float]:
        """Yield the seconds after the first SYN at which each SYN is sent, the first included.

        `tcp_retransmit_timer` doubles once its back-off count exceeds `tcp_syn_linear_timeouts`.
        """
        at, timeout = 0.0, FIRST_S
        yield at
        for count in range(1, self.retries + 1):
            at += timeout
            yield at
            if count > self.linear:
                timeout *= 2

    def connect_s(self, r: float, given_up_s: float) -> float:
        """Return the mean connect time of answered connections when each SYN is lost with probability R / (1 + R)."""
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
    """Read the timers of the host to which process `pid` belongs."""
    retries, linear = syn_sysctls(pid)
    return SynTimers(retries, linear)
