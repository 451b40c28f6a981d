"""Predicts the switch's treatment of a client's next SYN: runs the data-plane model on a copy of the relevant cells."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sluice.balance.looks import sought_idle
from sluice.dataplane.connection import Connection
from sluice.dataplane.dataplane import DataPlane, Outcome, Packet
from sluice.dataplane.dataplane import Service as ModelService
from sluice.dataplane.draws import Draws, Group
from sluice.dataplane.idle import PLACES
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import Event
from sluice.dataplane.table import FINGERPRINT_SHIFT, LOADS, STALE, WRAP, open_connections
from sluice.features import Balance
from sluice.loops.link import Link
from sluice.loops.world import World
from sluice.names import CANDIDATES, TICK_BASE, Counter, DropReason, PinState, Register
from sluice.switch import balance
from sluice.switch.connections import lifetime_s
from sluice.switch.plan import Service
from sluice.switch.translate import entries as translated

_LOADS = (*LOADS, *STALE)
_WORDS = ("none", "one", "two", "three", "four")


class NextSyn:
    """Predicts the selection of a server for one service, with the service's current weights."""

    def __init__(self, world: World, link: Link, service: Service) -> None:
        self._world, self._link, self._service = world, link, service
        self._names = dict(world.names(service))
        state = world.state()
        self._is_closed = {
            int(entry.match["server"]): bool(entry.action.args["draining"])  # type: ignore[union-attr, index]
            for entry in translated(state)
        }
        self._refuses = world[Balance].views[service.id].refuses
        self._model = ModelService(service.id, capacities=_group(balance.capacities(service)))
        if service.is_content:
            self._model.capacities = _group(balance.available(state, service))
            return
        weights = dict(sorted(world[Balance].views[service.id].weights.items()))
        if weights:
            other_groups = {
                server: dict(sorted(group.items()))
                for group, servers in balance.others(state, service).values()
                for server in servers
            }
            self._model.draws = Draws(weights, other_groups, balance.shares(state, service), service.looks)
            if other_groups and service.group_of is None and link.registers.has(Register.IDLE_ENDS):
                self._model.sought = sought_idle(weights)

    async def of(self, connection: Connection | None) -> dict[str, Any]:
        """Return the prediction for a connection; without a connection, each server's share. Raises SwitchError."""
        weights = self._model.draws.first.weights if self._model.draws else self._shares()
        total = sum(weights.values()) or 1
        shown: dict[str, Any] = {
            "weights": {self._name(number): weight for number, weight in weights.items()},
            "shares": {self._name(number): round(weight / total, 4) for number, weight in weights.items()},
        }
        if connection is None:
            return shown | {"server": None, "by": None, "why": "which one depends on the client's port"}
        if self._service.is_content:
            return shown | self._content(connection)
        return shown | await self._drawn(connection)

    def _shares(self) -> dict[int, int]:
        return self._model.capacities.weights if self._model.capacities else {}

    def _content(self, connection: Connection) -> dict[str, Any]:
        if self._model.capacities is None:
            return {"server": None, "by": "capacity", "why": "no agent answers: the switch drops the SYN (no_server)"}
        server = self._model.capacities.at(connection.stable_draw)
        return {"server": self._name(server), "by": "capacity", "why": "the agents that answer, by capacity"}

    async def _drawn(self, connection: Connection) -> dict[str, Any]:
        memory, now = await self._copy(connection)
        times = self._world.config.connections
        lifetimes = {state: memory.units.ticks(lifetime_s(state, times, self._world.idle_s)) for state in PinState}
        drawn = self._points(memory, connection)
        loads = {server: _open(memory, server) for server in drawn if server}
        pin = _pinned(memory, connection)
        plane = DataPlane(memory, lifetimes, self._is_closed)
        outcome = plane.request(now, self._model, Packet(connection, Event.SYN), refused=self._refuses)
        if outcome.drop is DropReason.ADMISSION_REFUSED:
            return {"server": None, "by": "drop", "why": "every server is full, and the switch refuses it"}
        if outcome.drop is not DropReason.NONE:
            why = f"the switch drops it ({outcome.drop.name.lower()})"
            return {"server": None, "by": "drop", "why": why}
        selected = {"server": self._name(outcome.server)}
        if plane.counters[Counter.CLAIMED, self._service.id]:
            return selected | {"by": "choice", "why": self._choice(outcome, drawn, loads)}
        if plane.counters[Counter.UNPINNED_NEW, self._service.id]:
            return selected | {
                "by": "capacity",
                "why": "both of its slots in the connection table belong to other connections",
            }
        if outcome.server == pin:
            return selected | {"by": "pin", "why": "the connection's pin is live"}
        return selected | {
            "by": "candidate",
            "why": f"the pin's server {self._name(pin)} takes no new connections; this one is drawn in its place",
        }

    def _points(self, memory: Memory, connection: Connection) -> tuple[int, ...]:
        draws = self._model.draws
        if draws is None:
            return (0,)
        if not draws.shares:
            return draws.by_hash(connection)
        return draws.evenly(memory.of(Register.DRAW_POINT)[self._service.id])

    def _choice(self, outcome: Outcome, drawn: tuple[int, ...], loads: dict[int, int]) -> str:
        assert self._model.draws is not None
        server = outcome.server
        weights = self._model.draws.first.weights
        first = drawn[0]
        evenly = "; the next SYN of any client advances the draw" if self._model.draws.shares else ""
        if len(loads) == 1:
            return f"drawn by the weights, {weights[first]} of {self._model.draws.first.size}{evenly}"
        words = [
            f"{self._name(candidate)} has {loads[candidate]} open at weight {weights[candidate]}" for candidate in loads
        ]
        if outcome.idle:
            verdict = "has been idle for longest"
        else:
            verdict = "was drawn first and keeps it" if server == first else "has less to do for its weight"
        return (
            f"of {_WORDS[len(loads)]} drawn by the weights ({'; '.join(words)}) {self._name(server)} {verdict}{evenly}"
        )

    async def _copy(self, connection: Connection) -> tuple[Memory, int]:
        """Copy the cells that the SYN accesses to the model's memory. Returns the memory, and the time in ticks."""
        link, registers, memory = self._link, self._link.registers, Memory()
        switch_place, model_place = connection.place_in(link.size(Register.PIN_KEY_1)), connection.place
        cell = switch_place.slot_1 % link.size(Register.CANDIDATE_KEY)
        for names, index, model_index in (
            ((Register.PIN_KEY_1, Register.PIN_SERVER_1), switch_place.slot_1, model_place.slot_1),
            ((Register.PIN_KEY_2, Register.PIN_SERVER_2), switch_place.slot_2, model_place.slot_2),
            ((Register.CANDIDATE_KEY, Register.CANDIDATE_PIN), cell, model_place.slot_1 % CANDIDATES),
            ((Register.DRAW_POINT,), self._service.id, self._service.id),
        ):
            for name, (value,) in zip(names, await registers.columns(names, [index]), strict=True):
                memory.of(name)[model_index] = value
        servers = [server.id for server in self._service.servers]
        for name, column in zip(_LOADS, await registers.columns(_LOADS, servers), strict=True):
            for server, value in zip(servers, column, strict=True):
                memory.of(name)[server] = value
        if self._model.sought.words:
            await self._copy_idle(memory, servers)
        stamps = [memory.of(Register.PIN_KEY_1)[model_place.slot_1], memory.of(Register.PIN_KEY_2)[model_place.slot_2]]
        return memory, self._now([key % WRAP for key in stamps if key])

    async def _copy_idle(self, memory: Memory, servers: Sequence[int]) -> None:
        """Copy the cells of the service's queue of idle servers to the model's memory."""
        first = self._service.id * PLACES
        for names, cells in (
            ((Register.IDLE_ENDS,), [self._service.id]),
            ((Register.IDLE_QUEUE,), range(first, first + PLACES)),
            ((Register.IDLE_TICKET_FIRST, Register.IDLE_TICKET_HEAD, Register.STALE_IDLE), servers),
        ):
            for name, column in zip(names, await self._link.registers.columns(names, cells), strict=True):
                for cell, value in zip(cells, column, strict=True):
                    memory.of(name)[cell] = value

    def _now(self, stamps: list[int]) -> int:
        """Return a lower bound of the switch's time, from the stamps of the connection's two slots. If neither slot was
        ever used, return TICK_BASE, since any time would do."""
        now_s = asyncio.get_running_loop().time()
        return max((self._link.clock.at(now_s, stamp) for stamp in stamps), default=TICK_BASE)

    def _name(self, number: int | None) -> str:
        if number not in self._names:
            retired = {server.id: str(server.endpoint[0]) for server in self._world.plan.retired}
            return retired.get(number or 0, f"server {number}")
        return self._names[number]


def _group(weights: dict[int, int]) -> Group | None:
    return Group(dict(sorted(weights.items()))) if weights else None


def _open(memory: Memory, server: int) -> int:
    """Return a server's number of open connections, as the switch counts it when it compares servers."""
    return max(0, open_connections(memory.of(Register.LOAD_FIRST)[server], memory.of(Register.STALE_FIRST)[server]))


def _pinned(memory: Memory, connection: Connection) -> int | None:
    """Return the number of the server in the connection's slot, expired or not; None if the connection has no slot."""
    place = connection.place
    for keys, servers, slot in (
        (Register.PIN_KEY_1, Register.PIN_SERVER_1, place.slot_1),
        (Register.PIN_KEY_2, Register.PIN_SERVER_2, place.slot_2),
    ):
        key = memory.of(keys)[slot]
        if key and key >> FINGERPRINT_SHIFT == place.fingerprint:
            return memory.of(servers)[slot]
    return None
