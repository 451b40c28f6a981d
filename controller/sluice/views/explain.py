"""What ``sluice explain`` says of a client's connections: gathered as plain data (`explaintext` as text)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sluice.addresses import Address, from_text
from sluice.controller import Controller
from sluice.dataplane.connection import Connection
from sluice.dataplane.table import FINGERPRINT_SHIFT, STATE_BITS, STATE_SHIFT, WRAP
from sluice.features import Balance
from sluice.features.balance.history import weights_at
from sluice.loops.commands import Refused
from sluice.loops.link import Link
from sluice.loops.pinages import Since
from sluice.loops.world import World
from sluice.names import PinState, Register
from sluice.switch.admission import wanted as admitted
from sluice.switch.connections import lifetime_s, whose
from sluice.switch.plan import Service

from .newsyn import NewSyn

PORTS = 1 << 16
_KEYS, _SERVERS = (Register.PIN_KEY_1, Register.PIN_KEY_2), (Register.PIN_SERVER_1, Register.PIN_SERVER_2)


@dataclass(frozen=True, slots=True)
class Question:
    """Whose connections, and to what."""

    client: Address
    port: int | None
    service: Service

    def connection(self, port: int) -> Connection:
        """The client's from a port."""
        return Connection(self.client.packed, port, self.service.config.address.packed, self.service.config.port)


@dataclass(frozen=True, slots=True)
class Slot:
    """A connection's cell."""

    port: int
    way: int
    cell: int
    key: int
    server: int

    @property
    def state(self) -> PinState:
        """Of the connection."""
        return PinState(min(self.key >> STATE_SHIFT & (1 << STATE_BITS) - 1, max(PinState)))

    @property
    def stamp(self) -> int:
        """When a packet last kept it, in the table's ticks."""
        return self.key % WRAP


def question(world: World, client: str, service: str) -> Question:
    """What is asked, from ``CLIENT[:PORT]`` and a service's name. Raises Refused."""
    host, colon, port = client.rpartition(":")
    host, port = (host, port) if colon and ":" not in host else (client, "")
    try:
        address = from_text(host)
    except ValueError as error:
        raise Refused(f"{client!r} is no client; write ADDRESS or ADDRESS:PORT, as in 192.0.2.7:40000") from error
    if address.version != 4:
        raise Refused(f"{client}: the switch carries IPv4 only")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < PORTS):
        raise Refused(f"{client!r}: a port is a number from 1 to {PORTS - 1}")
    found = world.plan.service(service)
    if found is None:
        known = ", ".join(s.name for s in world.plan.services if s.of is None)
        raise Refused(f"no service {service!r}; there is: {known}")
    if found.of is not None:
        raise Refused(f"{service} is a group of a content service; ask for the service that clients connect to")
    return Question(address, int(port) if port else None, found)


async def explain(controller: Controller, client: str, service: str) -> dict[str, Any]:
    """The pins of a client's connections, and what becomes of its next SYN. Reads only. Raises Refused, SwitchError."""
    world, link = controller.world, controller.leading()
    asked = question(world, client, service)
    if link.registers.units.pin_states:
        raise Refused("this target keeps its connection table otherwise; `explain` is for the embedded switch and BMv2")
    slots = await (_one(link, asked, asked.port) if asked.port is not None else _every(link, asked))
    shown: dict[str, Any] = {
        "client": str(asked.client),
        "port": asked.port,
        "service": asked.service.name,
        "address": f"{asked.service.config.address}:{asked.service.config.port}",
        "connections": [await _pin(controller, link, asked, slot) for slot in slots],
        "new": await NewSyn(world, link, asked.service).of(
            asked.connection(asked.port) if asked.port is not None else None
        ),
        "limits": limits(world, asked.service),
    }
    return shown


async def _one(link: Link, asked: Question, port: int) -> list[Slot]:
    """The cells of one connection, by index."""
    place = asked.connection(port).place_in(link.size(Register.PIN_KEY_1))
    slots: list[Slot] = []
    for way, cell in enumerate((place.slot_1, place.slot_2)):
        (key,), (server,) = await link.registers.columns((_KEYS[way], _SERVERS[way]), [cell])
        if key and key >> FINGERPRINT_SHIFT == place.fingerprint:
            slots.append(Slot(port, way + 1, cell, key, server))
    return slots[:1]  # the switch takes the first way's, too


async def _every(link: Link, asked: Question) -> list[Slot]:
    """Those of all ports: the whole table is read, for a cell does not say whose it is."""
    columns = await link.registers.arrays([*_KEYS, *_SERVERS])
    size = columns[0].size

    def look() -> list[Slot]:
        places = np.array([asked.connection(port).place_in(size) for port in range(PORTS)], np.int64)
        found: dict[int, Slot] = {}
        for way in (1, 0):
            keys = columns[way][places[:, way]]
            mine = (keys >> np.uint64(FINGERPRINT_SHIFT)).astype(np.int64) == places[:, 2]
            for port in np.flatnonzero(mine & (keys != 0)).tolist():
                cell = int(places[port, way])
                found[port] = Slot(port, way + 1, cell, int(keys[port]), int(columns[2 + way][cell]))
        return [found[port] for port in sorted(found)]

    return await asyncio.to_thread(look)


async def _pin(controller: Controller, link: Link, asked: Question, slot: Slot) -> dict[str, Any]:
    """A pin in words and numbers."""
    world = controller.world
    now = link.clock.at(asyncio.get_running_loop().time(), slot.stamp)
    age_s = (now - slot.stamp) % WRAP * link.registers.units.tick_us / 1e6
    kept_s = lifetime_s(slot.state, world.config.connections, world.idle_s)
    unix_s = time.time() - age_s
    since = since_of(world, slot, link.size(Register.PIN_KEY_1))
    then = await _weights(controller, asked.service, unix_s if since.after_s is None else since.before_s or unix_s)
    return {
        "port": slot.port,
        "server": server_name(world, slot.server),
        "state": slot.state.name.lower(),
        "by": "pin",
        "way": slot.way,
        "pinned_after_unix_s": rounded(since.after_s),
        "pinned_before_unix_s": rounded(since.before_s),
        "seen_before_s": round(age_s, 1),
        "seen_unix_s": round(unix_s, 1),
        "kept_s": round(kept_s, 1),
        "over": age_s > kept_s,
        "unwilling": unwilling(world).get(slot.server),
        **then,
    }


def since_of(world: World, slot: Slot, size: int) -> Since:
    """When its connection was pinned, by the sweeps; ``size``: slots of a way."""
    place = (slot.way - 1) * size + slot.cell
    one = whose(np.array([slot.key], np.uint64), np.array([slot.server], np.uint64))
    return world.ages.since(place, int(one[0]), 2 * size, is_open=slot.state < PinState.SERVER_CLOSING)


def rounded(unix_s: float | None) -> float | None:
    """As JSON has it."""
    return None if unix_s is None else round(unix_s, 1)


async def _weights(controller: Controller, service: Service, unix_s: float) -> dict[str, Any]:
    """The weights of a time as the trace has them or, without, those of now."""
    found = None
    if controller.trace_path and not service.is_content:
        try:
            found = await asyncio.to_thread(weights_at, controller.trace_path, service.name, unix_s)
        except OSError as error:
            raise Refused(f"the decision trace {controller.trace_path} cannot be read: {error.strerror}") from error
    if found is not None:
        return {"weights": found[1], "weights_of": "trace", "weights_unix_s": found[0]}
    names = controller.world.names(service)
    weights = controller.world[Balance].views[service.id].weights
    return {
        "weights": {} if service.is_content else {name: weights.get(number, 0) for number, name in names.items()},
        "weights_of": "now",
        "weights_unix_s": round(time.time(), 1),
    }


def unwilling(world: World) -> Mapping[int, str]:
    """Servers that take no new connections, by number, and why."""
    servers = list(world.plan.servers)
    return (
        {retired.id: "is not configured any more" for retired in world.plan.retired}
        | {server: reason for feature in world.features for server, reason in feature.unwilling().items()}
        | dict.fromkeys(world.drained, "drains")
        | {server.id: "drains by configuration" for server in servers if server.drain}
    )


def server_name(world: World, number: int) -> str:
    """What a person calls a server; a retired one has its address."""
    for server in world.plan.servers:
        if server.id == number:
            return server.name
    return next((str(one.endpoint[0]) for one in world.plan.retired if one.id == number), f"server {number}")


def limits(world: World, service: Service) -> list[dict[str, Any]]:
    """The token buckets that a new connection passes, in their order."""
    state = world.state()
    shown: list[dict[str, Any]] = []
    own = admitted(state).get(service.id)
    if own is not None:
        shown.append({"limit": "admission", "rate_per_s": own.rate, "burst": own.burst})
    number = state.crowd.numbers.get(service.config.address)
    for name, buckets in (("destination", state.crowd.anybody), ("returning", state.crowd.returning)):
        if number is not None and (bucket := buckets.get(number)) is not None:
            shown.append({"limit": name, "rate_per_s": bucket.rate, "burst": bucket.burst})
    return shown
