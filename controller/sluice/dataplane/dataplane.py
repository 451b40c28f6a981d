"""The decision for each packet of a service, by the stages balance, connections, candidates, second_look and ledger."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluice.balance.looks import NOBODY, Sought
from sluice.names import Counter, DropReason, PinState, Register

from .candidates import Candidates
from .connection import Connection
from .draws import GOLDEN, Draws, Group, lightest
from .idle import IdleServers
from .memory import Memory
from .pins import HANDSHAKES, Event, Pin, is_open
from .table import LOADS, REFUSING, STALE, WRAP, ConnectionTable, open_connections


@dataclass
class Service:
    """A service's table entries."""

    id: int
    draws: Draws | None = None
    """The selector groups for new connections, with the weights that the balancer has decided."""
    sought: Sought = NOBODY
    """The servers that may get a new connection because they are idle, in the form that a switch's entries have."""
    capacities: Group | None = None
    """The selector group for packets of connections without a pin (without an entry in the connection table)."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A segment of a connection. UDP packets and ICMP errors have Event.NONE."""

    connection: Connection
    event: Event
    sequence: int = 0
    acknowledgement: int = 0
    acknowledges: bool = True
    """Whether the ACK flag is set. A server's RST with this flag answers a SYN (RFC 9293, section 3.10.7.1)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision on a packet."""

    server: int
    """The server to which, or from which, the packet was sent; undefined for a dropped packet."""
    drop: DropReason = DropReason.NONE
    idle: bool = False
    """Whether a new connection goes to this server only because the server is idle: the comparison of loads would have
    selected another one."""


@dataclass
class DataPlane:
    """The model of one switch. Times are in the connection table's ticks (see ConnectionTable)."""

    memory: Memory
    lifetimes: Mapping[PinState, int]
    draining: dict[int, bool] = field(default_factory=dict[int, bool])
    """The servers in the switch's table; the value is whether the server accepts no new connections."""
    counters: Tally[tuple[Counter, int]] = field(default_factory=Tally[tuple[Counter, int]])

    def __post_init__(self) -> None:
        self._table = ConnectionTable(self.memory, self.lifetimes)
        self._candidates = Candidates(self.memory, self.lifetimes)
        self._idle = IdleServers(self.memory)

    def request(self, now: int, service: Service, packet: Packet, *, refused: bool = False) -> Outcome:
        """Handle a client's packet. ``refused``: the packet is a SYN above the rate limit of its service or
        destination."""
        if packet.event is Event.SYN:
            outcome = self._syn(now, service, packet.connection, refused)
            if outcome.drop is DropReason.NONE:
                self._note(Register.LEDGER_SYN, outcome.server)
            return outcome
        place = packet.connection.place
        pin = self._table.request(now, place, packet.event)
        if pin is None:
            self.counters[Counter.UNPINNED_MID, service.id] += 1
            return self._sent(self._stable(service, packet.connection))
        server = None
        may_move = pin.before in HANDSHAKES or self.draining.get(pin.server, True)
        if may_move and packet.event in (Event.ACK, Event.PAYLOAD, Event.FIN):
            server = self._candidates.ack(now, place, packet.acknowledgement)
        if server is None:
            self._record_transition(service, pin)
        else:
            former, pin = pin, self._table.move(now, place, server) or pin
            if is_open(former.before):
                self._record_load(service, former.server, -1 if former.server == server else 0)
            self._record_load(service, server)
        outcome = self._sent(pin.server)
        completes = packet.event in (Event.ACK, Event.PAYLOAD) and pin.before is PinState.ANSWERED
        if completes and outcome.drop is DropReason.NONE:
            self._note(Register.LEDGER_COMPLETED, pin.server)
        return outcome

    def answer(self, now: int, service: Service, server: int, packet: Packet) -> Outcome:
        """Handle a packet from a service's server."""
        place = packet.connection.place
        pin = self._table.answer(now, place, packet.event, server)
        self._record_transition(service, pin, by_fin=packet.event is Event.FIN)
        if pin is not None and pin.server == server and pin.before in (PinState.PENDING, PinState.REOPENING):
            self._answered_syn(server, packet)
        if packet.event is Event.SYN_ACK:
            if pin is not None and pin.server != server:
                is_repeat = self._candidates.syn_ack(now, place, server, packet.sequence)
            else:
                is_repeat = pin is not None and pin.is_repeated_syn_ack
            self._note(Register.LEDGER_SYNACK_AGAIN if is_repeat else Register.LEDGER_SYNACK, server)
        elif packet.event is Event.RESET:
            self._note(Register.LEDGER_RESET, server)
            if not packet.acknowledges and (pin is None or pin.server != server):
                self.counters[Counter.DISOWNED, service.id] += 1
        return Outcome(server)

    def _answered_syn(self, server: int, packet: Packet) -> None:
        """Record that the server refuses connections, if its RST answers a SYN, or that it accepts them, if it sends a
        SYN-ACK."""
        refuses = packet.event is Event.RESET and packet.acknowledges
        if refuses or packet.event is Event.SYN_ACK:
            for register in REFUSING:
                self.memory.of(register)[server] = int(refuses)

    def _syn(self, now: int, service: Service, connection: Connection, refused: bool) -> Outcome:
        self.counters[Counter.OFFERED, service.id] += 1
        drawn = self._drawn(service, connection)
        first = drawn[0]
        place = connection.place
        slot = self._table.syn(now, place)
        if isinstance(slot, Pin):
            self._record_transition(service, slot)
            if not self.draining.get(slot.server, True) or (first == slot.server and not refused):
                return self._sent(slot.server)
            if refused:
                return Outcome(0, DropReason.ADMISSION_REFUSED)
            before = self._candidates.of(now, place)
            server = self._candidates.syn(now, place, first) if first else None
            if server is None:
                return Outcome(0, DropReason.NO_SERVER)
            self._count_moved(service, slot.before in HANDSHAKES and before is None)
            return self._sent(server)
        if refused:
            self.counters[Counter.REFUSED, service.id] += 1
            return Outcome(0, DropReason.ADMISSION_REFUSED)
        if slot and first:
            server, idle = self._preferred(service, drawn)
            former = self._table.claim(now, place, slot, server)
            self._record_load(service, server)
            self.counters[Counter.CLAIMED, service.id] += 1
            self._count_moved(service, former not in {None, server})
            return replace(self._sent(server), idle=idle)
        self.counters[Counter.UNPINNED_NEW, service.id] += 1
        server = self._stable(service, connection)
        return Outcome(0, DropReason.NO_SERVER) if self.draining.get(server, True) else Outcome(server)

    def _count_moved(self, service: Service, has_moved: bool) -> None:
        self.counters[Counter.MOVED, service.id] += has_moved

    def _drawn(self, service: Service, connection: Connection) -> tuple[int, ...]:
        """Return the servers drawn for a SYN, starting with the first draw; (0,) if there is no server."""
        if service.draws is None:
            return (0,)
        if not service.draws.shares:
            return service.draws.by_hash(connection)
        points = self.memory.of(Register.DRAW_POINT)
        last = points[service.id]
        points[service.id] = (last + 2 * GOLDEN) % WRAP
        return service.draws.evenly(last)

    def _preferred(self, service: Service, drawn: tuple[int, ...]) -> tuple[int, bool]:
        """Return the preferred server, and whether it is selected only because it is idle."""
        assert service.draws is not None
        loads: dict[int, int] = {}
        for server, load, stale in zip(drawn, LOADS, STALE, strict=False):
            loads.setdefault(server, self._load(load, stale, server))
        weights = {server: service.draws.weight(drawn[0], server) for server in drawn}
        refusing = {server for server, copy in zip(drawn[1:], REFUSING, strict=False) if self.memory.of(copy)[server]}
        load = self.memory.of(Register.LOAD_FIRST)[drawn[0]]
        idle = self._idle.find(service.id, drawn[0], load, service.sought) if len(drawn) > 1 else None
        server = lightest(drawn, loads, weights, idle, before_any=service.sought.before_any, refusing=refusing)
        return server, server == idle and server != lightest(drawn, loads, weights, refusing=refusing)

    def _record_transition(self, service: Service, pin: Pin | None, *, by_fin: bool = False) -> None:
        if pin is not None and is_open(pin.before) != is_open(pin.after):
            self._record_load(service, pin.server, by_fin=by_fin)

    def _record_load(self, service: Service, server: int, meanwhile: int = 0, *, by_fin: bool = False) -> None:
        """Report a server's new load to the service's queue of idle servers.

        ``meanwhile``: the new load minus the register's present value, which differ if another change has followed.
        """
        load = self.memory.of(Register.LOAD_FIRST)[server] + meanwhile
        self._idle.note(service.id, server, load, by_fin=by_fin)

    def _load(self, load: Register, stale: Register, server: int) -> int:
        """Return a server's number of open connections, less those that are known to have ended unseen by the
        switch."""
        return open_connections(self.memory.of(load)[server], self.memory.of(stale)[server])

    def _stable(self, service: Service, connection: Connection) -> int:
        return service.capacities.at(connection.stable_draw) if service.capacities else 0

    def _sent(self, server: int) -> Outcome:
        if not server:
            return Outcome(0, DropReason.NO_SERVER)
        return Outcome(server, DropReason.NONE if server in self.draining else DropReason.SERVER_UNKNOWN)

    def _note(self, register: Register, server: int) -> None:
        cells = self.memory.of(register)
        cells[server] = (cells[server] + 1) % WRAP
