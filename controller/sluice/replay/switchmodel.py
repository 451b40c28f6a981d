"""Computes the counts that the switch would have had: the data-plane model, fed with the segments of a capture.

A capture is taken at the servers' side (after the switch has translated the addresses) or at all ports of the switch.
The capture shows where each packet went, so the model makes no decisions. The capture does not show which SYNs the
token bucket for remembered clients admitted, nor which packets the switch sampled; the model samples every n-th packet.
"""

from __future__ import annotations

from collections import OrderedDict

from sluice.addresses import Packed, from_packed
from sluice.dataplane.connection import Connection
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import ACK, HANDSHAKES, RST, SYN, Event, Pin, event
from sluice.dataplane.rates import RateCells, place
from sluice.dataplane.table import ConnectionTable
from sluice.features import CrowdControl
from sluice.loops.world import World
from sluice.names import SAMPLES, TICK_BASE, TICK_US, PinState, Register
from sluice.news.rates import flow_mask
from sluice.switch.connections import lifetime_s
from sluice.switch.plan import Server, Service

from .capture import Segment
from .transfers import MeasuredTransfers

PASSED_S = 0.2
"""Seconds after which a SYN that has not left the switch counts as refused. The time is longer than a switch in user
space waits for a processor core, and shorter than the time after which a client repeats a SYN."""
_ERA_S = (1 << 36) / 1e6
"""The model's clock starts at a multiple of this time, so that the windows of rates are aligned as on a clock that
started in 1970."""
_COPY_S = 0.05
"""Seconds within which a routed segment leaves the switch. A like segment in this time, with a TTL lower by 1, is its
outgoing copy."""
_COPIES = 4096
"""The largest number of routed segments that the model remembers, to recognise their outgoing copies."""


class SwitchModel:
    """Fills registers as the switch's stages do; the controller's own code then reads these registers."""

    def __init__(self, world: World) -> None:
        self.memory = Memory()
        self._world = world
        plan = world.plan
        self._servers: dict[tuple[Packed, int], tuple[Service, Server]] = {
            (server.address.packed, server.port): (service, server)
            for service in plan.services
            for server in service.servers
        }
        self._services = {_endpoint(service): service for service in plan.services}
        self._inside = [i.address.network for i in plan.config.interfaces if plan.is_inside(i)]
        self._inside_addresses: dict[Packed, bool] = {}
        times, ticks = plan.config.connections, self.memory.units.ticks
        self._table = ConnectionTable(
            self.memory, {state: ticks(lifetime_s(state, times, times.idle_s)) for state in PinState}
        )
        self._transfers = MeasuredTransfers(self.memory, self._table, plan)
        self._candidates: dict[Connection, bool] = {}
        """The connections whose SYN went to a server other than the one in their entry, and whether the server that
        received the SYN has answered with a SYN-ACK."""
        self._waiting: OrderedDict[tuple[Packed, int, Packed, int, int], float] = OrderedDict()
        self._copies: OrderedDict[tuple[Packed | int, ...], float] = OrderedDict()
        self._client_side = False
        self._began_s: float | None = None
        """Unix time at which the model's clock starts. Cells store times modulo the size of their fields. On a clock
        that started in 1970, the time 0 of unused cells would seem recent half of the time."""
        self._sampling = 0.0
        options = plan.config.news
        step = self.memory.units.step(options.rate_window_s) if options else 0
        self._rates = RateCells(self.memory, step) if step else None
        self.segments = 0
        """The number of segments to a service, to or from a server, or from another inside address. Outgoing copies of
        answers and of routed segments are not counted."""
        self.at_servers = False
        """Whether any segment was to or from a server's own endpoint, that is, captured at the servers' side."""

    def take(self, segment: Segment, share: float = 0.0) -> None:
        """Process the next segment. ``share``: the share of the packets to services that the switch samples."""
        if self._began_s is None:
            self._began_s = segment.time_s // _ERA_S * _ERA_S
        self.settle(segment.time_s)
        source, destination = (
            (segment.source, segment.source_port),
            (segment.destination, segment.destination_port),
        )
        if destination in self._services:
            self._to_service(segment, self._services[destination], share)
        elif destination in self._servers:
            self._to_server(segment, *self._servers[destination])
        elif source in self._servers:
            self._from_server(segment, *self._servers[source])
        elif source in self._services:
            return  # an answer captured after translation; the model has processed the copy captured before translation
        elif self._is_inside(segment.source) and not self._is_copy(segment):
            self.segments += 1
            self._response(
                segment,
                Connection(segment.destination, segment.destination_port, segment.source, segment.source_port),
            )

    def settle(self, now_s: float) -> None:
        """Advance the time. A SYN that has not left the switch within PASSED_S counts as refused."""
        while self._waiting:
            (_, _, destination, _, _), arrived_s = next(iter(self._waiting.items()))
            if now_s - arrived_s < PASSED_S:
                return
            self._waiting.popitem(last=False)
            self._count_request(Register.REQUESTS_REFUSED, destination)

    # -- segments towards servers

    def _to_service(self, segment: Segment, service: Service, share: float) -> None:
        """Process a segment from a client to a service, as captured before the translation."""
        self.segments += 1
        if segment.flags & (SYN | ACK) == SYN:
            self._client_side = True
            self._count_request(Register.REQUESTS_OFFERED, segment.destination)
            self._waiting[
                segment.source, segment.source_port, segment.destination, segment.destination_port, segment.sequence
            ] = segment.time_s
        self._sampling += share
        if self._sampling >= 1:
            self._sampling -= 1
            ring, end = self.memory.of(Register.SAMPLE_RING), self.memory.of(Register.SAMPLE_NEXT)
            ring[end[0] % SAMPLES] = int(service.config.address)
            end[0] = (end[0] + 1) % (1 << 32)

    def _to_server(self, segment: Segment, service: Service, server: Server) -> None:
        self.segments += 1
        self.at_servers = True
        connection = Connection(segment.source, segment.source_port, *_endpoint(service))
        now, kind = self._ticks(segment), event(segment.flags, segment.payload)
        if kind is Event.SYN:
            self._syn(segment, server, connection)
            return
        pin = self._table.request(now, connection.place, kind)
        if pin is not None and pin.server == server.id:
            self._transfers.packet(self._micros(segment), connection, pin, segment, by_server=False)
        if kind not in (Event.ACK, Event.PAYLOAD):
            return
        if pin is not None and pin.server != server.id:
            self._candidates.pop(connection, None)
            pin = self._table.move(now, connection.place, server.id)
        if pin is not None and pin.before is PinState.ANSWERED:
            self._count(Register.LEDGER_COMPLETED, server.id)

    def _syn(self, segment: Segment, server: Server, connection: Connection) -> None:
        """Process a SYN to a server. If the connection has a live entry with another server, the switch has sent the
        SYN past the entry's server, which accepted no new connections. The entry then changes to the SYN's server only
        with the client's ACK."""
        now, place = self._ticks(segment), connection.place
        slot = self._table.syn(now, place)
        if not isinstance(slot, Pin):
            if slot:
                self._table.claim(now, place, slot, server.id)
        elif slot.server != server.id:
            self._candidates.setdefault(connection, False)
        self._count(Register.LEDGER_SYN, server.id)
        address, port = connection.service, connection.service_port
        arrived_s = self._waiting.pop((segment.source, segment.source_port, address, port, segment.sequence), None)
        if not self._client_side:
            self._count_request(Register.REQUESTS_OFFERED, address)
        repeated = isinstance(slot, Pin) and slot.before in HANDSHAKES
        if (arrived_s is not None or not self._client_side) and not repeated:
            self._count_request(Register.REQUESTS_ADMITTED, address)

    def _count_request(self, register: Register, destination: Packed) -> None:
        news = self._world[CrowdControl].view
        if news is None:
            return
        self._count(register, news.numbers.get(from_packed(destination), 0))

    # -- segments from servers

    def _from_server(self, segment: Segment, service: Service, server: Server) -> None:
        self.segments += 1
        self.at_servers = True
        connection = Connection(segment.destination, segment.destination_port, *_endpoint(service))
        kind = event(segment.flags, segment.payload)
        pin = self._table.answer(self._ticks(segment), connection.place, kind, server.id)
        if pin is not None and pin.server == server.id:
            self._transfers.packet(self._micros(segment), connection, pin, segment, by_server=True)
        if kind is Event.RESET:
            self._count(Register.LEDGER_RESET, server.id)
        elif kind is Event.SYN_ACK:
            is_repeat = self._is_repeated(connection, server, pin)
            self._count(Register.LEDGER_SYNACK_AGAIN if is_repeat else Register.LEDGER_SYNACK, server.id)
        self._response(segment, connection)

    def _is_repeated(self, connection: Connection, server: Server, pin: Pin | None) -> bool:
        """Return whether a SYN-ACK repeats an earlier one of its connection.

        If neither the connection table nor `_candidates` has the connection, the SYN-ACK counts as the first one.
        """
        if pin is not None and pin.server == server.id:
            return pin.is_repeated_syn_ack
        is_repeat = self._candidates.get(connection, False)
        if connection in self._candidates:
            self._candidates[connection] = True
        return is_repeat

    def _response(self, segment: Segment, connection: Connection) -> None:
        if self._rates is None or not segment.payload or segment.flags & (SYN | RST):
            return
        slot, fingerprint = place(connection.rate_key)
        news = self._world[CrowdControl].view
        if news is not None and not fingerprint & flow_mask(news.flow_share):
            self._rates.packet(self._since(segment), slot, fingerprint, segment.total_length)

    # -- helper functions

    def _since(self, segment: Segment) -> float:
        """Return the seconds since the model's clock started."""
        return segment.time_s - (self._began_s or 0)

    def _micros(self, segment: Segment) -> int:
        return int(self._since(segment) * 1e6)

    def _ticks(self, segment: Segment) -> int:
        return TICK_BASE + self._micros(segment) // TICK_US

    def _count(self, register: Register, index: int) -> None:
        cells = self.memory.of(register)
        cells[index] = (cells[index] + 1) % (1 << 32)

    def _is_inside(self, address: Packed) -> bool:
        is_inside = self._inside_addresses.get(address)
        if is_inside is None:
            unpacked = from_packed(address)
            is_inside = self._inside_addresses[address] = any(unpacked in network for network in self._inside)
        return is_inside

    def _is_copy(self, segment: Segment) -> bool:
        """Return whether a segment is the outgoing copy of a routed segment that the model has already processed at its
        ingress port."""
        key = (
            segment.source,
            segment.source_port,
            segment.destination,
            segment.destination_port,
            segment.sequence,
            segment.total_length,
            segment.flags,
        )
        arrived_s = self._copies.pop((*key, segment.hop_limit + 1), None)
        if arrived_s is not None and segment.time_s - arrived_s < _COPY_S:
            return True
        self._copies[(*key, segment.hop_limit)] = segment.time_s
        if len(self._copies) > _COPIES:
            self._copies.popitem(last=False)
        return False


def _endpoint(service: Service) -> tuple[Packed, int]:
    """Return a service's address and port."""
    return service.config.address.packed, service.config.port
