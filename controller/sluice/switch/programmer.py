"""Programs a switch from a configuration and changes it step by step, for tests and tools without an event loop.

with Programmer(config, neighbours={"10.0.2.1": (2, "02:00:00:00:02:01")}) as switch:
    switch.apply(weights={"web": {"s1": 192, "s2": 64}})  # also ejected=[("web", "s1")], neighbours={...}
    switch.ledger("web", "s1").syn, switch.drops(DropReason.NO_ROUTE), switch.read_register(Register.PIN_KEY_1)
    switch.packet_in(timeout_s=2), switch.packet_out(frame, port=2), switch.reconfigure(parse(other_text))

``fresh=False`` keeps the entries and registers of a switch that already runs the program.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from finsy import P4CounterEntry, P4PacketIn

from sluice import proxies
from sluice.addresses import Address, from_text
from sluice.balance import Counts, fair_shares, largest_remainder
from sluice.balance.ratios import Member
from sluice.config.model import Config
from sluice.frames import is_station
from sluice.names import Counter, DropReason, Register

from .choice import program_for
from .errors import SwitchError
from .ledger import read_ledger
from .neighbourids import NeighbourIds
from .plan import Plan, Server, Service, make_plan
from .reconcile import Readback, read_back, reconcile
from .registers import Registers, open_registers
from .rules import Rules
from .session import Session
from .state import Neighbour, State
from .verdict import Traffic, read_traffic

_T = TypeVar("_T")
_PATIENCE_S = 30.0


def initial_state(config: Config, neighbours: Mapping[str, tuple[int, str]] | None = None) -> State:
    """Return the state of a fresh switch: weights by capacity, and the given neighbours as address: (port, MAC)."""
    plan = make_plan(config)
    weights: dict[int, dict[int, int]] = {}
    for service in plan.services:
        members = {server.id: Member(server.id, server.capacity, server.drain) for server in service.servers}
        weights[service.id] = largest_remainder(fair_shares(members))
    second_look = frozenset(s.id for s in plan.services if s.second_look(s.config.balance.mode))
    rules = Rules().following(config)
    state = State(plan=plan, weights=weights, second_look=second_look, rules=rules)
    return _with_neighbours(state, _placed(neighbours or {}))


def _with_neighbours(state: State, places: Mapping[Address, Neighbour]) -> State:
    """Return a state with these next hops, each with its port and MAC address. Those in ``state`` keep their ids."""
    ids = NeighbourIds()
    ids.adopt(state.neighbour_ids, state.neighbour_ids.values())
    gateways = (route.via for route in state.plan.config.routes)
    assigned = ids.assign({*places, *gateways, *(agent.address for agent in state.plan.agents)})
    return replace(state, neighbours=places, neighbour_ids=assigned)


def _placed(neighbours: Mapping[str, tuple[int, str]]) -> dict[Address, Neighbour]:
    """Return the given neighbours by address. Raises SwitchError for a MAC address that is not a unicast address."""
    for address, (_, mac) in neighbours.items():
        if not is_station(mac):
            raise SwitchError(
                f"neighbour {address}: {mac} is not the MAC address of a single station; give the neighbour's own"
            )
    return {from_text(address): Neighbour(*place) for address, place in neighbours.items()}


class Programmer:
    """A switch that is programmed when the context manager is entered. Every method blocks and raises SwitchError."""

    def __init__(
        self,
        config: Config,
        neighbours: Mapping[str, tuple[int, str]] | None = None,
        *,
        fresh: bool = True,
    ) -> None:
        """``fresh``: load the program even if the switch already runs it, so that all registers are zero."""
        self._config = config
        self._fresh = fresh
        self.state = initial_state(config, neighbours)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sluice-programmer", daemon=True)
        self._stack = AsyncExitStack()
        self._session: Session | None = None
        self._registers: Registers | None = None
        self._readback: Readback | None = None

    def __enter__(self) -> Self:
        proxies.ignore()
        self._thread.start()
        try:
            self._do(self._open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the session. The switch keeps running as programmed."""
        self._do(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE_S)

    async def _open(self) -> None:
        at = self._config.switch
        code = await program_for(at)
        session = await self._stack.enter_async_context(Session(at.address, at.device_id, code, at.election_id))
        if not session.is_primary:
            raise SwitchError(f"switch {at.address}: another controller is its primary one; stop that first")
        if self._fresh or not await session.runs_pipeline():
            await session.push_pipeline()
        self._session = session
        self._readback = await read_back(session)
        await reconcile(session, self._readback, self.state)
        self._registers = await open_registers(session, at.thrift)
        self._stack.push_async_callback(self._registers.close)

    @property
    def session(self) -> Session:
        """The open session."""
        if self._session is None:
            raise SwitchError("the programmer is not open; use it in a `with` statement")
        return self._session

    # -- numbers of services and servers

    @property
    def plan(self) -> Plan:
        """The configuration with the numbers of services and servers."""
        return self.state.plan

    def service(self, name: str) -> Service:
        """Return a service by its name."""
        service = self.plan.service(name)
        if service is None:
            raise SwitchError(f"no service {name!r} in the configuration")
        return service

    def server(self, service: str, name: str) -> Server:
        """Return a server by its service's name and its own name."""
        for server in self.service(service).servers:
            if server.name == name:
                return server
        raise SwitchError(f"no server {service}/{name} in the configuration")

    # -- changes of the switch's configuration

    def apply(
        self,
        *,
        weights: Mapping[str, Mapping[str, int]] | None = None,
        ejected: Collection[tuple[str, str]] | None = None,
        neighbours: Mapping[str, tuple[int, str]] | None = None,
    ) -> int:
        """Change selector weights, the ejected servers or the neighbours. Returns the number of updates written."""
        state = self.state
        if weights is not None:
            numbered = {
                self.service(service).id: {self.server(service, name).id: weight for name, weight in members.items()}
                for service, members in weights.items()
            }
            state = replace(state, weights={**state.weights, **numbered})
        if ejected is not None:
            state = replace(state, ejected=frozenset(self.server(*pair).id for pair in ejected))
        if neighbours is not None:
            state = _with_neighbours(state, _placed(neighbours))
        self.state = state
        return self._reconcile()

    def reconfigure(self, config: Config) -> int:
        """Program another configuration, with weights by capacity; neighbours stay, and no server is ejected.

        Returns the number of updates written.
        """
        self._config = config
        before = self.state
        self.state = _with_neighbours(
            replace(initial_state(config), neighbour_ids=before.neighbour_ids), before.neighbours
        )
        return self._reconcile()

    def _reconcile(self) -> int:
        assert self._readback is not None
        return self._do(reconcile(self.session, self._readback, self.state))

    # -- reads of registers and counters, packets to and from the controller

    @property
    def registers(self) -> Registers:
        """Access to the switch's registers."""
        if self._registers is None:
            raise SwitchError("the programmer is not open; use it in a `with` statement")
        return self._registers

    def read_register(self, register: Register, indices: Sequence[int] | None = None) -> list[int]:
        """Read cells of a register; all of them without ``indices``."""
        return self._do(self.registers.read(register, indices))

    def ledger(self, service: str, server: str) -> Counts:
        """Read the cumulative counts of a server."""
        number = self.server(service, server).id
        return self._do(read_ledger(self.registers, [number]))[number]

    def traffic(self) -> Traffic:
        """Return every counter that ``sluice status`` shows."""
        return self._do(read_traffic(self.session, [service.id for service in self.plan.services]))

    def counter(self, counter: Counter, index: int) -> int:
        """Return the number of packets that one counter cell has counted."""
        entities = self._do(self.session.read([P4CounterEntry(counter, index=index)]))
        return entities[0].counter_entry.data.packet_count

    def drops(self, reason: DropReason) -> int:
        """Return the number of packets that were dropped for a reason."""
        return self.counter(Counter.VERDICTS, int(reason))

    def packet_in(self, timeout_s: float = 2.0) -> P4PacketIn | None:
        """Return the next packet from the switch; None if none arrives in time."""
        return self._do(self._next_packet(timeout_s))

    async def _next_packet(self, timeout_s: float) -> P4PacketIn | None:
        try:
            async with asyncio.timeout(timeout_s):
                return await self.session.next_packet()
        except TimeoutError:
            return None

    def packet_out(self, payload: bytes, port: int) -> None:
        """Let the switch send a frame, unchanged, out of a port."""
        self._do(self.session.send_packet(payload, port))
