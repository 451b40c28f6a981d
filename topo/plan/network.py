"""Plan of the lab's network: hosts, addresses, ports, and the controller's configuration.

```
 c1 10.0.1.1 --1|        |3-- s1 10.0.11.1
                | sluice |4-- s2 10.0.12.1      web = 10.0.0.100:80
 c2 10.0.2.1 --2|        |5-- s3 10.0.13.1
                |        |6-- h1 10.0.3.1
```
c1 generates the measured load, c2 the long downloads; h1 is a host that is neither client nor server. The switch is the
router of every subnet and has the address .254 in each. Pools with more servers (`pool_of`) use the ports after the
port of h1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Interface

from sluice import names
from sluice.addresses import Address, from_text

SERVICE = "web"
VIP = from_text("10.0.0.100")
WEB_PORT = 80
CPU_PORT = names.CPU_PORT
GRPC_PORT = 9559
THRIFT_PORT = 9090
"""TCP ports of P4Runtime and Thrift on the loopback interface of the switch's namespace."""
ASKED_ONCE = {"refresh_s": 3600}
"""Option by which the controller resolves neighbours only at its start, so that a lab can account for every packet."""


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A host and its switch port."""

    name: str
    port: int
    subnet: int

    @property
    def interface(self) -> IPv4Interface:
        """The host's address."""
        return IPv4Interface(f"10.0.{self.subnet}.1/24")

    @property
    def address(self) -> Address:
        """The host's address without its subnet."""
        return self.interface.ip

    @property
    def gateway(self) -> IPv4Interface:
        """The switch's address in the host's subnet."""
        return IPv4Interface(f"10.0.{self.subnet}.254/24")

    @property
    def mac(self) -> str:
        """The host's MAC address (locally administered)."""
        return f"02:00:00:01:00:{self.port:02x}"

    @property
    def gateway_mac(self) -> str:
        """The switch's MAC address on this port (locally administered)."""
        return f"02:00:00:00:00:{self.port:02x}"


LOAD_CLIENT = HostPlan("c1", 1, 1)
DOWNLOAD_CLIENT = HostPlan("c2", 2, 2)
SERVERS = (HostPlan("s1", 3, 11), HostPlan("s2", 4, 12), HostPlan("s3", 5, 13))
PLAIN_HOST = HostPlan("h1", 6, 3)
SERVER_NAMES = tuple(server.name for server in SERVERS)

CLIENT = HostPlan("client", 1, 1)
FAR = "10.96.0.0/11"
"""The client host in networks with a single client host, and the network that contains the addresses of the host's
users (a /16 for each delay)."""


def servers_behind(count: int) -> list[HostPlan]:
    """Return ``count`` servers for a network with a single client host."""
    return [HostPlan(f"s{number}", 1 + number, 10 + number) for number in range(1, count + 1)]


SERVER_CPUS = 0.1
"""Number of CPUs of each server. A healthy server needs 0.3 ms of CPU time per page; a server loaded by `stress`
answers some 20 pages/s."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The servers of a service, and the number of CPUs of each."""

    servers: Sequence[HostPlan]
    cpus: Sequence[float]

    @property
    def hosts(self) -> Sequence[HostPlan]:
        """The hosts around the switch."""
        return (LOAD_CLIENT, DOWNLOAD_CLIENT, *self.servers, PLAIN_HOST)

    @property
    def names(self) -> Sequence[str]:
        """The servers' names."""
        return tuple(server.name for server in self.servers)


THREE = PoolPlan(SERVERS, (SERVER_CPUS,) * len(SERVERS))
"""The demo's pool of three servers."""


def pool_of(cpus: Sequence[float]) -> PoolPlan:
    """Return a pool with a server for each entry of ``cpus``, which is the server's number of CPUs."""
    more = range(len(SERVERS), len(cpus))
    added = [HostPlan(f"s{number + 1}", PLAIN_HOST.port + 1 + place, 11 + number) for place, number in enumerate(more)]
    return PoolPlan((*SERVERS, *added)[: len(cpus)], tuple(cpus))


@dataclass(frozen=True, slots=True)
class Balance:
    """Balancing options of the service; times in seconds. Ohta & Andou use T (`period_s`) = 10 s, mT (`window_s`) = 200
    s and Delta = 0.1."""

    mode: str
    period_s: float
    window_s: float
    delta: float = 0.1
    second_look: bool | None = None
    """Whether the switch compares the open connections of several servers for each new connection; None: the mode's
    default."""

    def as_config(self) -> dict[str, object]:
        """Return the `balance` mapping of sluice.yaml."""
        return {"mode": self.mode, "period_s": self.period_s, "window_s": self.window_s, "delta": self.delta}


def service(
    name: str, address: Address | str, servers: Iterable[HostPlan], port: int = WEB_PORT, /, **more: object
) -> dict[str, object]:
    """Return a service of sluice.yaml on WEB_PORT, whose servers listen on ``port``; ``more``: further keys of the
    service."""
    listed = [{"name": server.name, "address": str(server.address), "port": port} for server in servers]
    return {"name": name, "address": str(address), "port": WEB_PORT, **more, "servers": listed}


def switch_config(
    hosts: Iterable[HostPlan], services: Iterable[Mapping[str, object]], *, thrift: bool = False, **more: object
) -> dict[str, object]:
    """Return the content of sluice.yaml for a switch in a separate namespace, with ``hosts`` as its neighbours.

    `more`: further keys of the document.
    """
    by_thrift = {"thrift": f"127.0.0.1:{THRIFT_PORT}"} if thrift else {}
    return {
        "switch": {"address": f"127.0.0.1:{GRPC_PORT}", **by_thrift},
        "interfaces": [{"port": host.port, "mac": host.gateway_mac, "address": str(host.gateway)} for host in hosts],
        "services": [dict(entry) for entry in services],
        **more,
    }


def controller_config(balance: Balance, *, thrift: bool, pool: PoolPlan = THREE) -> dict[str, object]:
    """Return the content of sluice.yaml for a lab with this pool."""
    web = service(SERVICE, VIP, pool.servers, balance=balance.as_config(), second_look=balance.second_look)
    return switch_config(pool.hosts, [web], thrift=thrift, neighbours=ASKED_ONCE)
