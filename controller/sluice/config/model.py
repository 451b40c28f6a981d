"""``sluice.yaml``: its fields. Unknown keys are refused; see configcheck for what several fields must agree on."""

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
    Given,
    HostName,
    HostPort,
    Interface,
    IpAddress,
    MacAddress,
    Name,
    Network,
    Protocol,
    Section,
    SocketPath,
    SwitchPort,
    TransportPort,
    Vlan,
)


class SwitchConfig(Section):
    """Where the switch is."""

    address: HostPort = "127.0.0.1:9559"
    """P4Runtime server."""
    device_id: Annotated[int, Field(ge=0, lt=1 << 64)] = 1
    """P4Runtime's id of the switch."""
    thrift: HostPort | None = None
    """BMv2's Thrift server, used for registers where P4Runtime does not read them."""
    election_id: Annotated[int, Field(ge=1, lt=1 << 63)] | None = None
    """Higher wins. Left out: the controller that started first stays, later ones stand by."""
    pipeline: FilePath | None = None
    """Directory with sluice.json and sluice.p4info.txtpb; left out: those that came with this program."""
    target: Literal["embedded", "bmv2", "tofino"] | None = None
    """What kind of switch it is; left out: what it says of itself."""


class InterfaceConfig(Section):
    """A port of the switch as a router interface."""

    port: SwitchPort
    """P4Runtime's number of the port."""
    mac: MacAddress
    """The router's MAC address at this port."""
    address: Interface
    """The router's address and its subnet; ports of one subnet share it."""
    vlan: Vlan = "keep"
    """What leaves by this port: tags as they are, without a tag, or with this VLAN id."""
    inside: bool | None = None
    """Servers are behind this port; left out: when the way to a server or a watched host leads there."""


class RouteConfig(Section):
    """A static route."""

    to: Network
    """The prefix."""
    via: IpAddress
    """The next hop, in the subnet of an interface."""


class AdmissionConfig(Section):
    """A limit on a service's new connections (SYNs)."""

    rate_per_s: Annotated[int, Field(ge=1, le=10_000_000)]
    """New connections per second."""
    burst: Annotated[int, Field(ge=1, le=10_000_000)]
    """The bucket: so many at once."""


class ServerConfig(Section):
    """A server of a service."""

    name: Name
    address: IpAddress
    """A host in the subnet of an interface, or behind a route."""
    port: TransportPort
    """The TCP port that the server listens on."""
    capacity: Annotated[float, Field(ge=0.001, le=1000)] = 1.0
    """Relative to the other servers'."""
    drain: bool = False
    """It gets no new connections; those that it has stay."""
    max_connections: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """At so many open connections, half-open ones too, new ones go to other servers; with all full they are refused.
    Left out: no cap."""
    resources: Annotated[ServerResourcesConfig | None, Given] = None
    """Where it has others than the service's ``resources`` say."""


class ServiceConfig(Section):
    """A virtual address and the servers behind it."""

    name: Name
    address: IpAddress
    """What clients connect to; no host has it."""
    port: TransportPort
    """The TCP port that clients connect to."""
    protocol: Protocol = "tcp"
    admission: AdmissionConfig | None = None
    """A limit on its new connections; left out: none."""
    balance: BalanceOptions = BalanceOptions()
    """Who decides the servers' shares, and how."""
    second_look: bool | None = None
    """New connections go to an idle server (not on Tofino), or the one of a few with least to do for its weight.

    Left out: in production mode."""
    looks: Annotated[int, Field(ge=2, le=MOST_LOOKS)] | None = None
    """Servers that such a connection looks at; left out: 4, on Tofino 2."""
    servers: Annotated[tuple[ServerConfig, ...], Field(min_length=1)] = ()
    """At least one, unless the service has ``content``."""
    content: ContentConfig | None = None
    """Requests go to groups by what they say; then its agents stand for servers."""
    resources: Annotated[ResourcesConfig | None, Given] = None
    """Its servers' TCP buffers and idle connections are managed; left out: they are not."""

    @property
    def members(self) -> tuple[ServerConfig, ...]:
        """Whom the switch chooses from: the servers, or the agents of a content service."""
        if self.content is None:
            return self.servers
        return tuple(
            ServerConfig(name=one.name, address=one.address, port=self.port, capacity=one.capacity, drain=one.drain)
            for one in self.content.agents
        )


class ConnectionsConfig(Section):
    """How long the connection table keeps a connection's server for it behind the last packet that counted, in seconds.

    RFC 5382, REQ-5: an established connection 2 hours 4 minutes, one that is half open or half closed 4 minutes.
    """

    idle_s: Annotated[float, Field(gt=0, le=86_400)] = 7_440.0
    """An established connection, as long as the table is less than a quarter full."""
    idle_least_s: Annotated[float, Field(gt=0, le=86_400)] = 300.0
    """An established connection, when the table is half full or more; never longer than ``idle_s``."""
    pending_s: Annotated[float, Field(gt=0, le=3_600)] = 10.0
    """A SYN that was not answered. Shorter than the RFC's: a flood's entries are to live short."""
    answered_s: Annotated[float, Field(gt=0, le=3_600)] = 60.0
    """A SYN-ACK that the client has not acknowledged: as long as Linux repeats it."""
    half_closed_s: Annotated[float, Field(gt=0, le=3_600)] = 240.0
    """A connection that its server has closed and its client has not, or that its client has reset."""
    linger_s: Annotated[float, Field(gt=0, le=3_600)] = 2.0
    """A connection that both ends have closed, or that its server has reset."""


class PuntsConfig(Section):
    """How much the switch may send to the controller, per reason."""

    rate_per_s: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Packets and digests per second."""
    burst: Annotated[int, Field(ge=1, le=100_000)] = 50
    """So many at once."""
    time_exceeded_per_s: Annotated[float, Field(gt=0, le=10_000)] = 50.0
    """ICMP time-exceeded answers."""


class NeighboursConfig(Section):
    """ARP. Times in seconds."""

    refresh_s: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    """A known neighbour is asked again so often."""
    retry_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    """An unknown neighbour is asked again so often."""
    forget_after: Annotated[int, Field(ge=1, le=100)] = 5
    """Unanswered refreshes after which a neighbour that no one configured is forgotten."""


class WatchedHost(Section):
    """A host that is no service and whose requests are counted, so that a crowd there is limited without delay."""

    name: Name
    address: IpAddress
    limit: AdmissionConfig | None = None
    """A limit of its own, in force unless flash-crowd control sets a lower one."""


@dataclass(frozen=True, slots=True)
class NewsConfig(NewsOptions):
    """Flash-crowd control: its parameters, and how the switch measures for it."""

    hosts: tuple[WatchedHost, ...] = ()
    """Watched beside the services' addresses."""
    refuse: Literal["drop", "reset"] = "drop"
    """What a refused SYN gets: silence, as in Chen & Heidemann, or an answer that ends the attempt."""
    poll_s: Annotated[float, Field(gt=0, le=60)] = 1.0
    """The switch is read so often, at least once an interval; an interval has a whole number of readings."""
    rate_window_s: Annotated[float, Field(ge=0.001, le=60)] = 1.0
    """The window of a flow's response rate, rounded to a power of two of a microsecond."""
    trace_file: FilePath | None = None
    """A line of comma-separated values per decision is appended here."""
    baseline_file: FilePath | None = None
    """What production mode knows of usual traffic is kept here, for a controller that starts within an hour. Default:
    `control` with `.baseline` behind it."""


class MetricsConfig(Section):
    """The Prometheus endpoint."""

    address: HostPort = "127.0.0.1:9464"
    """Where Prometheus scrapes; unencrypted."""


class PageConfig(Section):
    """The live page, served by a process of its own; takes the extra ``page`` of the package."""

    address: HostPort = "127.0.0.1:8080"
    """Where browsers find it; unencrypted."""
    names: tuple[HostName, ...] = ()
    """Names that a proxy in front of it has for browsers, such as `status.example`; with a port, such as
    `status.example:8443`, where browsers name one. `localhost`, any IP address and the host of `address` need none."""
    control: bool = False
    """Whoever has the token can drain servers and change modes there; false: it only shows."""
    token_file: FilePath | None = None
    """The token, for its owner's eyes only; made when it is missing. Default: `control` with `.token` behind it."""


class Config(Section):
    """The whole file."""

    switch: SwitchConfig = SwitchConfig()
    interfaces: Annotated[tuple[InterfaceConfig, ...], Field(min_length=1)]
    """The ports that the switch routes between."""
    routes: tuple[RouteConfig, ...] = ()
    """Static routes; the interfaces' subnets need none."""
    services: Annotated[tuple[ServiceConfig, ...], Field(min_length=1)]
    """The virtual addresses."""
    connections: ConnectionsConfig = ConnectionsConfig()
    punts: PuntsConfig = PuntsConfig()
    neighbours: NeighboursConfig = NeighboursConfig()
    news: Annotated[NewsConfig | None, Given] = None
    """Flash-crowd control; left out: none."""
    metrics: Annotated[MetricsConfig | None, Given] = None
    page: Annotated[PageConfig | None, Given] = None
    """A live page of services, servers, decisions and drops; left out: none."""
    control: SocketPath = "/run/sluice.sock"
    """Unix socket of ``sluice status`` and the other commands."""
    trace_file: FilePath | None = None
    """One JSON line per decision is appended here."""

    @property
    def contents(self) -> dict[str, ServiceConfig]:
        """The content service of every group, by the group's name."""
        return {name: item for item in reversed(self.services) if item.content for name in item.content.groups}
