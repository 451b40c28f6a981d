"""The plan: a configuration in which services and servers have the numbers that the switch's tables use."""

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
"""Address, IP protocol number, port."""

PROTOCOLS = {"tcp": PROTOCOL_TCP}


@dataclass(frozen=True, slots=True)
class Server:
    """A configured server and its number."""

    id: int
    name: str
    address: Address
    port: int
    protocol: int
    capacity: float
    drain: bool
    """Whether the configuration drains the server."""
    max_connections: int | None = None

    @property
    def endpoint(self) -> Endpoint:
        """The source endpoint of the server's answers."""
        return (self.address, self.protocol, self.port)


@dataclass(frozen=True, slots=True)
class Home:
    """The service to which a server's connections belong: the server's own service or, for a server in a group, the
    content service of that group."""

    id: int
    endpoint: Endpoint


@dataclass(frozen=True, slots=True)
class Service:
    """A configured service with its number and its servers. A content service's servers are its agents (HTTP
    proxies)."""

    id: int
    config: ServiceConfig
    servers: tuple[Server, ...]
    group_of: Home | None = None
    """The content service of which this service is a group; None for other services."""

    @property
    def caps(self) -> dict[int, int]:
        """The maximal number of open connections of each server that has a cap, by server number."""
        return {server.id: server.max_connections for server in self.servers if server.max_connections is not None}

    @property
    def is_content(self) -> bool:
        """Whether agents distribute the service's requests to groups by the requests' content."""
        return self.config.content is not None

    @property
    def home(self) -> Home:
        """The service to which the connections of this service's servers belong."""
        return self.group_of or Home(self.id, self.endpoint)

    @property
    def installed(self) -> Iterator[InstalledServer]:
        """The service's servers in the form in which the switch's tables contain them."""
        home = self.home.id
        is_group = self.group_of is not None
        return (InstalledServer(server.id, server.endpoint, home, is_group) for server in self.servers)

    @property
    def name(self) -> str:
        """The service's name in the configuration."""
        return self.config.name

    def second_look(self, mode: Mode) -> bool:
        """Return whether the switch compares several servers for a new connection (second look).

        It never does so for a content service. For other services the configured value decides or, without one, the
        default of the mode's policy.
        """
        configured = self.config.second_look
        if self.is_content:
            return False
        return POLICIES[mode].second_look if configured is None else configured

    @property
    def looks(self) -> int:
        """The number of servers that the switch compares for a new connection (second look)."""
        return MOST_LOOKS if self.config.looks is None else self.config.looks

    @property
    def protocol(self) -> int:
        """The service's IP protocol number."""
        return PROTOCOLS[self.config.protocol]

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint that clients connect to."""
        return (self.config.address, self.protocol, self.config.port)


@dataclass(frozen=True, slots=True)
class InstalledServer:
    """A server in the switch's tables. A server that is no longer configured remains in them, since it may still have
    open connections."""

    id: int
    endpoint: Endpoint
    service_id: int
    """The number of the server's home service."""
    in_group: bool = False
    """Whether the server belongs to a group of its home service, which is then a content service."""


@dataclass(frozen=True)
class Plan:
    """Everything static that the controller programs into a switch."""

    config: Config
    services: tuple[Service, ...]
    retired: tuple[InstalledServer, ...] = ()

    @property
    def servers(self) -> Iterator[Server]:
        """All configured servers, each once."""
        return iter({server.id: server for service in self.services for server in service.servers}.values())

    @property
    def agents(self) -> Iterator[Server]:
        """The servers of content services, which are their agents."""
        return (agent for service in self.services if service.is_content for agent in service.servers)

    def service(self, name: str) -> Service | None:
        """Return the service with that name; None if there is none."""
        return next((service for service in self.services if service.name == name), None)

    @cached_property
    def capped(self) -> tuple[Service, ...]:
        """The services with a limit on a server's open connections; the controller reads the loads of these services
        ten times a second."""
        return tuple(service for service in self.services if service.caps)

    @cached_property
    def own_addresses(self) -> frozenset[Address]:
        """The switch's own addresses: those of interfaces and services. The addresses of a content service's groups are
        not among them, because no client sends packets to a group."""
        config, groups = self.config, self.config.contents
        addressed = {service.address for service in config.services if service.name not in groups}
        return frozenset({i.address.ip for i in config.interfaces} | addressed)

    def interfaces_towards(self, address: Address) -> list[InterfaceConfig]:
        """Return every interface on which ``address`` may be a neighbour: several ports may share a subnet.

        The list is empty for the switch's own addresses, and for addresses that no host may have (RFC 1122, section
        3.2.1.3).
        """
        if address in self.own_addresses:
            return []
        return [i for i in self.config.interfaces if address in i.address.network and not _is_reserved(i, address)]

    def next_hop(self, address: Address) -> Address | None:
        """Return the neighbour that receives packets to ``address``: by the longest prefix, a route's gateway, or
        ``address`` itself in a connected subnet; None without a route.

        O(number of different prefix lengths).
        """
        for length, hops in self._prefixes[address.version]:
            prefix = int(address) >> (address.max_prefixlen - length)
            if prefix in hops:
                return hops[prefix] or address
        return None

    @cached_property
    def _prefixes(self) -> Mapping[int, list[tuple[int, dict[int, Address | None]]]]:
        """The routes by IP version and then, from the longest prefix to the shortest, by prefix length.

        For each length, a dict contains the next hop, or None for a connected subnet, by the prefix as a number.
        """
        hops: dict[tuple[int, int], dict[int, Address | None]] = {}
        routes = [(route.to, route.via) for route in self.config.routes]
        for network, hop in [*routes, *((i.address.network, None) for i in self.config.interfaces)]:
            prefix = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
            hops.setdefault((network.version, network.prefixlen), {})[prefix] = hop
        longest_first = sorted(hops.items(), key=lambda item: item[0], reverse=True)
        return {
            version: [(length, routes) for (of, length), routes in longest_first if of == version] for version in (4, 6)
        }

    def is_inside(self, interface: InterfaceConfig) -> bool:
        """Return whether servers or watched hosts are behind this port: the configured value, else whether a route to
        one of them leads through the port."""
        if interface.inside is not None:
            return interface.inside
        watched = self.config.news.hosts if self.config.news else ()
        addresses = (*(server.address for server in self.servers), *(host.address for host in watched))
        return any(hop in interface.address.network for a in addresses if (hop := self.next_hop(a)) is not None)

    @cached_property
    def wanted_neighbours(self) -> frozenset[Address]:
        """The next hops whose MAC addresses the controller must resolve: gateways, the next hops towards all servers,
        and the agents on connected subnets. The switch also sends agents packets with other destinations, by their ids.
        """
        hops = frozenset(route.via for route in self.config.routes)
        agents = {agent.address for agent in self.agents if self.interfaces_towards(agent.address)}
        return hops | agents | {hop for server in self.servers if (hop := self.next_hop(server.address))}


def _is_reserved(interface: InterfaceConfig, address: Address) -> bool:
    """Return whether an address is the network address or the broadcast address of the interface's subnet (RFC
    3021)."""
    network = interface.address.network
    return network.prefixlen < 31 and address in (network.network_address, network.broadcast_address)


class OutOfNumbers(Exception):
    """The configuration, together with removed services or servers, needs more numbers than the program supports.

    The message states the numbers and the limit.
    """


class ServerMoved(Exception):
    """A server moves to another service while connections through its former service may still be open.

    A server's packet identifies only the server, so the switch can translate its address back to only one service at a
    time. The message names the server and the remedy.
    """


def _server_moved(name: str, before: str, after: str) -> ServerMoved:
    return ServerMoved(
        f"server {name} moves from service {before} to {after}, and connections through {before} may still be "
        f"open: their answers would come from {after}. `sluice drain {before}/{name}`, wait until `sluice status "
        "--pins` shows no live connection of it, and then move it"
    )


def _content_changed(name: str) -> ServerMoved:
    return ServerMoved(
        f"service {name} begins or ends to switch by content, and its connections may still be open: the switch "
        "would no longer translate them. Give it another address or port, or restart the switch"
    )


def needs_new_numbers(config: Config, known: Mapping[Endpoint, int], servers: Collection[InstalledServer]) -> bool:
    """Return whether a configuration needs a new server number: whether it has a server that the switch does not
    contain in the same service.

    ``known`` and ``servers`` are the services and servers in the switch, as for make_plan.
    """
    installed = {(server.service_id, server.endpoint) for server in servers}
    contents = config.contents
    for item in config.services:
        home = known.get(_endpoint(contents.get(item.name, item)))
        if any(
            (home, (server.address, PROTOCOLS[item.protocol], server.port)) not in installed for server in item.members
        ):
            return True
    return False


def _endpoint(item: ServiceConfig) -> Endpoint:
    return (item.address, PROTOCOLS[item.protocol], item.port)


def make_plan(
    config: Config,
    known: Mapping[Endpoint, int] | None = None,
    retired: Collection[InstalledServer] = (),
    pinned: Collection[int] = (),
) -> Plan:
    """Number a configuration's services and servers: those that the switch already contains keep their number, the
    others get the lowest free one.

    Number 0 means "none". A server has one number per home service: one number for several groups of the same content
    service, but different numbers in different home services.

    ``known``: the services in the switch, and their numbers. ``retired``: the servers in the switch; the plan retains
    those that are no longer configured but whose service still is. ``pinned``: server numbers that pins (entries of the
    connection table) contain, which no other server may get. Raises ServerMoved, and OutOfNumbers for more services or
    servers than the switch's tables support.
    """
    known = known or {}
    free_services = _free(known.values())
    ids = {item.name: known.get(_endpoint(item)) or next(free_services) for item in config.services}
    names = {number: name for name, number in ids.items()}
    used = {*(server.id for server in retired), *pinned}
    numbers = _Numbers({server.endpoint: server for server in retired}, names, frozenset(pinned), _free(used))
    numbered: list[Service] = []
    contents = config.contents
    for item in config.services:
        content = contents.get(item.name)
        service = Service(ids[item.name], item, (), Home(ids[content.name], _endpoint(content)) if content else None)
        numbered.append(replace(service, servers=tuple(numbers.server(service, member) for member in item.members)))
    switching = {service.id for service in numbered if service.is_content}
    for server in retired:
        if server.id in pinned and server.service_id in names and server.in_group != (server.service_id in switching):
            raise _content_changed(names[server.service_id])
    _check("services", names, known.values(), SERVICES)
    _check("servers", numbers.assigned.values(), used, SERVERS)
    # Agents have no entries in the connection table. So an agent that is no longer configured is removed at once, and
    # its connections move to another agent.
    retained = tuple(
        server
        for server in retired
        if server.endpoint not in numbers.assigned
        and server.service_id in names
        and server.in_group == (server.service_id in switching)
    )
    return Plan(config, tuple(numbered), retained)


@dataclass(slots=True)
class _Numbers:
    """Assigns server numbers: the number that the server already has in the switch under its home service, else the
    lowest free number."""

    installed: Mapping[Endpoint, InstalledServer]
    names: Mapping[int, str]
    """Names of the configured services, by number."""
    pinned: Collection[int]
    free: Iterator[int]
    assigned: dict[Endpoint, int] = field(default_factory=dict[Endpoint, int])

    def server(self, service: Service, config: ServerConfig) -> Server:
        """Return a service's server with its number. Raises ServerMoved."""
        endpoint = (config.address, service.protocol, config.port)
        if endpoint not in self.assigned:
            self.assigned[endpoint] = self._number(service, config.name, endpoint)
        return Server(
            id=self.assigned[endpoint],
            name=config.name,
            address=config.address,
            port=config.port,
            protocol=service.protocol,
            capacity=config.capacity,
            drain=config.drain,
            max_connections=config.max_connections,
        )

    def _number(self, service: Service, name: str, endpoint: Endpoint) -> int:
        before = self.installed.get(endpoint)
        if before is None:
            return next(self.free)
        if (before.service_id, before.in_group) == (service.home.id, service.group_of is not None):
            return before.id
        if before.service_id in self.names and before.id in self.pinned:
            if before.service_id == service.home.id:
                raise _content_changed(self.names[before.service_id])
            raise _server_moved(name, self.names[before.service_id], service.name)
        return next(self.free)


def _free(numbers: Iterable[int]) -> Iterator[int]:
    used = set(numbers)
    return (number for number in count(1) if number not in used)


def _check(kind: str, numbers: Collection[int], used: Collection[int], size: int) -> None:
    if max(numbers, default=0) >= size:
        retired = len(set(used).difference(numbers))
        raise OutOfNumbers(
            f"{len(numbers)} {kind} and {retired} retired ones, which may still have connections; the program holds "
            f"{size - 1}"
        )
