"""A configuration with the numbers that the switch knows its services and servers by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
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
    """A server that is no longer configured but may still have connections: it stays translated."""

    id: int
    endpoint: Endpoint
    service_id: int


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers a switch already uses."""

    services: Mapping[Endpoint, int] = field(default_factory=dict[Endpoint, int])
    servers: Mapping[Endpoint, int] = field(default_factory=dict[Endpoint, int])


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
    """More services or servers than the program has room for, retired ones included. The text says how many."""


def make_plan(config: Config, known: Numbers | None = None, retired: Collection[Retired] = ()) -> Plan:
    """Number a configuration: what the switch already knows keeps its number, the rest take the lowest free.

    Number 0 stands for none. Servers in ``retired`` that are configured again, or whose service is gone, are left out
    of the result's. Raises OutOfNumbers for more than the switch's tables hold.
    """
    known = known or Numbers()
    taken = {*known.servers.values(), *(server.id for server in retired)}
    free_services, free_servers = _free(known.services.values()), _free(taken)
    old = {server.endpoint: server.id for server in retired} | dict(known.servers)
    numbered: list[Service] = []
    for item in config.services:
        protocol = PROTOCOLS[item.protocol]
        members: list[Server] = []
        for server in item.servers:
            endpoint: Endpoint = (server.address, protocol, server.port)
            number = old.get(endpoint)
            members.append(
                Server(
                    id=next(free_servers) if number is None else number,
                    name=server.name,
                    address=server.address,
                    port=server.port,
                    protocol=protocol,
                    capacity=server.capacity,
                    drain=server.drain,
                )
            )
        key: Endpoint = (item.address, protocol, item.port)
        number = known.services.get(key)
        numbered.append(Service(next(free_services) if number is None else number, item, tuple(members)))
    configured = {server.endpoint: server.id for service in numbered for server in service.servers}
    alive = {service.id for service in numbered}
    _check("services", alive, known.services.values(), SERVICES)
    _check("servers", configured.values(), taken, SERVERS)
    kept = tuple(r for r in retired if r.endpoint not in configured and r.service_id in alive)
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
