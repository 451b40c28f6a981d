"""Response rates by a time sliding window, computed by shifts and additions (docs/reference/algorithms.md)."""

from __future__ import annotations

from sluice.names import RATE_TICK_US, REGISTER_SIZES, TICK_BASE, Register

from .memory import Memory
from .units import FREE_STEPS

SLOTS = REGISTER_SIZES[Register.RATE_FLOW]
_FINGERPRINT, _TIME = 32, (1 << 32) - 1
_LARGEST = (1 << 32) - 1


class RateCells:
    """The two registers of response rates: the last packet's time, and the bytes in the window. Each data packet of a
    response updates the response's slot. A slot measures one response at a time."""

    def __init__(self, memory: Memory, step: int) -> None:
        """``step``: the length of one step of the window, in units of RATE_TICK_US; a power of two."""
        self._flow, self._bytes = memory.of(Register.RATE_FLOW), memory.of(Register.RATE_BYTES)
        self._step = step

    def packet(self, now_s: float, slot: int, fingerprint: int, size: int) -> bool:
        """Handle a data packet of ``size`` bytes, including the IPv4 header. Returns whether the slot measures the
        packet's response rather than another one."""
        now = (TICK_BASE + int(now_s * 1e6) // RATE_TICK_US) & _TIME
        cell = self._flow[slot]
        last = cell & _TIME
        if cell >> _FINGERPRINT != fingerprint and not _is_free(last, now, self._step):
            return False
        self._bytes[slot] = window(self._bytes[slot], last, now, size, self._step)
        self._flow[slot] = fingerprint << _FINGERPRINT | now
        return True


def place(rate_key: int) -> tuple[int, int]:
    """Return slot and fingerprint of the response with this key (see Connection.rate_key)."""
    return rate_key % SLOTS, rate_key // SLOTS


def window(content: int, last: int, now: int, size: int, step: int) -> int:
    """Return the bytes in the window after a packet of ``size`` bytes. ``content`` is the number of bytes in the window
    after the previous packet, which arrived at time ``last``.

    Times and ``step`` are in units of RATE_TICK_US; times have 32 bits.
    """
    if _is_free(last, now, step):
        return size
    total = min(_LARGEST, content + size)
    steps = (((now & -step) - (last & -step)) & _TIME) // step
    if steps >= 16:
        return total >> 2
    if steps >= 8:
        return (total >> 2) + (total >> 3)
    if steps >= 4:
        return (total >> 1) + (total >> 4)
    if steps >= 2:
        return total - (total >> 2)
    return total - (content >> 3) if steps else total


def _is_free(last: int, now: int, step: int) -> bool:
    return (now - last) & _TIME > FREE_STEPS * step
