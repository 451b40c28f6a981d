"""The lab of the experiments on content switching: one switch, three servers, and the agents and proxies under test.

```
 c1, c2, h1 --|        |-- s1, s2, s3   port 80: for shop, 8080: for web, 8081: for HAProxy and nginx, 8082: for ahead
              | sluice |-- a1, a2       agents of shop and of ahead
              |        |-- p1, p2       HAProxy, nginx
```
All traffic passes the same switch; a request to a rival proxy passes the switch twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice.addresses import Address, from_text

from experiments import contentload, contentrivals
from experiments.contentload import Requests
from experiments.experiment import Say
from experiments.webpool import passed_since, quiet
from topo.labs.alternatives import PROGRAMS
from topo.labs.content import ContentLab
from topo.plan.content import AGENTS, GROUPS, SHOP_ADDRESS, ContentPool, content_service, group_address
from topo.plan.network import (
    ASKED_ONCE,
    DOWNLOAD_CLIENT,
    LOAD_CLIENT,
    PLAIN_HOST,
    SERVERS,
    SERVICE,
    VIP,
    WEB_PORT,
    Balance,
    HostPlan,
    service,
    switch_config,
)
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import interface_packets
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import Process, threads_s

HAPROXY, NGINX = HostPlan("p1", 9, 31), HostPlan("p2", 10, 32)
AHEAD_ADDRESS = from_text("10.0.0.111")
PLAIN_PORT, RIVALS_PORT, AHEAD_PORT = 8080, 8081, 8082
"""Ports at which the servers listen for plain service, for the rival proxies and for the groups of the service ahead.
For shop they listen at port 80. Services need different ports, because a server's endpoint (address and port) belongs
to one service only."""
BALANCE = Balance("production", 2.0, 10.0)
BACKLOG = 512
"""Length of the servers' accept queues, in connections: so long that no queue overflows, and no lost SYN affects the
figures."""
GRACE_S = 20.0

KILO, MEGA, HUNDRED = "kilo", "mega", "hundred"
BYTES: Mapping[str, int] = {KILO: 1_000, MEGA: 1_000_000, HUNDRED: 100_000_000}
"""Names of the pages that the servers offer, and the pages' sizes in bytes."""


@dataclass(frozen=True, slots=True)
class Series:
    """What is measured: a method of content switching, which selects a server for each request, or, for comparison, the
    service without rules or a single server."""

    name: str
    title: str
    client: HostPlan
    address: Address
    port: int = WEB_PORT
    process: str = ""
    """The process that handles requests in addition to the switch (an agent or a proxy); "": none."""


PLAIN = Series("plain", "no rules: plain service", LOAD_CLIENT, VIP)
AGENT = Series("agent", "agent pass", LOAD_CLIENT, SHOP_ADDRESS, process="agent")
CLIENT = Series("client", "`sticky: client`", DOWNLOAD_CLIENT, SHOP_ADDRESS, process="agent")
CHAIN = Series("haproxy", "HAProxy, chain", LOAD_CLIENT, HAPROXY.address, contentrivals.CHAIN_PORT, "haproxy")
MAP = Series("haproxy-map", "HAProxy, map", LOAD_CLIENT, HAPROXY.address, contentrivals.MAP_PORT, "haproxy")
LOCATION = Series("nginx", "nginx, location", LOAD_CLIENT, NGINX.address, contentrivals.NGINX_PORT, "nginx")
HIT = Series("hit", "pre-allocated, hit", PLAIN_HOST, AHEAD_ADDRESS, process="ahead")
MISS = Series("miss", "pre-allocated, miss", LOAD_CLIENT, AHEAD_ADDRESS, process="ahead")
DIRECT = Series("direct", "single server", LOAD_CLIENT, SERVERS[0].address, RIVALS_PORT)

SERIES: Mapping[str, Series] = {
    series.name: series for series in (DIRECT, PLAIN, AGENT, CLIENT, HIT, MISS, CHAIN, MAP, LOCATION)
}


def prefixes(count: int) -> list[tuple[str, str]]:
    """Return `count` path prefixes, each with its group of servers: two groups in turn, which share no server."""
    return [(f"/shop/{number}/", ("images", "fast")[number % 2]) for number in range(count)]


def rules(count: int) -> list[Mapping[str, object]]:
    """Return the agents' rules: one on a client's address, `count` on path prefixes, and one on an XML element."""
    client = {"name": "client", "match": {"source": f"{DOWNLOAD_CLIENT.address}/32"}, "to": "all", "sticky": "client"}
    listed = [
        {"name": f"r{number}", "match": {"path": {"prefix": prefix}}, "to": to}
        for number, (prefix, to) in enumerate(prefixes(count))
    ]
    return [client, *listed, {"name": "xml", "match": {"xml": {"purchase.totalAmount": "> 52000"}}, "to": "fast"}]


def services(count: int, controls: Mapping[str, str]) -> list[Mapping[str, object]]:
    """Return the services of the controller's configuration.

    ``count``: the number of path rules of shop; ahead has at most RULES of them. ``controls``: the control socket of
    each agent by name.
    """
    shop, ahead = ({agent: controls[agent.name]} for agent in AGENTS)
    limits, balanced = {"body": "2MiB"}, {"balance": BALANCE.as_config()}
    ahead_servers = [(f"ahead-{name}", servers) for name, servers in GROUPS.items()]
    all_but_client = [rule for rule in rules(min(count, RULES)) if rule["name"] != "client"]
    moved = [{**rule, "to": f"ahead-{rule['to']}"} for rule in all_but_client]
    return [
        service(SERVICE, VIP, SERVERS, PLAIN_PORT, **balanced),
        content_service("shop", SHOP_ADDRESS, shop, rules(count), default={"to": "all"}, limits=limits, guess=False),
        content_service("ahead", AHEAD_ADDRESS, ahead, moved, default={"to": "ahead-all"}, limits=limits, guess=True),
        *(service(name, group_address(name), servers, **balanced) for name, servers in GROUPS.items()),
        *(
            service(name, from_text("10.0.9.101") + number, servers, AHEAD_PORT, **balanced)
            for number, (name, servers) in enumerate(ahead_servers)
        ),
    ]


RULES = 10
"""Number of rules on the path, in experiments that do not vary the number."""
FIRST, LAST = f"/shop/0/{KILO}", f"/shop/{RULES - 1}/{KILO}"
"""Paths that match the first and the last of the RULES rules; their groups share no server."""


@dataclass(frozen=True, slots=True)
class RivalsPool(ContentPool):
    """The hosts of the content-switching lab, extended by the hosts of HAProxy and nginx."""

    @property
    def hosts(self) -> Sequence[HostPlan]:
        """All hosts that are connected to the switch."""
        return (*super(RivalsPool, self).hosts, HAPROXY, NGINX)


POOL = RivalsPool(SERVERS, (1.0,) * len(SERVERS))
"""Servers without a CPU limit, so that the figures show the cost of agents and rivals."""


class ContentPlace(ContentLab):
    """The lab with agents and rival proxies. The agent of shop and the proxies have the same rules on the path; only
    agents also have rules on clients and documents."""

    apache_directives = "KeepAlive Off\n" + "\n".join(
        f"Listen {port}" for port in (PLAIN_PORT, RIVALS_PORT, AHEAD_PORT)
    )

    def __init__(self, count: int, say: Say, *, timestamps: bool = True) -> None:
        super().__init__(switch_kind(), BALANCE, say=quiet(say), pool=POOL, backlog=BACKLOG)
        self.count = count
        self.timestamps = timestamps
        self.rivals: dict[str, Process] = {}
        self._capacity: dict[tuple[str, str], float] = {}

    def run(self, series: Series, asked: Requests) -> dict[str, Any]:
        """Run a load; return response times, the CPU time per request of each process that handles requests, and the
        number of packets that the switch lost."""
        before, packets = self.cpu_s(), self.quiet_packet_counts()
        command = contentload.command(str(series.address), series.port, asked)
        process = self.start("first_byte", command, series.client.name)
        try:
            process.wait(asked.seconds + GRACE_S)
        finally:
            process.stop()
        self.require_running()
        seen = contentload.read(process.output(), BYTES[asked.paths[0].rsplit("/", 1)[-1]])
        if not seen["answered"]:
            raise SetupError(f"{series.title}: no answer to {seen['failed']} requests: {seen['why']}")
        took = {name: used - before[name] for name, used in self.cpu_s().items()}
        in_the_way = {name: took[name] for name in dict.fromkeys(("switch", series.process)) if name}
        return {
            **seen,
            "cpu_us": {name: 1e6 * used / seen["answered"] for name, used in in_the_way.items()},
            "switch": passed_since(self, packets),
        }

    def per_second(self, series: Series, path: str, seconds: float) -> float:
        """Return how many requests per second the series answers, with 16 connections open at a time; each series and
        path is measured once."""
        if (what := (series.name, path)) not in self._capacity:
            self._capacity[what] = self.run(series, Requests([path], 0.0, seconds))["answered"] / seconds
        return self._capacity[what]

    def agent_packets(self) -> int:
        """Return the number of packets that the agent of the service shop has received and sent."""
        return self._packets(AGENTS[0].name)

    def client_packets(self) -> int:
        """Return the number of packets that the load client has received and sent."""
        return self._packets(LOAD_CLIENT.name)

    def require_running(self) -> None:
        """Raise SetupError if any process of the lab has ended."""
        super().require_running()
        for process in (*self.agents.values(), *self.rivals.values()):
            process.require_running()

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds that the switch, each agent and each proxy have used, by name."""
        assert self.switch.process is not None
        shop, ahead = (self.agents[agent.name] for agent in AGENTS)
        processes = {"switch": self.switch.process, "agent": shop, "ahead": ahead, **self.rivals}
        return {name: threads_s(process.pid) for name, process in processes.items()}

    def _packets(self, host: str) -> int:
        received, sent, _ = interface_packets(self.pid(host))[f"{host}-eth0"]
        return received + sent

    def _start_servers(self) -> None:
        for name, size in BYTES.items():
            (self.files / name).write_bytes(bytes(range(250)) * (size // 250))
        (self.files / "shop").mkdir()
        for number in {0, 1, max(0, self.count - 1)}:
            (self.files / "shop" / str(number)).symlink_to(self.files)
        if not self.timestamps:
            for host in self.pool.hosts:
                self.call(host.name, "sysctl", "-q", "-w", "net.ipv4.tcp_timestamps=0")
        super()._start_servers()
        self._start_rivals()

    def _start_rivals(self) -> None:
        same, place = contentrivals.Rules(prefixes(self.count), "all", GROUPS, RIVALS_PORT), self.directory
        table = place / "haproxy.map"
        table.write_text(contentrivals.map_file(same))
        texts = {
            "haproxy": contentrivals.haproxy_configuration(HAPROXY, same, table),
            "nginx": contentrivals.nginx_configuration(NGINX, same, place),
        }
        for name, host, option in (("haproxy", HAPROXY, ["-db", "-f"]), ("nginx", NGINX, ["-c"])):
            if not Path(PROGRAMS[name]).exists():
                raise SetupError(f"{PROGRAMS[name]} is not there: tools/install_packages.sh experiments/packages.txt")
            file = place / f"{name}.conf"
            file.write_text(texts[name])
            process = self.start(name, [PROGRAMS[name], *option, str(file)], host.name, directory=place)
            self.rivals[name] = self.await_listening(process, host.name, WEB_PORT)

    def configuration(self) -> dict[str, object]:
        """Return the controller's configuration without the entries for files, which the lab adds."""
        offered = services(self.count, self.controls)
        return switch_config(self.pool.hosts, offered, thrift=self.switch.thrift, neighbours=ASKED_ONCE)
