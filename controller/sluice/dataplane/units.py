"""Units of a target's program: its clocks, and the registers that contain connection states.

No other module converts times to register values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.names import RATE_FLOW_BITS, RATE_TICK_US, TICK_US, TofinoRegister

STEPS = 7
"""The number of steps in a window of a response rate; see p4src/stages/rates.p4."""
FREE_STEPS = 32
"""The number of steps without a packet of a response after which the response's slot is free."""


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a target's clocks. Stamps have 32 bits and wrap: they are compared as serial numbers (RFC 1982)."""

    tick_us: float
    """Microseconds in a tick of the connection table and of remembered clients (``meta.now``)."""
    rate_tick_us: float
    """Microseconds in a tick of the response rates (``meta.clock``)."""
    pin_states: tuple[str, str] | None = None
    """The registers of the connections' states, one per way; None: the states are part of the keys."""
    rate_slot_bits: int = 0
    """The number of low bits of a response's fingerprint that are equal to those of its slot's number."""

    def ticks(self, seconds: float) -> int:
        """Return a time in the connection table's ticks, rounded up."""
        return math.ceil(seconds * 1_000_000 / self.tick_us)

    def step(self, window_s: float) -> int:
        """Return the step, in ticks of the rates, for which STEPS steps are nearest to ``window_s``; it is a power of
        two."""
        return 1 << max(0, round(math.log2(window_s * 1_000_000 / self.rate_tick_us / STEPS)))


MICROSECONDS = Units(TICK_US, RATE_TICK_US)
"""The units of v1model: its clock has 48 bits and counts microseconds."""

NANOSECONDS = Units(
    (1 << 26) / 1000,
    (1 << 20) / 1000,
    pin_states=(TofinoRegister.PIN_STATE_1, TofinoRegister.PIN_STATE_2),
    rate_slot_bits=RATE_FLOW_BITS,
)
"""The units of Tofino: its clock has 48 bits and counts nanoseconds; the program extends it by a count of its wraps
(p4src/tna/clock.p4)."""
