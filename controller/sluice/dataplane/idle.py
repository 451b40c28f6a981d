"""Each service's queue of idle servers (Lu et al., Join-Idle-Queue, 2011), as in p4src/v1model/idle_servers.p4."""

from __future__ import annotations

from sluice.balance.looks import Sought
from sluice.names import REGISTER_SIZES, SERVICES, Register

from .memory import Memory
from .table import open_connections

PLACES = REGISTER_SIZES[Register.IDLE_QUEUE] // SERVICES
"""Servers in a queue."""
_HAS_TICKET = 1 << 16
_TICKETS = 1 << 16


class IdleServers:
    """A server has its queue's ticket from the FIN that ends its last open connection until its next one begins.

    Loads are the cells of a register, of 32 bits: open connections that may have ended unseen.
    """

    def __init__(self, memory: Memory) -> None:
        self._ends, self._queue = memory.of(Register.IDLE_ENDS), memory.of(Register.IDLE_QUEUE)
        self._tickets = memory.of(Register.IDLE_TICKET_FIRST), memory.of(Register.IDLE_TICKET_HEAD)
        self._stale = memory.of(Register.STALE_IDLE)

    def find(self, service: int, first: int, load: int, sought: Sought) -> int | None:
        """Whom a new connection finds that draws ``first``, which has so much to do. A head that cannot be had is
        dropped."""
        head, tail = divmod(self._ends[service], _TICKETS)
        if head == tail:
            return None
        front = self._queue[service * PLACES + head % PLACES]
        if self._tickets[1][front] != _HAS_TICKET + head or not sought.has(front):
            self._put(service, head + 1, tail)
            return None
        ticket = self._tickets[0][first]
        queued = ticket and (ticket - head) % _TICKETS < (tail - head) % _TICKETS
        return first if sought.before_any and self._idle(first, load) and not queued else front

    def note(self, service: int, server: int, load: int, *, by_fin: bool = False) -> None:
        """A server's load has changed to this by a connection of the service's; or by the server's FIN of one."""
        head, tail = divmod(self._ends[service], _TICKETS)
        if not self._idle(server, load):
            self._give(server, 0)
            if head != tail and self._queue[service * PLACES + head % PLACES] == server:
                self._put(service, head + 1, tail)
        elif by_fin and not self._tickets[0][server]:
            self._give(server, _HAS_TICKET + tail)
            self._queue[service * PLACES + tail % PLACES] = server
            full = (tail - head) % _TICKETS == PLACES
            self._put(service, head + full, tail + 1)

    def _idle(self, server: int, load: int) -> bool:
        return open_connections(load, self._stale[server]) <= 0

    def _give(self, server: int, ticket: int) -> None:
        for tickets in self._tickets:
            tickets[server] = ticket

    def _put(self, service: int, head: int, tail: int) -> None:
        self._ends[service] = head % _TICKETS * _TICKETS + tail % _TICKETS
