"""Each service's queue of idle servers (Lu et al., Join-Idle-Queue, 2011), as in p4src/v1model/idle_servers.p4."""

from __future__ import annotations

from sluice.balance.looks import Sought
from sluice.names import REGISTER_SIZES, SERVICES, Register

from .memory import Memory
from .table import open_connections

PLACES = REGISTER_SIZES[Register.IDLE_QUEUE] // SERVICES
"""The number of places in a service's queue."""
_HAS_TICKET = 1 << 16
_TICKETS = 1 << 16


class IdleServers:
    """The queues of idle servers. When a FIN of a server ends the server's last open connection, the server gets a
    ticket, which is the number of its entry in the queue. At its next connection the ticket becomes void.

    Loads are 32-bit register cells with the number of open connections, including some whose end the switch did not
    see.
    """

    def __init__(self, memory: Memory) -> None:
        self._ends, self._queue = memory.of(Register.IDLE_ENDS), memory.of(Register.IDLE_QUEUE)
        self._tickets = memory.of(Register.IDLE_TICKET_FIRST), memory.of(Register.IDLE_TICKET_HEAD)
        self._stale = memory.of(Register.STALE_IDLE)

    def find(self, service: int, first: int, load: int, sought: Sought) -> int | None:
        """Return the idle server for a new connection, or None. ``first`` is the server drawn for the connection,
        ``load`` the load of that server.

        The idle server is the head of the queue, or ``first`` if idle servers are taken before any others, and
        ``first`` is idle but not queued. Returns None if the queue is empty. If the ticket of the head is void, or the
        head is not in ``sought``, removes the head from the queue and returns None.
        """
        head, tail = divmod(self._ends[service], _TICKETS)
        if head == tail:
            return None
        candidate = self._queue[service * PLACES + head % PLACES]
        if self._tickets[1][candidate] != _HAS_TICKET + head or not sought.has(candidate):
            self._put(service, head + 1, tail)
            return None
        ticket = self._tickets[0][first]
        queued = ticket and (ticket - head) % _TICKETS < (tail - head) % _TICKETS
        return first if sought.before_any and self._idle(first, load) and not queued else candidate

    def note(self, service: int, server: int, load: int, *, by_fin: bool = False) -> None:
        """Record a server's new load after a change in one of the service's connections. ``by_fin``: a FIN of the
        server ended a connection."""
        head, tail = divmod(self._ends[service], _TICKETS)
        if not self._idle(server, load):
            self._give(server, 0)
            if head != tail and self._queue[service * PLACES + head % PLACES] == server:
                self._put(service, head + 1, tail)
        elif by_fin and not self._tickets[0][server]:
            self._give(server, _HAS_TICKET + tail)
            self._queue[service * PLACES + tail % PLACES] = server
            is_full = (tail - head) % _TICKETS == PLACES
            self._put(service, head + is_full, tail + 1)

    def _idle(self, server: int, load: int) -> bool:
        return open_connections(load, self._stale[server]) <= 0

    def _give(self, server: int, ticket: int) -> None:
        for tickets in self._tickets:
            tickets[server] = ticket

    def _put(self, service: int, head: int, tail: int) -> None:
        self._ends[service] = head % _TICKETS * _TICKETS + tail % _TICKETS
