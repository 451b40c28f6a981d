"""What the switch would have counted: its measuring stages, fed with the segments of a capture.

A capture is taken where the switch's servers are (behind the translation) or on all of the switch's ports. In step with
p4src/stages: classify, connections (pincells.py), requests, ledger, rates (ratecells.py). What a capture does not
show is not there: which SYN a remembered client's bucket let pass, which packets were sampled (here every n-th is).
"""

from __future__ import annotations

import struct
import zlib
from collections import OrderedDict
from ipaddress import IPv4Address

from sluice.loops.world import World
from sluice.names import PROTOCOL_TCP, SAMPLES, Register
from sluice.switch.plan import Server, Service
from sluice.switch.rates import flow_mask

from .capture import ACK, FIN, RST, SYN, Segment
from .memory import Memory
from .pincells import PinCells
from .ratecells import SLOTS, RateCells

PASSED_S = 0.2
"""A SYN that has not come out of the switch this long after it went in was refused: longer than a switch in user space
waits for a core, shorter than a client waits before it sends another."""
_COPY_S = 0.05
_COPIES = 4096
_KEY = struct.Struct("!IHHIB")


class MeasuredSwitch:
    """Fills registers as the switch's stages do; the memory is read by the controller's own code."""

    def __init__(self, world: World) -> None:
        self.memory = Memory()
        self._world = world
        plan = world.plan
        self._servers: dict[tuple[int, int], tuple[Service, Server]] = {
            (int(server.address), server.port): (service, server)
            for service in plan.services
            for server in service.servers
        }
        self._services = {_place(service): service for service in plan.services}
        self._inside = [i.address.network for i in plan.config.interfaces if plan.is_inside(i)]
        self._known: dict[int, bool] = {}
        self._pins = PinCells(self.memory, plan.config.connections)
        self._waiting: OrderedDict[tuple[int, int, int, int, int], float] = OrderedDict()
        self._copies: OrderedDict[tuple[int, ...], float] = OrderedDict()
        self._client_side = False
        self._sampling = 0.0
        options = plan.config.news
        step = self.memory.units.step(options.rate_window_s) if options else 0
        self._rates = RateCells(self.memory, step) if step else None
        self._mask = flow_mask(options.flow_share) if options else 0
        self.segments = 0
        """Those that belong to a service or come from inside."""
        self.at_servers = False
        """Whether one of them was to or from a server: behind the translation."""

    def take(self, segment: Segment, share: float = 0.0) -> None:
        """The next segment; ``share`` of the packets towards servers is to be sampled."""
        self.settle(segment.time_s)
        source, destination = (
            (segment.source, segment.source_port),
            (segment.destination, segment.destination_port),
        )
        if destination in self._services:
            self._asked(segment, self._services[destination], share)
        elif destination in self._servers:
            self._to_server(segment, *self._servers[destination])
        elif source in self._servers:
            self._from_server(segment, *self._servers[source])
        elif source in self._services:
            return  # an answer behind the translation: it was seen before it
        elif self._is_inside(segment.source) and not self._is_copy(segment):
            self.segments += 1
            self._response(segment, segment.source, segment.source_port)

    def settle(self, now_s: float) -> None:
        """Time has come to this: SYNs that have not come out by now were refused."""
        while self._waiting:
            (_, _, destination, _, _), came_s = next(iter(self._waiting.items()))
            if now_s - came_s < PASSED_S:
                return
            self._waiting.popitem(last=False)
            self._count_request(Register.REQUESTS_REFUSED, destination)

    # -- towards servers

    def _asked(self, segment: Segment, service: Service, share: float) -> None:
        """On the clients' side, before the translation."""
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
        connection = (segment.source, segment.source_port, *_place(service))
        if segment.flags & RST:
            self._pins.client_reset(segment.time_s, connection)
        elif segment.flags & FIN:
            self._pins.client_fin(segment.time_s, connection)
        elif segment.flags & SYN:
            self._syn(segment, service, server)
            self._pins.syn(segment.time_s, connection, server.id)
        elif self._pins.ack(segment.time_s, connection, server.id):
            self._count(Register.LEDGER_COMPLETED, server.id)

    def _syn(self, segment: Segment, service: Service, server: Server) -> None:
        self._count(Register.LEDGER_SYN, server.id)
        address, port = _place(service)
        came = self._waiting.pop((segment.source, segment.source_port, address, port, segment.sequence), None)
        if not self._client_side:
            self._count_request(Register.REQUESTS_OFFERED, address)
        if came is not None or not self._client_side:
            self._count_request(Register.REQUESTS_ADMITTED, address)

    def _count_request(self, register: Register, destination: int) -> None:
        news = self._world.news
        if news is None:
            return
        self._count(register, news.numbers.get(IPv4Address(destination), 0))

    # -- from servers

    def _from_server(self, segment: Segment, service: Service, server: Server) -> None:
        self.segments += 1
        self.at_servers = True
        connection = (segment.destination, segment.destination_port, *_place(service))
        if segment.flags & RST:
            self._pins.server_reset(segment.time_s, connection, server.id)
            self._count(Register.LEDGER_RESET, server.id)
        elif segment.flags & FIN:
            self._pins.server_fin(segment.time_s, connection, server.id)
        elif segment.flags & SYN:
            first = self._pins.syn_ack(segment.time_s, connection, server.id)
            self._count(Register.LEDGER_SYNACK if first else Register.LEDGER_SYNACK_AGAIN, server.id)
        else:
            self._pins.answer(segment.time_s, connection, server.id)
        self._response(segment, *_place(service))

    def _response(self, segment: Segment, service: int, service_port: int) -> None:
        if self._rates is None or not segment.payload or segment.flags & (SYN | RST):
            return
        key = zlib.crc32(_KEY.pack(service, service_port, segment.destination_port, segment.destination, PROTOCOL_TCP))
        slot, fingerprint = key % SLOTS, key // SLOTS
        if not fingerprint & self._mask:
            self._rates.packet(segment.time_s, slot, fingerprint, segment.total_length)

    # -- help

    def _count(self, register: Register, index: int) -> None:
        cells = self.memory.of(register)
        cells[index] = (cells[index] + 1) % (1 << 32)

    def _is_inside(self, address: int) -> bool:
        known = self._known.get(address)
        if known is None:
            known = self._known[address] = any(
                int(network.network_address) == address & int(network.netmask) for network in self._inside
            )
        return known

    def _is_copy(self, segment: Segment) -> bool:
        """Whether it is a routed segment on its way out, which was seen on its way in."""
        key = (
            segment.source,
            segment.source_port,
            segment.destination,
            segment.destination_port,
            segment.sequence,
            segment.total_length,
            segment.flags,
        )
        came = self._copies.pop((*key, segment.hop_limit + 1), None)
        if came is not None and segment.time_s - came < _COPY_S:
            return True
        self._copies[(*key, segment.hop_limit)] = segment.time_s
        if len(self._copies) > _COPIES:
            self._copies.popitem(last=False)
        return False


def _place(service: Service) -> tuple[int, int]:
    """Its address and port."""
    return int(service.config.address), service.config.port
