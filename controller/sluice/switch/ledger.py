"""Stage ledger: what each server was asked and what it answered, cumulative."""

from __future__ import annotations

from collections.abc import Sequence

from sluice.balance import Counts
from sluice.names import Register

from .registers import Registers

_CELLS = (
    Register.LEDGER_SYN,
    Register.LEDGER_SYNACK,
    Register.LEDGER_SYNACK_AGAIN,
    Register.LEDGER_COMPLETED,
    Register.LEDGER_RESET,
)


async def read_ledger(registers: Registers, servers: Sequence[int]) -> dict[int, Counts]:
    """The counts of the given servers. Raises SwitchError."""
    columns = await registers.columns(_CELLS, servers)
    return {server: Counts(*row) for server, row in zip(servers, zip(*columns, strict=True), strict=True)}
