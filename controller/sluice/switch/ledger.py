"""Stage ledger: what each server was asked and what it answered, cumulative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sluice.balance import Counts
from sluice.names import Register

from .plan import Service
from .registers import Registers

_CELLS = (
    Register.LEDGER_SYN,
    Register.LEDGER_SYNACK,
    Register.LEDGER_SYNACK_AGAIN,
    Register.LEDGER_COMPLETED,
    Register.LEDGER_RESET,
)


async def read_counts(registers: Registers, services: Iterable[Service]) -> dict[int, Counts]:
    """The counts of all servers of services, as their balancers take them. Raises SwitchError.

    A client's handshake with an agent is over when the agent has answered: it takes no slot that would see its end.
    """
    agent = {server.id: service.is_content for service in services for server in service.servers}
    counts = await read_ledger(registers, list(agent))
    return {server: replace(one, completed=one.synack) if agent[server] else one for server, one in counts.items()}


async def read_ledger(registers: Registers, servers: Sequence[int]) -> dict[int, Counts]:
    """The counts of the given servers. Raises SwitchError."""
    columns = await registers.columns(_CELLS, servers)
    return {server: Counts(*row) for server, row in zip(servers, zip(*columns, strict=True), strict=True)}
