"""Stage ledger: cumulative counts of each server's SYNs, SYN-ACKs, completed handshakes and RSTs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sluice import columns
from sluice.balance import Counts

from .plan import Service
from .registers import Registers


async def read_counts(registers: Registers, services: Iterable[Service]) -> dict[int, Counts]:
    """Return the counts of all servers of ``services`` in the form that the balancers require. Raises SwitchError.

    An agent's handshake counts as completed once the agent has answered: the connection has no slot in the connection
    table, and only a slot would let the switch recognise the handshake's last ACK.
    """
    is_agent = {server.id: service.is_content for service in services for server in service.servers}
    counts = await read_ledger(registers, list(is_agent))
    return {
        server: replace(count, completed=count.synack) if is_agent[server] else count
        for server, count in counts.items()
    }


async def read_ledger(registers: Registers, servers: Sequence[int]) -> dict[int, Counts]:
    """Read the counts of the given servers. Raises SwitchError."""
    counts = await registers.columns(list(columns.registers(columns.LEDGER).values()), servers)
    return {server: Counts(*row) for server, row in zip(servers, zip(*counts, strict=True), strict=True)}


async def read_columns(registers: Registers, servers: Sequence[int]) -> dict[int, dict[str, int | None]]:
    """Return those counts of the given servers that users see, by the names of ``columns.SERVER``. Raises SwitchError.

    A count that the switch's program does not have is None.
    """
    named = columns.registers(columns.SERVER)
    available = {name: cell for name, cell in named.items() if registers.has(cell)}
    counts = dict(zip(available, await registers.columns(list(available.values()), servers), strict=True))
    return {
        server: {name: counts[name][at] if name in counts else None for name in named}
        for at, server in enumerate(servers)
    }
