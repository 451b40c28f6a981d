"""Stage ledger: what each server was asked and what it answered, cumulative."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sluice import columns
from sluice.balance import Counts

from .plan import Service
from .registers import Registers


async def read_counts(registers: Registers, services: Iterable[Service]) -> dict[int, Counts]:
    """The counts of all servers of services, as their balancers take them. Raises SwitchError.

    A client's handshake with an agent is over when the agent has answered: it takes no slot that would see its end.
    """
    agent = {server.id: service.is_content for service in services for server in service.servers}
    counts = await read_ledger(registers, list(agent))
    return {server: replace(one, completed=one.synack) if agent[server] else one for server, one in counts.items()}


async def read_ledger(registers: Registers, servers: Sequence[int]) -> dict[int, Counts]:
    """The counts of the given servers. Raises SwitchError."""
    counts = await registers.columns(list(columns.registers(columns.LEDGER).values()), servers)
    return {server: Counts(*row) for server, row in zip(servers, zip(*counts, strict=True), strict=True)}


async def read_columns(registers: Registers, servers: Sequence[int]) -> dict[int, dict[str, int | None]]:
    """What users see of the given servers, by the names of ``columns.SERVER``. Raises SwitchError.

    A count that the switch's program lacks is None.
    """
    named = columns.registers(columns.SERVER)
    known = {name: cell for name, cell in named.items() if registers.has(cell)}
    counts = dict(zip(known, await registers.columns(list(known.values()), servers), strict=True))
    return {
        server: {name: counts[name][at] if name in counts else None for name in named}
        for at, server in enumerate(servers)
    }
