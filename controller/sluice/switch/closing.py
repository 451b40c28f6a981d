"""Stage closing: reads which connections are idle, and sends the tickles (segments to servers) by which the switch
closes them.

The switch notes a connection in one of CLOSING_HINTS cells whenever the connection becomes idle; a later connection may
overwrite the cell. Therefore this module reads the notes several times a second and stores them. The connection's own
cells show whether it is still idle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from finsy import P4CloneSessionEntry
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from numpy.typing import NDArray

from sluice import columns
from sluice.addresses import IPV4_BITS, Address, from_number
from sluice.frames import tickle
from sluice.names import CLOSE_SESSION, CPU_PORT, INTO_PIPELINE, ClosingStatus, Register
from sluice.resources.pauses import LENGTHS

from .errors import AlreadyExists, SwitchError
from .plan import Plan
from .registers import Registers
from .session import Session
from .switchclock import SwitchClock

_WRAP = 1 << 32
_STAMP_BITS, _SERVER_BITS = 31, 10
"""Widths of a hint's fields: the time at which the connection became idle, and its server. The bits above these two
fields contain the flow index."""
_PROBED_BITS, _LAST, _ACKNOWLEDGED, _SERVER_SPOKE, _STATUS = 21, 26, 58, 59, 60
"""Fields of a state cell (p4src/v1model/closing_cells.p4): the width of the time of the last tickle, which starts at
bit 0, and the lowest bit of each of the other fields."""
_CLIENT, _CLIENT_PORT = 31, 15
"""The lowest bits of a peer cell's fields; the bits below them contain the server's number."""
TIMES = {
    Register.CLOSING_STATE: ((_LAST, _ACKNOWLEDGED - _LAST), (0, _PROBED_BITS)),
    Register.CLOSING_HINT: ((0, _STAMP_BITS),),
}
"""The bit fields that contain times, as (lowest bit, number of bits), so that comparisons of two switches can skip
them."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A connection whose last payload came from the server and has been acknowledged."""

    flow: int
    """The number of the connection's slot in the connection table; the slots of way 2 follow those of way 1."""
    idle_s: float
    """A lower bound of the seconds since that acknowledgement: only a lower bound of the switch's time is known."""
    server: int


@dataclass(frozen=True, slots=True)
class IdleFlows:
    """Connections that may be idle: one element per connection in each column, by ascending flow number."""

    flow: NDArray[np.int64]
    server: NDArray[np.int64]
    idle_s: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Closings:
    """Cumulative outcomes of the tickles (segments in a client's name) to one server; the switch's cells wrap at 2^32.
    Tickles that are not counted here have lapsed without effect."""

    closed: int = 0
    """The server answered: the switch sent an RST to it and a FIN to the client."""
    taken_back: int = 0
    """Payload, a SYN, a FIN or an RST of either side arrived before the answer, so the switch closed nothing."""
    raced: int = 0
    """Closed connections whose client sent payload afterwards; the switch answered the payload with an RST."""


@dataclass(frozen=True, slots=True)
class _Peer:
    client: Address
    client_port: int


def services_of(plan: Plan) -> dict[int, tuple[Address, int]]:
    """Return the service's address and port for each server, by the server's number."""
    return {
        server.id: (service.config.address, service.config.port)
        for service in plan.services
        for server in service.servers
    }


class Closing:
    """Finds and closes idle connections in the switch of one session. Every method raises SwitchError."""

    def __init__(self, session: Session, registers: Registers) -> None:
        self._session = session
        self._registers = registers
        self._clock = SwitchClock(registers.units)
        flows = session.pipeline.schema.registers[Register.CLOSING_STATE].size
        self._since = np.zeros(flows, np.int64)
        self._servers = np.zeros(flows, np.uint16)
        """By flow index, the server number of each connection that the switch has noted as idle; 0: not noted."""
        self._hints = np.zeros(0, np.uint64)
        self._peers: dict[int, _Peer] = {}

    async def prepare(self) -> None:
        """Create the clone session whose copies of packets pass the pipeline a second time. Call this method after
        every load of the program."""
        session = P4CloneSessionEntry(CLOSE_SESSION, replicas=[(CPU_PORT, 1)])
        entity = session.encode(self._session.pipeline.schema)
        with suppress(AlreadyExists):
            await self._session.write([p4r.Update(type=P4UpdateType.INSERT.vt(), entity=entity)])

    async def read_idle(self, now_s: float) -> IdleFlows:
        """Return the connections that the switch noted as idle and that ``confirm_idle`` has not dropped since.

        ``now_s``: the controller's time. Reads one small register; O(cells of the connection table) in numpy.
        """
        (hints,) = await self._registers.arrays([Register.CLOSING_HINT])
        new = hints[hints != self._hints] if self._hints.size else hints[hints != 0]
        self._hints = hints
        flows = (new >> np.uint64(_STAMP_BITS + _SERVER_BITS)).astype(np.int64)
        self._since[flows] = (new & np.uint64((1 << _STAMP_BITS) - 1)).astype(np.int64)
        self._servers[flows] = (new >> np.uint64(_STAMP_BITS)) & np.uint64((1 << _SERVER_BITS) - 1)
        noted = np.flatnonzero(self._servers)
        since = self._since[noted]
        now = self._clock.at(now_s, int(since.max())) if noted.size else 0
        return IdleFlows(noted, self._servers[noted].astype(np.int64), self._age_s(now, since))

    async def confirm_idle(self, flows: Sequence[int], now_s: float) -> list[Candidate]:
        """Return the connections among ``flows`` whose own cells show that they are idle and not closed. Drops the
        notes of the other connections among ``flows``."""
        if not flows:
            return []
        columns = await self._registers.columns((Register.CLOSING_STATE, Register.CLOSING_PEER), flows)
        idle: list[Candidate] = []
        for flow, state, peer in zip(flows, *columns, strict=True):
            last = (state >> _LAST) % _WRAP
            is_last = state >> _ACKNOWLEDGED & 1 and state >> _SERVER_SPOKE & 1
            server = peer % (1 << _CLIENT_PORT)
            if not is_last or state >> _STATUS >= ClosingStatus.CLOSED or not server:
                self._servers[flow] = 0
                self._peers.pop(flow, None)
                continue
            self._peers[flow] = _Peer(from_number(peer >> _CLIENT, IPV4_BITS), peer >> _CLIENT_PORT & 0xFFFF)
            age_s = float(self._age_s(self._clock.at(now_s, last), np.array([last]))[0])
            idle.append(Candidate(flow, age_s, server))
        return idle

    async def tickle(self, flow: int, service: tuple[Address, int], least_age_s: float) -> None:
        """Send a segment to a connection's server in the client's name; an answer within 1 s closes the connection.

        The switch drops this tickle (drop reason ``not_idle``) unless the connection is still idle and has been idle
        for at least ``least_age_s``. ``confirm_idle`` must have returned the connection before.
        """
        peer = self._peers.get(flow)
        if peer is None:
            raise SwitchError(
                f"switch {self._session.address}: connection {flow} was not confirmed idle; call confirm_idle first"
            )
        ticks = int(least_age_s * 1e6 / self._registers.units.tick_us)
        frame = tickle(peer.client, peer.client_port, *service)
        await self._session.send_packet(ticks.to_bytes(4, "big") + frame, INTO_PIPELINE)

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Return, by server number, the cumulative number of responses in each class of the pause before the response's
        last part (``sluice.resources.pauses``)."""
        (column,) = await self._registers.columns(
            (Register.CLOSING_PAUSES,), [server * LENGTHS + length for server in servers for length in range(LENGTHS)]
        )
        return {server: column[at * LENGTHS : (at + 1) * LENGTHS] for at, server in enumerate(servers)}

    async def counts(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """Return the outcomes of tickles (segments in a client's name), by server."""
        counts = await self._registers.columns(list(columns.registers(columns.CLOSINGS).values()), servers)
        return {server: Closings(*cells) for server, *cells in zip(servers, *counts, strict=True)}

    def _age_s(self, now: int, stamps: NDArray[np.int64]) -> NDArray[np.float64]:
        ticks = (now - stamps) % (1 << _STAMP_BITS)
        return np.where(ticks < 1 << (_STAMP_BITS - 1), ticks, 0) * (self._registers.units.tick_us / 1e6)
