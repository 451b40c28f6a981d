"""A configuration with the numbers that the switch knows its services and servers by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from itertools import count

from sluice.balance import Mode
from sluice.config import Config, InterfaceConfig, ServiceConfig
from sluice.names import PROTOCOL_TCP, SERVERS, SERVICES

Endpoint = tuple[IPv4Address, int, int]
"""Address, protocol, port."""

PROTOCOLS = {"tcp": PROTOCOL_TCP}


@dataclass(frozen=True, slots=True)
class Server:
    """A server and its number."""

    id: int
    name: str
    address: IPv4Address
    port: int
    protocol: int
    capacity: float
    drain: bool
    """Draining by configuration."""

    @property
    def endpoint(self) -> Endpoint:
        """What its answers come from."""
        return (self.address, self.protocol, self.port)

    def retired(self, service_id: int) -> Retired:
        """This server, once it is no longer configured."""
        return Retired(self.id, self.endpoint, service_id)


@dataclass(frozen=True, slots=True)
class Service:
    """A service, its number and its servers."""

    id: int
    config: ServiceConfig
    servers: tuple[Server, ...]

    @property
    def name(self) -> str:
        """As configured."""
        return self.config.name

    def second_look(self, mode: Mode) -> bool:
        """Whether new connections take a second look in a mode: as configured or, without that, in production mode."""
        configured = self.config.second_look
        return mode is Mode.PRODUCTION if configured is None else configured

    @property
    def protocol(self) -> int:
        """IP protocol number."""
        return PROTOCOLS[self.config.protocol]

    @property
    def endpoint(self) -> Endpoint:
        """What clients connect to."""
        return (self.config.address, self.protocol, self.config.port)


@dataclass(frozen=True, slots=True)
class Retired:
    """A server that a switch has. One that is not configured stays translated: it may still have connections."""

    id: int
    endpoint: Endpoint
    service_id: int


@dataclass(frozen=True)
class Plan:
    """Everything static that a switch is to be programmed with."""

    config: Config
    services: tuple[Service, ...]
    retired: tuple[Retired, ...] = ()

    @property
    def servers(self) -> Iterator[Server]:
        """All configured servers."""
        return (server for service in self.services for server in service.servers)

    def service(self, name: str) -> Service | None:
        """The service of that name."""
        return next((service for service in self.services if service.name == name), None)

    @cached_property
    def own_addresses(self) -> frozenset[IPv4Address]:
        """The switch's own: the interfaces' and the services'."""
        config = self.config
        return frozenset({i.address.ip for i in config.interfaces} | {s.address for s in config.services})

    def interfaces_towards(self, address: IPv4Address) -> list[InterfaceConfig]:
        """Every interface that ``address`` may be a neighbour on: several ports may share a subnet.

        None for an address of our own, and for those that RFC 1122, section 3.2.1.3, gives to no host.
        """
        if address in self.own_addresses:
            return []
        return [i for i in self.config.interfaces if address in i.address.network and not _for_all(i, address)]

    def next_hop(self, address: IPv4Address) -> IPv4Address | None:
        """The neighbour through which ``address`` is reached, by the longest prefix; None without a route."""
        prefixes = [(i.address.network, address) for i in self.config.interfaces]
        prefixes += [(route.to, route.via) for route in self.config.routes]
        matching = [(network.prefixlen, hop) for network, hop in prefixes if address in network]
        return max(matching, key=lambda match: match[0])[1] if matching else None

    def is_inside(self, interface: InterfaceConfig) -> bool:
        """Servers or watched hosts are behind this port: as configured or, without that, by the way to them."""
        if interface.inside is not None:
            return interface.inside
        watched = self.config.news.hosts if self.config.news else ()
        addresses = (*(server.address for server in self.servers), *(host.address for host in watched))
        return any(hop in interface.address.network for a in addresses if (hop := self.next_hop(a)) is not None)

    @property
    def wanted_neighbours(self) -> set[IPv4Address]:
        """Next hops that the configuration needs: gateways, and the way to every server."""
        hops = {route.via for route in self.config.routes}
        return hops | {hop for server in self.servers if (hop := self.next_hop(server.address))}


def _for_all(interface: InterfaceConfig, address: IPv4Address) -> bool:
    """Whether an address of an interface's subnet is that of the subnet itself, or its broadcast address (RFC 3021)."""
    network = interface.address.network
    return network.prefixlen < 31 and address in (network.network_address, network.broadcast_address)


class OutOfNumbers(Exception):
    """More services or servers than the program has room for, removed ones included. The text says how many."""


class Moved(Exception):
    """A server moves to another service while connections through its present one may still be open.

    An answer names only the server, so that it can be translated back to one service at a time. The text says which
    server, and what to do.
    """

    def __init__(self, name: str, before: str, after: str) -> None:
        super().__init__(
            f"server {name} moves from service {before} to {after}, and connections through {before} may still be "
            f"open: their answers would come from {after}. `sluice drain {before}/{name}`, wait until `sluice status "
            "--pins` shows no live connection of it, and then move it"
        )


def has_strangers(config: Config, known: Mapping[Endpoint, int], servers: Collection[Retired]) -> bool:
    """Whether a configuration has a server that the switch does not know in its service: it is to get a number.

    ``known`` and ``servers`` are what the switch has, as for make_plan.
    """
    old = {(server.service_id, server.endpoint) for server in servers}
    for item in config.services:
        protocol = PROTOCOLS[item.protocol]
        service = known.get((item.address, protocol, item.port))
        if any((service, (server.address, protocol, server.port)) not in old for server in item.servers):
            return True
    return False


def make_plan(
    config: Config,
    known: Mapping[Endpoint, int] | None = None,
    retired: Collection[Retired] = (),
    held: Collection[int] = (),
) -> Plan:
    """Number a configuration: what the switch already knows keeps its number, the rest take the lowest free.

    Number 0 stands for none. A server's number is its service's: in another service it gets another one. ``known`` are
    the services that the switch has, and their numbers; ``retired`` its servers, of which those configured again, or
    whose service is gone, are left out of the result's.
    ``held`` are the numbers that pins name: none of them is given to another server. Raises Moved, or OutOfNumbers for
    more than the switch's tables hold.
    """
    known = known or {}
    free_services = _free(known.values())
    services = [(item, PROTOCOLS[item.protocol]) for item in config.services]
    endpoints: list[Endpoint] = [(item.address, protocol, item.port) for item, protocol in services]
    ids = [known[one] if one in known else next(free_services) for one in endpoints]
    names = {number: item.name for number, (item, _) in zip(ids, services, strict=True)}

    taken = {*(server.id for server in retired), *held}
    free_servers = _free(taken)
    old = {server.endpoint: server for server in retired}
    numbered: list[Service] = []
    for number, (item, protocol) in zip(ids, services, strict=True):
        members: list[Server] = []
        for server in item.servers:
            before = old.get((server.address, protocol, server.port))
            stays = before is not None and before.service_id == number
            if before is not None and not stays and before.service_id in names and before.id in held:
                raise Moved(server.name, names[before.service_id], item.name)
            members.append(
                Server(
                    id=before.id if before is not None and stays else next(free_servers),
                    name=server.name,
                    address=server.address,
                    port=server.port,
                    protocol=protocol,
                    capacity=server.capacity,
                    drain=server.drain,
                )
            )
        numbered.append(Service(number, item, tuple(members)))
    configured = {server.endpoint: server.id for service in numbered for server in service.servers}
    _check("services", names, known.values(), SERVICES)
    _check("servers", configured.values(), taken, SERVERS)
    kept = tuple(r for r in retired if r.endpoint not in configured and r.service_id in names)
    return Plan(config, tuple(numbered), kept)


def _free(taken: Iterable[int]) -> Iterator[int]:
    used = set(taken)
    return (number for number in count(1) if number not in used)


def _check(what: str, numbers: Collection[int], taken: Collection[int], size: int) -> None:
    if max(numbers, default=0) >= size:
        retired = len(set(taken).difference(numbers))
        raise OutOfNumbers(
            f"{len(numbers)} {what} and {retired} retired ones, which may still have connections; the program holds "
            f"{size - 1}"
        )
