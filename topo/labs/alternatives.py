"""Today's alternatives to sluice: the web lab's servers and client with iptables or a proxy in place of the switch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from topo.labs.web import Lab
from topo.load.delay import Delay
from topo.load.program import command
from topo.plan.network import LOAD_CLIENT, THREE, VIP, WEB_PORT, Balance, HostPlan, PoolPlan
from topo.testbed import REPOSITORY
from topo.testbed.errors import SetupError
from topo.testbed.mininet import Mininet, Node
from topo.testbed.namespaces import listening
from topo.testbed.nodes import KernelRouter, ProcessSwitch
from topo.testbed.processes import run_in

READY_TIMEOUT_S = 20.0
HOP, HOP_TABLE = "hop0", "100"
"""The device of the hop in user space, and the routing table that sends packets to the device."""
PROGRAMS = {"haproxy": "/usr/sbin/haproxy", "nginx": "/usr/sbin/nginx"}


def haproxy_configuration(algorithm: str, pool: PoolPlan = THREE) -> str:
    """Return HAProxy's configuration: TCP mode, health checks, and room for all connections of the load."""
    servers = "\n".join(f"  server {server.name} {server.address}:{WEB_PORT} check inter 1s" for server in pool.servers)
    return f"""\
global
  maxconn 4096
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend web
  bind {VIP}:{WEB_PORT}
  default_backend pool
backend pool
  balance {algorithm}
{servers}
"""


def nginx_configuration(directory: Path, pool: PoolPlan = THREE) -> str:
    """Return nginx's configuration: one worker, stream module, least_conn."""
    servers = "\n".join(f"    server {server.address}:{WEB_PORT};" for server in pool.servers)
    return f"""\
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/nginx-error.log;
events {{ worker_connections 8192; }}
stream {{
  upstream pool {{
    least_conn;
{servers}
  }}
  server {{
    listen {VIP}:{WEB_PORT} backlog=4096;
    proxy_connect_timeout 5s;
    proxy_pass pool;
  }}
}}
"""


def dnat_rules(pool: PoolPlan = THREE) -> list[list[str]]:
    """Return iptables rules of Ohta & Andou's equal split: each server is selected with equal probability."""
    head = ["iptables", "-t", "nat", "-A", "PREROUTING", "-d", str(VIP), "-p", "tcp", "--dport", str(WEB_PORT)]
    rules: list[list[str]] = []
    for number, server in enumerate(pool.servers):
        rest = len(pool.servers) - number
        share = ["-m", "statistic", "--mode", "random", "--probability", f"{1 / rest:.6f}"] if rest > 1 else []
        rules.append([*head, *share, "-j", "DNAT", "--to-destination", f"{server.address}:{WEB_PORT}"])
    return rules


class Router(KernelRouter):
    """The Linux kernel as the router of all subnets; subclasses add the balancing."""

    pool = THREE

    def around(self) -> Sequence[HostPlan]:
        """Return the pool's hosts."""
        return self.pool.hosts

    def start(self, controllers: list[Node]) -> None:
        """Start routing, then the balancing."""
        super().start(controllers)
        self.balance()

    def balance(self) -> None:
        """Set up the balancing; the base class only routes."""

    def proxy(self, name: str, arguments: list[str], configuration: str) -> None:
        """Start a proxy on the service's address and return once it listens."""
        program = PROGRAMS[name]
        if not Path(program).exists():
            raise SetupError(f"{program} is not there: tools/install_packages.sh experiments/packages.txt")
        run_in(self.pid, ["ip", "address", "add", f"{VIP}/32", "dev", "lo"])
        file = self.directory / f"{name}.conf"
        file.write_text(configuration)
        process = self.start_process(name, [program, *arguments, str(file)])
        process.await_true("listens", lambda: listening(self.pid, WEB_PORT), READY_TIMEOUT_S)


class Iptables(Router):
    """DNAT with equal probabilities."""

    def balance(self) -> None:
        """Add the iptables rules."""
        for rule in dnat_rules(self.pool):
            run_in(self.pid, rule)


class IptablesBehindHop(Iptables):
    """DNAT with equal probabilities; in addition, a process in user space forwards every packet of the client.

    The process imitates the path through a switch in user space. It forwards each packet without delay, after conntrack
    has processed the packet.
    """

    def balance(self) -> None:
        """Add the rules, start the process, and route the client's packets through it."""
        super().balance()
        hop = self.start_process("hop", command(Delay(HOP, {})), REPOSITORY)
        hop.await_output("ready", READY_TIMEOUT_S)
        for words in (
            ["sysctl", "-q", "-w", f"net.ipv4.conf.{HOP}.rp_filter=0"],
            ["ip", "link", "set", HOP, "up"],
            ["ip", "route", "add", "default", "dev", HOP, "table", HOP_TABLE],
            ["ip", "rule", "add", "iif", self.intfs[LOAD_CLIENT.port].name, "lookup", HOP_TABLE],
            ["iptables", "-t", "raw", "-A", "PREROUTING", "-i", HOP, "-j", "NOTRACK"],
        ):
            run_in(self.pid, words)


class HaproxyRoundRobin(Router):
    """HAProxy in TCP mode, with the algorithm roundrobin."""

    algorithm = "roundrobin"

    def balance(self) -> None:
        """Start HAProxy."""
        self.proxy("haproxy", ["-db", "-f"], haproxy_configuration(self.algorithm, self.pool))


class HaproxyLeastConnections(HaproxyRoundRobin):
    """HAProxy in TCP mode, with the algorithm leastconn."""

    algorithm = "leastconn"


class NginxLeastConnections(Router):
    """nginx's stream module (TCP), with the algorithm least_conn."""

    def balance(self) -> None:
        """Start nginx."""
        self.proxy("nginx", ["-c"], nginx_configuration(self.directory, self.pool))


ALTERNATIVES: Mapping[str, type[Router]] = {
    "iptables": Iptables,
    "iptables-hop": IptablesBehindHop,
    "haproxy-roundrobin": HaproxyRoundRobin,
    "haproxy-leastconn": HaproxyLeastConnections,
    "nginx-leastconn": NginxLeastConnections,
}


class AlternativeLab(Lab):
    """The web lab with one of ALTERNATIVES in place of the switch, without a controller."""

    def __init__(self, kind: str, *, say: Callable[[str], None], pool: PoolPlan = THREE) -> None:
        super().__init__(kind, Balance("fixed", 1.0, 10.0), say=say, pool=pool)

    def switch_class(self) -> type[ProcessSwitch]:
        """Return the class of the router that replaces the switch."""
        return ALTERNATIVES[self.kind]

    def _before_start(self, net: Mininet) -> None:
        super()._before_start(net)
        assert isinstance(self.switch, Router)
        self.switch.pool = self.pool

    def _start_balancer(self) -> None:
        pass
