"""Gathers the data of ``sluice explain`` about a client's connections; `explaintext` renders it as text."""

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
from sluice.switch.connections import identity_of, lifetime_s
from sluice.switch.plan import Service

from .nextsyn import NextSyn

PORTS = 1 << 16
_KEYS, _SERVERS = (Register.PIN_KEY_1, Register.PIN_KEY_2), (Register.PIN_SERVER_1, Register.PIN_SERVER_2)


@dataclass(frozen=True, slots=True)
class Question:
    """The connections that a user inquires about: those of a client, from one port or from all ports, to a service."""

    client: Address
    port: int | None
    service: Service

    def connection(self, port: int) -> Connection:
        """Return the client's connection from a port."""
        return Connection(self.client.packed, port, self.service.config.address.packed, self.service.config.port)


@dataclass(frozen=True, slots=True)
class Slot:
    """A connection's slot in the connection table."""

    port: int
    way: int
    cell: int
    key: int
    server: int

    @property
    def state(self) -> PinState:
        """The connection's state."""
        return PinState(min(self.key >> STATE_SHIFT & (1 << STATE_BITS) - 1, max(PinState)))

    @property
    def stamp(self) -> int:
        """The time of the last packet that renewed the slot, in the table's ticks."""
        return self.key % WRAP


def question(world: World, client: str, service: str) -> Question:
    """Parse a question from ``CLIENT[:PORT]`` and a service's name. Raises Refused."""
    host, colon, port = client.rpartition(":")
    host, port = (host, port) if colon and ":" not in host else (client, "")
    try:
        address = from_text(host)
    except ValueError as error:
        raise Refused(f"{client!r} is not a client; write ADDRESS or ADDRESS:PORT, as in 192.0.2.7:40000") from error
    if address.version != 4:
        raise Refused(f"{client}: the switch carries IPv4 only")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < PORTS):
        raise Refused(f"{client!r}: a port is a number from 1 to {PORTS - 1}")
    asked_service = world.plan.service(service)
    if asked_service is None:
        names = ", ".join(s.name for s in world.plan.services if s.group_of is None)
        raise Refused(f"no service {service!r}; there is: {names}")
    if asked_service.group_of is not None:
        raise Refused(f"{service} is a group of a content service; ask for the service that clients connect to")
    return Question(address, int(port) if port else None, asked_service)


async def explain(controller: Controller, client: str, service: str) -> dict[str, Any]:
    """Return a client's pins (its entries in the connection table), the switch's predicted treatment of the client's
    next SYN, and the limits on new connections. Writes nothing. Raises Refused, SwitchError."""
    world, link = controller.world, controller.leading()
    subject = question(world, client, service)
    if link.registers.units.pin_states:
        raise Refused(
            "this target's connection table has another layout; `explain` is for the embedded switch and BMv2"
        )
    slots = await (_read_slot(link, subject, subject.port) if subject.port is not None else _read_slots(link, subject))
    shown: dict[str, Any] = {
        "client": str(subject.client),
        "port": subject.port,
        "service": subject.service.name,
        "address": f"{subject.service.config.address}:{subject.service.config.port}",
        "connections": [await _pin(controller, link, subject, slot) for slot in slots],
        "new": await NextSyn(world, link, subject.service).of(
            subject.connection(subject.port) if subject.port is not None else None
        ),
        "limits": limits(world, subject.service),
    }
    return shown


async def _read_slot(link: Link, subject: Question, port: int) -> list[Slot]:
    """Return the slot of one connection, read by its index; an empty list if the connection has no slot."""
    place = subject.connection(port).place_in(link.size(Register.PIN_KEY_1))
    slots: list[Slot] = []
    for way, cell in enumerate((place.slot_1, place.slot_2)):
        (key,), (server,) = await link.registers.columns((_KEYS[way], _SERVERS[way]), [cell])
        if key and key >> FINGERPRINT_SHIFT == place.fingerprint:
            slots.append(Slot(port, way + 1, cell, key, server))
    return slots[:1]  # way 1 has precedence, as in the switch


async def _read_slots(link: Link, subject: Question) -> list[Slot]:
    """Return the slots of the client's connections from all ports. A cell does not contain its connection's port.
    Therefore the complete table is read and compared with the fingerprints of all ports."""
    columns = await link.registers.arrays([*_KEYS, *_SERVERS])
    size = columns[0].size

    def find() -> list[Slot]:
        places = np.array([subject.connection(port).place_in(size) for port in range(PORTS)], np.int64)
        slots_by_port: dict[int, Slot] = {}
        for way in (1, 0):
            keys = columns[way][places[:, way]]
            is_match = (keys >> np.uint64(FINGERPRINT_SHIFT)).astype(np.int64) == places[:, 2]
            for port in np.flatnonzero(is_match & (keys != 0)).tolist():
                cell = int(places[port, way])
                slots_by_port[port] = Slot(port, way + 1, cell, int(keys[port]), int(columns[2 + way][cell]))
        return [slots_by_port[port] for port in sorted(slots_by_port)]

    return await asyncio.to_thread(find)


async def _pin(controller: Controller, link: Link, subject: Question, slot: Slot) -> dict[str, Any]:
    """Return a pin (a connection's entry in the connection table) as plain data."""
    world = controller.world
    now = link.clock.at(asyncio.get_running_loop().time(), slot.stamp)
    age_s = (now - slot.stamp) % WRAP * link.registers.units.tick_us / 1e6
    lifetime = lifetime_s(slot.state, world.config.connections, world.idle_s)
    unix_s = time.time() - age_s
    since = since_of(world, slot, link.size(Register.PIN_KEY_1))
    weights = await _weights(controller, subject.service, unix_s if since.after_s is None else since.before_s or unix_s)
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
        "kept_s": round(lifetime, 1),
        "over": age_s > lifetime,
        "unwilling": closed_servers(world).get(slot.server),
        **weights,
    }


def since_of(world: World, slot: Slot, size: int) -> Since:
    """Return when the connection's entry was created, as far as the controller's periodic sweeps of the table show.
    ``size``: the number of slots in a way (one of the two hash tables)."""
    place = (slot.way - 1) * size + slot.cell
    identities = identity_of(np.array([slot.key], np.uint64), np.array([slot.server], np.uint64))
    return world.ages.since(place, int(identities[0]), 2 * size, is_open=slot.state < PinState.SERVER_CLOSING)


def rounded(unix_s: float | None) -> float | None:
    """Return a time in seconds, rounded for JSON."""
    return None if unix_s is None else round(unix_s, 1)


async def _weights(controller: Controller, service: Service, unix_s: float) -> dict[str, Any]:
    """Return the weights at the time ``unix_s`` from the decision trace, or the current weights if the trace has none.
    A content service has no weights."""
    traced = None
    if controller.trace_path and not service.is_content:
        try:
            traced = await asyncio.to_thread(weights_at, controller.trace_path, service.name, unix_s)
        except OSError as error:
            raise Refused(f"the decision trace {controller.trace_path} cannot be read: {error.strerror}") from error
    if traced is not None:
        return {"weights": traced[1], "weights_of": "trace", "weights_unix_s": traced[0]}
    names = controller.world.names(service)
    weights = controller.world[Balance].views[service.id].weights
    return {
        "weights": {} if service.is_content else {name: weights.get(number, 0) for number, name in names.items()},
        "weights_of": "now",
        "weights_unix_s": round(time.time(), 1),
    }


def closed_servers(world: World) -> Mapping[int, str]:
    """Return the servers that accept no new connections, by server number, with the reason."""
    servers = list(world.plan.servers)
    return (
        {retired.id: "is not configured any more" for retired in world.plan.retired}
        | {server: reason for feature in world.features for server, reason in feature.unwilling().items()}
        | dict.fromkeys(world.drained, "drains")
        | {server.id: "drains by configuration" for server in servers if server.drain}
    )


def server_name(world: World, number: int) -> str:
    """Return a server's name; for a retired server, its address."""
    for server in world.plan.servers:
        if server.id == number:
            return server.name
    retired = {server.id: str(server.endpoint[0]) for server in world.plan.retired}
    return retired.get(number, f"server {number}")


def limits(world: World, service: Service) -> list[dict[str, Any]]:
    """Return the token buckets that may refuse a new connection to a service.

    These are the service's own bucket (``admission``), that of its address (``destination``), and a second one of its
    address for remembered clients that the first refused (``returning``).
    """
    state = world.state()
    shown: list[dict[str, Any]] = []
    own = admitted(state).get(service.id)
    if own is not None:
        shown.append({"limit": "admission", "rate_per_s": own.rate, "burst": own.burst})
    number = state.crowd.numbers.get(service.config.address)
    for name, buckets in (("destination", state.crowd.general), ("returning", state.crowd.returning)):
        if number is not None and (bucket := buckets.get(number)) is not None:
            shown.append({"limit": name, "rate_per_s": bucket.rate, "burst": bucket.burst})
    return shown
