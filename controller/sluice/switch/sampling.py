"""Stage sampling: how many packets are sampled, and their destinations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from finsy import P4TableAction, P4TableEntry

from sluice.addresses import IPV4_BITS, Packed, packed
from sluice.names import SAMPLES, Action, Register, Table

from .registers import Registers
from .state import State

_WRAP = 1 << 32


def settings(state: State) -> Iterator[P4TableEntry]:
    """The default action of the keyless table: packets in 65,536."""
    action = P4TableAction(Action.SET_SAMPLING, packets=round(state.crowd.sample_share * 65_536))
    yield P4TableEntry(Table.SAMPLING, is_default_action=True, action=action)


class SampleReader:
    """Reads what came into the ring since the reading before."""

    def __init__(self) -> None:
        self._next: int | None = None

    def rebase(self) -> None:
        """What is in the ring by the next reading is not looked at."""
        self._next = None

    async def read(self, registers: Registers) -> Sequence[Packed]:
        """Destinations of sampled packets, oldest first, at most SAMPLES; none the first time. Raises SwitchError."""
        (end,) = await registers.read(Register.SAMPLE_NEXT, [0])
        start, self._next = self._next, end
        new = 0 if start is None else (end - start) % _WRAP
        if new == 0:
            return ()
        many = min(new, SAMPLES)
        cells = await registers.read(Register.SAMPLE_RING, [(end - many + i) % _WRAP % SAMPLES for i in range(many)])
        return [packed(cell, IPV4_BITS) for cell in cells]
