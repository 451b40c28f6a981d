"""Stage closing: idle connections as the switch knows them, and the tickles by which it closes them.

The switch notes a connection whenever it becomes idle, in one of CLOSING_HINTS cells; a later one may take the cell.
So notes are read several times a second and kept here; whether one still holds the connection's own cells say.
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

from .errors import AlreadyThere, SwitchError
from .plan import Plan
from .registers import Registers
from .session import Session
from .switchclock import SwitchClock

_WRAP = 1 << 32
_STAMP_BITS, _SERVER_BITS = 31, 10
"""Of a hint: when, and whose. Above them is the flow index."""
_PROBED_BITS, _LAST, _ACKNOWLEDGED, _SERVER_SPOKE, _STATUS = 21, 26, 58, 59, 60
"""Where a state's fields begin (p4src/v1model/closing_cells.p4)."""
_CLIENT, _CLIENT_PORT = 31, 15
"""And a peer's; below them is the server."""
TIMES = {
    Register.CLOSING_STATE: ((_LAST, _ACKNOWLEDGED - _LAST), (0, _PROBED_BITS)),
    Register.CLOSING_HINT: ((0, _STAMP_BITS),),
}
"""Where cells hold times, as lowest bit and number of bits, for comparisons of two switches."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A connection whose last payload was the server's, and has been acknowledged."""

    flow: int
    """Its place in the connection table: way and slot."""
    idle_s: float
    """Since that acknowledgement. At least: the switch's time is known from below."""
    server: int


@dataclass(frozen=True, slots=True)
class Noted:
    """Connections that may be idle, a column each, by ascending flow."""

    flow: NDArray[np.int64]
    server: NDArray[np.int64]
    idle_s: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Closings:
    """What became of a server's tickles, cumulative; the cells wrap at 2^32. All others have lapsed."""

    closed: int = 0
    """Answered: RST and FIN were sent."""
    taken_back: int = 0
    """Payload came before the answer."""
    raced: int = 0
    """Of those closed: payload of the client's came afterwards, and was answered by a RST."""


@dataclass(frozen=True, slots=True)
class _Peer:
    client: Address
    client_port: int


def services_of(plan: Plan) -> dict[int, tuple[Address, int]]:
    """Address and port of each server's service, by the server's number."""
    return {
        server.id: (service.config.address, service.config.port)
        for service in plan.services
        for server in service.servers
    }


class Closing:
    """The idle connections of one session's switch. Every method raises SwitchError."""

    def __init__(self, session: Session, registers: Registers) -> None:
        self._session = session
        self._registers = registers
        self._clock = SwitchClock(registers.units)
        flows = session.pipeline.schema.registers[Register.CLOSING_STATE].size
        self._since = np.zeros(flows, np.int64)
        self._servers = np.zeros(flows, np.uint16)
        """0: not noted."""
        self._hints = np.zeros(0, np.uint64)
        self._peers: dict[int, _Peer] = {}

    async def prepare(self) -> None:
        """Make the clone session whose copies pass once more; to be called after every load of the program."""
        session = P4CloneSessionEntry(CLOSE_SESSION, replicas=[(CPU_PORT, 1)])
        entity = session.encode(self._session.pipeline.schema)
        with suppress(AlreadyThere):
            await self._session.write([p4r.Update(type=P4UpdateType.INSERT.vt(), entity=entity)])

    async def read_idle(self, now_s: float) -> Noted:
        """Connections that were noted as idle, and not seen to be otherwise since; ``now_s`` is the controller's time.

        One read of a small register; O(cells of the connection table) in numpy.
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
        return Noted(noted, self._servers[noted].astype(np.int64), self._age_s(now, since))

    async def facts(self, flows: Sequence[int], now_s: float) -> list[Candidate]:
        """Those of the connections that are idle and not closed, as their own cells say. Forgets the others."""
        if not flows:
            return []
        columns = await self._registers.columns((Register.CLOSING_STATE, Register.CLOSING_PEER), flows)
        found: list[Candidate] = []
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
            found.append(Candidate(flow, age_s, server))
        return found

    async def tickle(self, flow: int, service: tuple[Address, int], least_age_s: float) -> None:
        """Ask a connection's server in its client's name; what it answers within 1 s closes the connection.

        The switch drops the tickle (``not_idle``) unless the connection is still idle, and that for the least age. Of
        the connection its facts must have been read.
        """
        peer = self._peers.get(flow)
        if peer is None:
            raise SwitchError(f"switch {self._session.address}: connection {flow} is not idle; read its facts first")
        ticks = int(least_age_s * 1e6 / self._registers.units.tick_us)
        frame = tickle(peer.client, peer.client_port, *service)
        await self._session.send_packet(ticks.to_bytes(4, "big") + frame, INTO_PIPELINE)

    async def pauses(self, servers: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Responses by the pause in front of their last part, by server: see ``sluice.resources.pauses``."""
        (column,) = await self._registers.columns(
            (Register.CLOSING_PAUSES,), [server * LENGTHS + length for server in servers for length in range(LENGTHS)]
        )
        return {server: column[at * LENGTHS : (at + 1) * LENGTHS] for at, server in enumerate(servers)}

    async def counts(self, servers: Sequence[int]) -> Mapping[int, Closings]:
        """What became of tickles, by server."""
        counts = await self._registers.columns(list(columns.registers(columns.CLOSINGS).values()), servers)
        return {server: Closings(*cells) for server, *cells in zip(servers, *counts, strict=True)}

    def _age_s(self, now: int, stamps: NDArray[np.int64]) -> NDArray[np.float64]:
        ticks = (now - stamps) % (1 << _STAMP_BITS)
        return np.where(ticks < 1 << (_STAMP_BITS - 1), ticks, 0) * (self._registers.units.tick_us / 1e6)
