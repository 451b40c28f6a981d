"""What stage rates of the pipeline keeps: responses' rates by a time sliding window, made of shifts and adds.

In step with p4src/stages/rates.p4: the packet tests hold `moved` against the switch (ptf-tests/stages/rates.py).
"""

from __future__ import annotations

from sluice.names import RATE_TICK_US, REGISTER_SIZES, TICK_BASE, Register

from .memory import Memory

FREE_STEPS = 32
"""A slot is free when its response has been silent for longer than this."""
SLOTS = REGISTER_SIZES[Register.RATE_FLOW]
_FINGERPRINT, _TIME = 32, (1 << 32) - 1
_LARGEST = (1 << 32) - 1


class RateCells:
    """The two registers, kept up to date packet by packet. A slot has one response at a time."""

    def __init__(self, memory: Memory, step: int) -> None:
        """``step``: in units of RATE_TICK_US, a power of two."""
        self._flow, self._bytes = memory.of(Register.RATE_FLOW), memory.of(Register.RATE_BYTES)
        self._step, self._shift = step, step.bit_length() - 1

    def packet(self, now_s: float, slot: int, fingerprint: int, size: int) -> None:
        """A data packet of ``size`` bytes, IPv4's header included, of the response with this place."""
        now = (TICK_BASE + int(now_s * 1e6) // RATE_TICK_US) & _TIME
        cell = self._flow[slot]
        last = cell & _TIME
        if (now - last) & _TIME > FREE_STEPS * self._step:
            self._bytes[slot] = size
        elif cell >> _FINGERPRINT != fingerprint:
            return
        else:
            steps = (((now & -self._step) - (last & -self._step)) & _TIME) >> self._shift
            self._bytes[slot] = moved(self._bytes[slot], steps, size)
        self._flow[slot] = fingerprint << _FINGERPRINT | now


def moved(content: int, steps: int, size: int) -> int:
    """Bytes in the window behind a packet of ``size`` bytes that came so many steps after the one before."""
    both = min(_LARGEST, content + size)
    if steps >= 16:
        return both >> 2
    if steps >= 8:
        return (both >> 2) + (both >> 3)
    if steps >= 4:
        return (both >> 1) + (both >> 4)
    if steps >= 2:
        return both - (both >> 2)
    return both - (content >> 3) if steps else both
