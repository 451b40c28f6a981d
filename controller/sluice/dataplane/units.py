"""What a program's numbers are on a target: its clocks, and where it keeps states.

The one place where a time becomes a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.names import RATE_FLOW_BITS, RATE_TICK_US, TICK_US, TofinoRegister

STEPS = 7
"""Steps in a window; see p4src/stages/rates.p4."""
FREE_STEPS = 32
"""A slot is free when its response has been silent for longer than this."""


@dataclass(frozen=True, slots=True)
class Units:
    """A target's clocks. Stamps are 32 bits and wrap: they are compared as serial numbers."""

    tick_us: float
    """Of the connection table and of the memory of clients (``meta.now``)."""
    rate_tick_us: float
    """Of the response rates (``meta.clock``)."""
    pin_states: tuple[str, str] | None = None
    """The registers of the connections' states, by way; None: the keys hold them."""
    rate_slot_bits: int = 0
    """How many low bits of a response's fingerprint are those of its slot's number."""

    def ticks(self, seconds: float) -> int:
        """A time in the connection table's ticks, rounded up."""
        return math.ceil(seconds * 1_000_000 / self.tick_us)

    def step(self, window_s: float) -> int:
        """The step of a response's window whose STEPS are nearest to ``window_s``: a power of two of rates' ticks."""
        return 1 << max(0, round(math.log2(window_s * 1_000_000 / self.rate_tick_us / STEPS)))


MICROSECONDS = Units(TICK_US, RATE_TICK_US)
"""v1model: a clock of 48 bits that counts microseconds."""

NANOSECONDS = Units(
    (1 << 26) / 1000,
    (1 << 20) / 1000,
    pin_states=(TofinoRegister.PIN_STATE_1, TofinoRegister.PIN_STATE_2),
    rate_slot_bits=RATE_FLOW_BITS,
)
"""Tofino: a clock of 48 bits that counts nanoseconds, with its turns above it (p4src/tna/clock.p4)."""
