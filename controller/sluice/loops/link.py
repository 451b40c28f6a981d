"""A switch whose primary is this controller: the session, the registers, and the entries in the switch's tables."""

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
    """The connection to the switch. Writes exclude each other, so that each starts from the result of the previous
    one."""

    def __init__(self, session: Session, registers: Registers, snapshot: Readback, since_s: float = 0.0) -> None:
        self.session = session
        self.registers = registers
        self.since_s = since_s
        """Time, by the event loop's clock, at which this controller became primary."""
        self.clock = SwitchClock(registers.units)
        self._snapshot = snapshot
        self._turn = asyncio.Lock()

    def __deepcopy__(self, memo: object) -> Link:
        """Return this link itself: a ``World`` is copied only to try a configuration on it, for the same switch."""
        return self

    def size(self, register: str) -> int:
        """Return the number of cells of a register. It depends on how the running program was compiled."""
        return self.session.pipeline.schema.registers[register].size

    async def apply(self, state: State, tables: Collection[Table] | None = None, meters: Collection[Meter] = ()) -> int:
        """Write the differences between the switch and ``state``. Returns the number of updates.

        ``tables``: write only these tables and ``meters``; None: write all tables and meters. Raises SwitchError; the
        next write then starts from those updates that the switch has accepted.
        """
        # The calling task may be cancelled. The write still runs to its end, because otherwise its result would be
        # unknown.
        return await asyncio.shield(self._apply(state, tables, meters))

    async def preview(self, state: State, before: Plan) -> list[str]:
        """Describe in words what ``apply`` would write. ``before`` is the plan with the names of the switch's present
        servers and services. Raises SwitchError."""
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
