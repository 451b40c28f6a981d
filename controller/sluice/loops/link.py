"""A switch under this controller's lead: its session, its registers, and what it holds."""

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
    """Writes take turns, so that each one starts from what the last one left."""

    def __init__(self, session: Session, registers: Registers, found: Readback, since_s: float = 0.0) -> None:
        self.session = session
        self.registers = registers
        self.since_s = since_s
        """When the lead began, in the loop's time."""
        self.clock = SwitchClock(registers.units)
        self._found = found
        self._turn = asyncio.Lock()

    def size(self, register: str) -> int:
        """Cells of a register in the program that runs: builds of other sizes differ."""
        return self.session.pipeline.schema.registers[register].size

    async def apply(self, state: State, tables: Collection[Table] | None = None, meters: Collection[Meter] = ()) -> int:
        """Write what differs from ``state`` (in ``tables`` and ``meters`` only, when given); the number of updates.

        Raises SwitchError; the next write starts from what the switch has taken of this one.
        """
        # Whoever waits may be cancelled; the write goes on, or nobody would know what the switch has of it.
        return await asyncio.shield(self._apply(state, tables, meters))

    async def preview(self, state: State, before: Plan) -> list[str]:
        """What ``apply`` would write, in words; ``before`` names what the switch has. Raises SwitchError."""
        async with self._turn:
            return describe(self.session, self._found, state, before)

    async def _apply(self, state: State, tables: Collection[Table] | None, meters: Collection[Meter]) -> int:
        async with self._turn:
            try:
                return await reconcile(self.session, self._found, state, tables, meters)
            except SwitchLost:
                raise
            except SwitchError:
                with suppress(SwitchError):
                    self._found = await read_back(self.session)
                raise
