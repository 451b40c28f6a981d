"""A switch that this controller leads: its session, its registers, and the entries that it has."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress

from sluice.names import Meter, Table
from sluice.switch.changes import describe
from sluice.switch.errors import SwitchError, SwitchLost
from sluice.switch.plan import Plan
from sluice.switch.reconcile import Readback, read_back, reconcile
from sluice.switch.registers import Registers
from sluice.switch.session import Session
from sluice.switch.state import State
from sluice.switch.switchclock import SwitchClock


class Link:
    """The led switch. Writes take turns, so that each starts from the result of the last one."""

    def __init__(self, session: Session, registers: Registers, snapshot: Readback, since_s: float = 0.0) -> None:
        self.session = session
        self.registers = registers
        self.since_s = since_s
        """Time, by the loop, at which the lead began."""
        self.clock = SwitchClock(registers.units)
        self._snapshot = snapshot
        self._turn = asyncio.Lock()

    def __deepcopy__(self, memo: object) -> Link:
        """Return this one: a copy of the world only tries a configuration, and the switch is the same."""
        return self

    def size(self, register: str) -> int:
        """Return the number of cells of a register in the running program, which depends on how it was built."""
        return self.session.pipeline.schema.registers[register].size

    async def apply(self, state: State, tables: Collection[Table] | None = None, meters: Collection[Meter] = ()) -> int:
        """Write what differs from ``state``, in ``tables`` and ``meters`` only where given. Returns the number of
        updates.

        Raises SwitchError; the next write then starts from what the switch has taken of this one.
        """
        # The calling task may be cancelled. The write is completed, since its result would be unknown otherwise.
        return await asyncio.shield(self._apply(state, tables, meters))

    async def preview(self, state: State, before: Plan) -> list[str]:
        """Return in words what ``apply`` would write. ``before`` has the names of what the switch has. Raises
        SwitchError."""
        async with self._turn:
            return describe(self.session, self._snapshot, state, before)

    async def _apply(self, state: State, tables: Collection[Table] | None, meters: Collection[Meter]) -> int:
        async with self._turn:
            try:
                return await reconcile(self.session, self._snapshot, state, tables, meters)
            except SwitchLost:
                raise
            except SwitchError:
                with suppress(SwitchError):
                    self._snapshot = await read_back(self.session)
                raise
