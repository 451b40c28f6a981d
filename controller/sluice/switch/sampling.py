"""Stage sampling: the share of packets that the switch samples, and the destinations of sampled packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy import P4TableAction, P4TableEntry

from sluice.addresses import IPV4_BITS, Packed, packed
from sluice.names import SAMPLES, Action, Register, Table

from .registers import Registers
from .state import State

_WRAP = 1 << 32


def settings(state: State) -> Iterator[P4TableEntry]:
    """Yield the keyless table's default action, which sets how many of 65,536 packets are sampled."""
    action = P4TableAction(Action.SET_SAMPLING, packets=round(state.crowd.sample_share * 65_536))
    yield P4TableEntry(Table.SAMPLING, is_default_action=True, action=action)


class SampleReader:
    """Reads the samples that the switch has added to its ring buffer since the previous reading."""

    def __init__(self) -> None:
        self._next: int | None = None

    def rebase(self) -> None:
        """Skip all samples that are in the ring buffer at the next reading."""
        self._next = None

    async def read(self, registers: Registers) -> Sequence[Packed]:
        """Return the destinations of the new samples, oldest first, at most SAMPLES; none at the first call. Raises
        SwitchError."""
        (end,) = await registers.read(Register.SAMPLE_NEXT, [0])
        start, self._next = self._next, end
        new = 0 if start is None else (end - start) % _WRAP
        if new == 0:
            return ()
        count = min(new, SAMPLES)
        cells = await registers.read(Register.SAMPLE_RING, [(end - count + i) % _WRAP % SAMPLES for i in range(count)])
        return [packed(cell, IPV4_BITS) for cell in cells]
