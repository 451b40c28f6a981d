"""When a client sends its SYN again."""

from __future__ import annotations

from collections.abc import Sequence


def linear(first_s: float = 1.0, linear_timeouts: int = 4, retries: int = 6) -> Sequence[float]:
    """Linux since 6.5: so many waits of ``first_s``, then doubling from it (``tcp_syn_linear_timeouts``)."""
    return tuple(first_s * 2.0 ** max(0, number - linear_timeouts) for number in range(retries))


def exponential(first_s: float = 1.0, retries: int = 6) -> Sequence[float]:
    """Doubling from the first: RFC 6298 with 1 s, RFC 1122 (and the papers' clients) with 3 s."""
    return tuple(first_s * 2.0**number for number in range(retries))
