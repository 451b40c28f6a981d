"""A configuration with the numbers that the switch knows its services and servers by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count

from sluice.addresses import Address
from sluice.balance import POLICIES, Mode
from sluice.balance.looks import MOST_LOOKS
from sluice.config.model import Config, InterfaceConfig, ServerConfig, ServiceConfig
from sluice.names import PROTOCOL_TCP, SERVERS, SERVICES

Endpoint = tuple[Address, int, int]
"""Address, protocol, port."""

PROTOCOLS = {"tcp": PROTOCOL_TCP}


@dataclass(frozen=True, slots=True)
class Server:
    """A server and its number."""

    id: int
    name: str
    address: Address
    port: int
    protocol: int
    capacity: float
    drain: bool
    """Draining by configuration."""
    max_connections: int | None = None

    @property
    def endpoint(self) -> Endpoint:
        """What its answers come from."""
        return (self.address, self.protocol, self.port)


@dataclass(frozen=True, slots=True)
class Home:
    """The service whose connections a server's are: its own or, of a group's server, the content service."""

    id: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Service:
    """A service, its number and its servers. Those of a content service are its agents."""

    id: int
    config: ServiceConfig
    servers: tuple[Server, ...]
    of: Home | None = None
    """The content service that it is a group of."""

    @property
    def caps(self) -> dict[int, int]:
        """The most open connections of those servers that have a cap, by number."""
        return {one.id: one.max_connections for one in self.servers if one.max_connections is not None}

    @property
    def is_content(self) -> bool:
        """Its requests go to groups by what they say."""
        return self.config.content is not None

    @property
    def home(self) -> Home:
        """Whose connections those of its servers are."""
        return self.of or Home(self.id, self.endpoint)

    @property
    def present(self) -> Iterator[Retired]:
        """Its servers as a switch has them."""
        home = self.home.id
        return (Retired(server.id, server.endpoint, home, self.of is not None) for server in self.servers)

    @property
    def name(self) -> str:
        """As configured."""
        return self.config.name

    def second_look(self, mode: Mode) -> bool:
        """Whether new connections take a second look: as configured or, without that, as the mode's policy has it."""
        configured = self.config.second_look
        if self.is_content:
            return False
        return POLICIES[mode].second_look if configured is None else configured

    @property
    def looks(self) -> int:
        """At how many servers those look."""
        return MOST_LOOKS if self.config.looks is None else self.config.looks

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
    """Its home's."""
    in_group: bool = False
    """The home is a content service."""


@dataclass(frozen=True)
class Plan:
    """Everything static that a switch is to be programmed with."""

    config: Config
    services: tuple[Service, ...]
    retired: tuple[Retired, ...] = ()

    @property
    def servers(self) -> Iterator[Server]:
        """All configured servers, each once."""
        return iter({server.id: server for service in self.services for server in service.servers}.values())

    @property
    def agents(self) -> Iterator[Server]:
        """Those of content services."""
        return (agent for service in self.services if service.is_content for agent in service.servers)

    def service(self, name: str) -> Service | None:
        """The service of that name."""
        return next((service for service in self.services if service.name == name), None)

    @cached_property
    def capped(self) -> tuple[Service, ...]:
        """The services of which a server has a cap on open connections: they are looked at ten times a second."""
        return tuple(service for service in self.services if service.caps)

    @cached_property
    def own_addresses(self) -> frozenset[Address]:
        """The switch's own: the interfaces' and the services'. Nobody asks for those of groups."""
        config, groups = self.config, self.config.contents
        addressed = {service.address for service in config.services if service.name not in groups}
        return frozenset({i.address.ip for i in config.interfaces} | addressed)

    def interfaces_towards(self, address: Address) -> list[InterfaceConfig]:
        """Every interface that ``address`` may be a neighbour on: several ports may share a subnet.

        None for an address of our own, and for those that RFC 1122, section 3.2.1.3, gives to no host.
        """
        if address in self.own_addresses:
            return []
        return [i for i in self.config.interfaces if address in i.address.network and not _for_all(i, address)]

    def next_hop(self, address: Address) -> Address | None:
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
    def wanted_neighbours(self) -> set[Address]:
        """Next hops that the configuration needs: gateways, and the way to every server."""
        hops = {route.via for route in self.config.routes}
        return hops | {hop for server in self.servers if (hop := self.next_hop(server.address))}


def _for_all(interface: InterfaceConfig, address: Address) -> bool:
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


def _moved(name: str, before: str, after: str) -> Moved:
    return Moved(
        f"server {name} moves from service {before} to {after}, and connections through {before} may still be "
        f"open: their answers would come from {after}. `sluice drain {before}/{name}`, wait until `sluice status "
        "--pins` shows no live connection of it, and then move it"
    )


def _turned(name: str) -> Moved:
    return Moved(
        f"service {name} begins or ends to switch by content, and its connections may still be open: nobody would "
        "translate them. Give it another address or port, or restart the switch"
    )


def has_strangers(config: Config, known: Mapping[Endpoint, int], servers: Collection[Retired]) -> bool:
    """Whether a configuration has a server that the switch does not know in its service: it is to get a number.

    ``known`` and ``servers`` are what the switch has, as for make_plan.
    """
    old = {(server.service_id, server.endpoint) for server in servers}
    contents = config.contents
    for item in config.services:
        home = known.get(_endpoint(contents.get(item.name, item)))
        if any((home, (server.address, PROTOCOLS[item.protocol], server.port)) not in old for server in item.members):
            return True
    return False


def _endpoint(item: ServiceConfig) -> Endpoint:
    return (item.address, PROTOCOLS[item.protocol], item.port)


def make_plan(
    config: Config,
    known: Mapping[Endpoint, int] | None = None,
    retired: Collection[Retired] = (),
    held: Collection[int] = (),
) -> Plan:
    """Number a configuration: what the switch already knows keeps its number, the rest take the lowest free.

    Number 0 stands for none. A server's number is its home's: in another it gets another one, and in several groups of
    one content service it has one. ``known`` are the services that the switch has, and their numbers; ``retired`` its
    servers, of which those configured again, or whose service is gone, are left out of the result's.
    ``held`` are the numbers that pins name: none of them is given to another server. Raises Moved, or OutOfNumbers for
    more than the switch's tables hold.
    """
    known = known or {}
    free_services = _free(known.values())
    ids = {item.name: known.get(_endpoint(item)) or next(free_services) for item in config.services}
    names = {number: name for name, number in ids.items()}
    taken = {*(server.id for server in retired), *held}
    numbers = _Numbers({server.endpoint: server for server in retired}, names, frozenset(held), _free(taken))
    numbered: list[Service] = []
    contents = config.contents
    for item in config.services:
        front = contents.get(item.name)
        service = Service(ids[item.name], item, (), Home(ids[front.name], _endpoint(front)) if front else None)
        numbered.append(replace(service, servers=tuple(numbers.server(service, one) for one in item.members)))
    switching = {service.id for service in numbered if service.is_content}
    for server in retired:
        if server.id in held and server.service_id in names and server.in_group != (server.service_id in switching):
            raise _turned(names[server.service_id])
    _check("services", names, known.values(), SERVICES)
    _check("servers", numbers.given.values(), taken, SERVERS)
    # Agents have no pins: one that is not configured is gone at once, and another has its connections.
    kept = tuple(
        server
        for server in retired
        if server.endpoint not in numbers.given
        and server.service_id in names
        and server.in_group == (server.service_id in switching)
    )
    return Plan(config, tuple(numbered), kept)


@dataclass(slots=True)
class _Numbers:
    """Numbers of servers: their own if the switch has them in their home, else the lowest free."""

    old: Mapping[Endpoint, Retired]
    names: Mapping[int, str]
    """The configured services' by number."""
    held: Collection[int]
    free: Iterator[int]
    given: dict[Endpoint, int] = field(default_factory=dict[Endpoint, int])

    def server(self, service: Service, config: ServerConfig) -> Server:
        """A server of a service with its number. Raises Moved."""
        endpoint = (config.address, service.protocol, config.port)
        if endpoint not in self.given:
            self.given[endpoint] = self._number(service, config.name, endpoint)
        return Server(
            id=self.given[endpoint],
            name=config.name,
            address=config.address,
            port=config.port,
            protocol=service.protocol,
            capacity=config.capacity,
            drain=config.drain,
            max_connections=config.max_connections,
        )

    def _number(self, service: Service, name: str, endpoint: Endpoint) -> int:
        before = self.old.get(endpoint)
        if before is None:
            return next(self.free)
        if (before.service_id, before.in_group) == (service.home.id, service.of is not None):
            return before.id
        if before.service_id in self.names and before.id in self.held:
            if before.service_id == service.home.id:
                raise _turned(self.names[before.service_id])
            raise _moved(name, self.names[before.service_id], service.name)
        return next(self.free)


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
