"""The fields of ``sluice.yaml``. Unknown keys are refused. The module ``check`` tests conditions that concern several
fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from sluice.balance import BalanceOptions
from sluice.balance.looks import MOST_LOOKS
from sluice.news import NewsOptions

from .content import ContentConfig
from .resources import ResourcesConfig, ServerResourcesConfig
from .types import (
    FilePath,
    HostName,
    HostPort,
    Interface,
    IpAddress,
    MacAddress,
    Name,
    Network,
    NotNull,
    Protocol,
    Section,
    SocketPath,
    SwitchPort,
    TransportPort,
    Vlan,
)


class SwitchConfig(Section):
    """How the controller connects to the switch."""

    address: HostPort = "127.0.0.1:9559"
    """The address of the switch's P4Runtime server."""
    device_id: Annotated[int, Field(ge=0, lt=1 << 64)] = 1
    """The switch's device id in P4Runtime."""
    thrift: HostPort | None = None
    """The address of BMv2's Thrift server, for registers, which BMv2 does not offer over P4Runtime."""
    election_id: Annotated[int, Field(ge=1, lt=1 << 63)] | None = None
    """P4Runtime election id; the controller with the highest one is primary. Left out: the controller that started
    first is primary, and later ones are backups."""
    pipeline: FilePath | None = None
    """Directory with sluice.json and sluice.p4info.txtpb. Left out: the program that comes with sluice."""
    target: Literal["embedded", "bmv2", "tofino"] | None = None
    """The kind of switch. Left out: the kind that the switch reports."""


class InterfaceConfig(Section):
    """A port of the switch as a router interface."""

    port: SwitchPort
    """The port's number in P4Runtime."""
    mac: MacAddress
    """The router's MAC address on this port."""
    address: Interface
    """The router's address and its subnet. Ports of one subnet have the same address."""
    vlan: Vlan = "keep"
    """The VLAN tag of frames that leave by this port: `keep` leaves the tag as it is, `strip` removes it, and a number
    is the VLAN id of the tag with which the frames are sent."""
    inside: bool | None = None
    """Whether servers are behind this port. Left out: yes, if a route to a server or a watched host leads through the
    port."""


class RouteConfig(Section):
    """A static route."""

    to: Network
    """The destination prefix."""
    via: IpAddress
    """The next hop, in the subnet of an interface."""


class AdmissionConfig(Section):
    """A limit on a service's new connections (SYNs)."""

    rate_per_s: Annotated[int, Field(ge=1, le=10_000_000)]
    """The largest number of new connections per second, on average."""
    burst: Annotated[int, Field(ge=1, le=10_000_000)]
    """The token bucket's size: the number of new connections that may arrive at once."""


class ServerConfig(Section):
    """A server of a service."""

    name: Name
    address: IpAddress
    """The server's address, in the subnet of an interface or behind a route."""
    port: TransportPort
    """The TCP port on which the server listens."""
    capacity: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """The server's capacity relative to the other servers' capacities."""
    drain: bool = False
    """Whether the server drains: it gets no new connections, and keeps those that it has."""
    max_connections: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """The largest number of open connections, half-open ones included. At this limit new connections go to other
    servers; if all servers are full, new connections are refused. Left out: no limit."""
    resources: Annotated[ServerResourcesConfig | None, NotNull] = None
    """Settings of this server that differ from the service's ``resources``."""


class ServiceConfig(Section):
    """A virtual address and the servers behind it."""

    name: Name
    address: IpAddress
    """The virtual address to which clients connect; no host has it."""
    port: TransportPort
    """The TCP port to which clients connect."""
    protocol: Protocol = "tcp"
    admission: AdmissionConfig | None = None
    """A limit on the service's new connections. Left out: no limit."""
    balance: BalanceOptions = BalanceOptions()
    """How the servers' shares of new connections are decided."""
    second_look: bool | None = None
    """Whether a new connection goes to an idle server (not on Tofino) or else to the least loaded, by weight, of two to
    four randomly drawn servers. Left out: in production mode only."""
    looks: Annotated[int, Field(ge=2, le=MOST_LOOKS)] | None = None
    """The number of servers that the switch compares for a new connection (second look). Left out: 4; on Tofino, 2."""
    servers: Annotated[tuple[ServerConfig, ...], Field(min_length=1)] = ()
    """The servers: at least one, unless the service has ``content``."""
    content: ContentConfig | None = None
    """Content switching: agents read the requests and distribute each request to a group of servers by its content."""
    resources: Annotated[ResourcesConfig | None, NotNull] = None
    """Management of the servers' TCP buffers and idle connections. Left out: not managed."""

    @property
    def members(self) -> tuple[ServerConfig, ...]:
        """The targets of the switch's selection: the servers, or a content service's agents."""
        if self.content is None:
            return self.servers
        return tuple(
            ServerConfig(
                name=agent.name, address=agent.address, port=self.port, capacity=agent.capacity, drain=agent.drain
            )
            for agent in self.content.agents
        )


class ConnectionsConfig(Section):
    """Lifetimes in the connection table: for how many seconds after the last renewing packet the table stores a
    connection's server.

    RFC 5382, REQ-5, requires 2 hours 4 minutes for an established connection, and 4 minutes for a half-open or
    half-closed one.
    """

    idle_s: Annotated[float, Field(gt=0, le=86_400)] = 7_440.0
    """Lifetime of an established connection, in seconds, while the connection table is less than a quarter full."""
    idle_least_s: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """Lifetime of an established connection, in seconds, if the connection table is half full or more; never longer
    than ``idle_s``. Between a quarter and a half the lifetime falls geometrically from ``idle_s`` to this value."""
    pending_s: Annotated[float, Field(gt=0, le=3_600)] = 10.0
    """Lifetime of a SYN without an answer, in seconds. It is shorter than RFC 5382 requires, so that entries of a SYN
    flood expire soon."""
    answered_s: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    """Lifetime of a SYN-ACK that the client has not acknowledged, in seconds: the time for which Linux repeats the
    SYN-ACK."""
    half_closed_s: Annotated[float, Field(gt=0, le=3_600)] = 240.0
    """Lifetime of a connection, in seconds, that its server has closed but its client has not, or that its client has
    reset."""
    linger_s: Annotated[float, Field(gt=0, le=3_600)] = 2.0
    """Lifetime of a connection, in seconds, that both ends have closed, or that its server has reset."""


class PuntsConfig(Section):
    """The largest rate at which the switch may send packets to the controller, for each reason."""

    rate_per_s: Annotated[int, Field(ge=1, le=100_000)] = 100
    """The largest number of packets and digests per second, for each reason."""
    burst: Annotated[int, Field(ge=1, le=100_000)] = 50
    """The number of packets and digests that may arrive at once."""
    time_exceeded_per_s: Annotated[float, Field(gt=0, le=10_000)] = 50.0
    """The largest number of ICMP time-exceeded messages that the switch sends per second."""


class NeighboursConfig(Section):
    """Resolution of neighbours by ARP."""

    refresh_s: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    """Seconds between ARP requests to a known neighbour."""
    retry_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    """Seconds between ARP requests to a neighbour that has not answered."""
    forget_after: Annotated[int, Field(ge=1, le=100)] = 5
    """The number of unanswered requests after which a neighbour is removed, unless the configuration needs it."""


class WatchedHost(Section):
    """A host that is not a service. The switch counts the SYNs to this host all the time, so that a crowd at the host
    can be limited without delay."""

    name: Name
    address: IpAddress
    limit: AdmissionConfig | None = None
    """A permanent limit on new connections to the host; flash-crowd control may set a lower one."""


@dataclass(frozen=True, slots=True)
class NewsConfig(NewsOptions):
    """Flash-crowd control: its parameters, and how the switch measures for it."""

    hosts: tuple[WatchedHost, ...] = ()
    """Hosts that are watched in addition to the services' addresses."""
    refuse: Literal["drop", "reset"] = "drop"
    """What happens to a refused SYN: it is dropped, as in Chen & Heidemann's paper, or answered by a reset."""
    poll_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    """Seconds between readings of the switch, rounded so that an interval has a whole number of readings, at least
    one."""
    rate_window_s: Annotated[float, Field(ge=0.001, le=60)] = 1.0
    """The window, in seconds, over which a response's rate is measured. The switch rounds it to seven steps of 2^n
    ticks of its clock."""
    trace_file: FilePath | None = None
    """A file to which a line of comma-separated values is appended for each decision."""
    baseline_file: FilePath | None = None
    """A file in which production mode stores what it has learned of usual traffic, for a controller that starts within
    an hour. Default: the path in `control` with `.baseline` appended."""


class MetricsConfig(Section):
    """The Prometheus endpoint."""

    address: HostPort = "127.0.0.1:9464"
    """The address that Prometheus scrapes, without encryption."""


class PageConfig(Section):
    """The live page, which a separate process serves. The page requires the package's extra ``page``."""

    address: HostPort = "127.0.0.1:8080"
    """The address at which browsers request the page, without encryption."""
    names: tuple[HostName, ...] = ()
    """Host names by which browsers reach the page through a proxy, such as `status.example`, or `status.example:8443`
    if browsers use a port. `localhost`, IP addresses and the host of `address` are accepted without being listed."""
    control: bool = False
    """Whether users with the token can drain servers and change modes on the page; false: the page is read-only."""
    token_file: FilePath | None = None
    """The file with the token, which only its owner may read; created if missing. Default: the path in `control` with
    `.token` appended."""


class Config(Section):
    """The configuration file."""

    switch: SwitchConfig = SwitchConfig()
    interfaces: Annotated[tuple[InterfaceConfig, ...], Field(min_length=1)]
    """The ports between which the switch routes packets."""
    routes: tuple[RouteConfig, ...] = ()
    """Static routes; the interfaces' subnets need none."""
    services: Annotated[tuple[ServiceConfig, ...], Field(min_length=1)]
    """The services: virtual addresses and the servers behind them."""
    connections: ConnectionsConfig = ConnectionsConfig()
    punts: PuntsConfig = PuntsConfig()
    neighbours: NeighboursConfig = NeighboursConfig()
    news: Annotated[NewsConfig | None, NotNull] = None
    """Flash-crowd control. Left out: no flash-crowd control."""
    metrics: Annotated[MetricsConfig | None, NotNull] = None
    page: Annotated[PageConfig | None, NotNull] = None
    """A live page that shows services, servers, decisions and drops. Left out: no page."""
    control: SocketPath = "/run/sluice.sock"
    """The Unix socket for ``sluice status`` and other commands."""
    trace_file: FilePath | None = None
    """A file to which a JSON line is appended for each decision."""

    @property
    def contents(self) -> dict[str, ServiceConfig]:
        """The first content service that uses a group, by the group's name."""
        return {name: item for item in reversed(self.services) if item.content for name in item.content.groups}
