"""Response rates: what the switch makes of a response's packets. Pure.

Mirrors p4src/stages/rates.p4 and p4src/v1model/externs/rate_cells.p4 to the bit; a packet test holds the two against
each other (stages/rates.py), tools/tsw_error.py this and the exact estimator.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from sluice.names import RATE_FLOWS, RATE_TICK_US, REGISTER_SIZES, Register
from sluice.replay.ratecells import FREE_STEPS, moved

from .slots import Tuple5

SLOT_BITS = RATE_FLOWS.bit_length() - 1
WINDOW_STEPS = 7
"""Steps to a window: then 7/8 is exactly what one step leaves."""


def place(key: Tuple5) -> tuple[int, int]:
    """Slot and fingerprint of a response."""
    hashed = zlib.crc32(key.packed("spkcx"))
    return hashed % REGISTER_SIZES[Register.RATE_FLOW], hashed >> SLOT_BITS


@dataclass
class RateCell:
    """A slot while one response has it. Times are in units of RATE_TICK_US, with the switch's base added."""

    step: int
    """A power of two."""
    last: int = 0
    content: int = 0

    def add(self, now: int, size: int) -> None:
        """A packet of ``size`` bytes."""
        if now - self.last > FREE_STEPS * self.step:
            self.content = size
        else:
            steps = now // self.step - self.last // self.step
            self.content = moved(self.content, steps, size)
        self.last = now

    @property
    def bits_per_second(self) -> float:
        """What a reader makes of the cell."""
        window = WINDOW_STEPS * self.step + self.last % self.step
        return 8e6 * self.content / (window * RATE_TICK_US)
