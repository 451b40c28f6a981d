"""Figure 17 as one thing, from hosts to controller; built in order, taken down in reverse."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sluice.addresses import Address

from topo.labs.crowds.bottleneck import read_bottleneck, set_bottleneck
from topo.labs.crowds.distance import set_distances
from topo.measure.counts import PacketCounts, packet_counts, quiet_counts
from topo.plan.crowd.further import Further
from topo.plan.crowd.network import (
    BULK_PORT,
    BYSTANDER,
    BYSTANDER_ADDRESS,
    CLIENTS,
    OTHER,
    PORT,
    ROUTER,
    SERVERS,
    SLOW,
    SWITCH_HOSTS,
    TARGET,
    TARGET_ADDRESS,
    WITNESS,
)
from topo.plan.crowd.samples import LinkCounts
from topo.plan.crowd.settings import Settings
from topo.plan.network import HostPlan
from topo.testbed import REPOSITORY, cgroups
from topo.testbed.controller import SluiceRun
from topo.testbed.mininet import Mininet
from topo.testbed.namespaces import interface_packets, listening
from topo.testbed.network import SWITCH_NAME, Ground
from topo.testbed.nodes import LabHost
from topo.testbed.processes import Process, await_true, run_in

SLOW_PERIOD_US = 10_000
"""The slow server's CPU is granted in parts of 10 ms: with the kernel's 100 ms its answers would come in bursts."""
PRIORITY = -15
"""Of everything in the lab: a switch that waits for the CPU behind other work looks like a congested network."""
READY_TIMEOUT_S = 20.0
MEETING_TIMEOUT_S = 10


class NewsLab(Ground):
    """A context manager; everything it started is gone when it ends, however it ends.

    `configure` makes the controller's configuration from the path of its control socket and the lab's directory.
    """

    controlled = True
    """Whether there is a controller."""

    def __init__(
        self,
        kind: str,
        settings: Settings,
        configure: Callable[[Path, Path, bool], Mapping[str, object]],
        further: Sequence[Further] = (),
    ) -> None:
        super().__init__(kind)
        self.settings = settings
        self.further = further
        self._configure = configure
        self.distance = ""

    def start_program(
        self, host: str, module: str, *arguments: str, procs: Sequence[Path] = (), log: str = ""
    ) -> Process:
        """Start a program of `topo.load` on a host; the lab ends it if the caller does not.

        `log` names its log where the host has several programs of the module.
        """
        process = Process(
            f"{module} on {host}",
            [sys.executable, "-m", f"topo.load.{module}", *arguments],
            log=self.directory / f"{log or f'{host}-{module}'}.log",
            namespace_pid=self.pid(host),
            cgroup_procs=procs,
            directory=REPOSITORY,
        )
        self._stack.callback(process.stop)
        return process

    @property
    def places(self) -> Mapping[str, tuple[Address, int]]:
        """Where the clients' requests go, address and port, by service."""
        further = {one.name: (one.address, PORT) for one in self.further}
        return {TARGET: (TARGET_ADDRESS, PORT), BYSTANDER: (BYSTANDER_ADDRESS, PORT), **further}

    def received_packets(self) -> int:
        """Return how many packets have come to the switch."""
        interfaces = interface_packets(self.pid(SWITCH_NAME)).items()
        return sum(received for name, (received, _, _) in interfaces if name != "lo")

    def quiet_packet_counts(self) -> PacketCounts:
        """Return what the switch has counted, once nothing is on its way."""
        return quiet_counts(self._packet_counts)

    def _packet_counts(self) -> PacketCounts:
        packets = self.controller.ask(command="status")["packets"]
        interfaces = interface_packets(self.pid(SWITCH_NAME))
        return packet_counts(interfaces, packets)

    def link(self) -> LinkCounts:
        """Read the bottleneck's counts."""
        return read_bottleneck(self.pid(SWITCH_NAME), self._bottleneck)

    def require_running(self) -> None:
        """Raise SetupError if the switch, the controller or a server has ended."""
        controller = self.controller.process if self.controlled else None
        for process in (self.switch.process, controller, *self._servers):
            if process is not None:
                process.require_running()

    def build(self) -> None:
        """Network, bottleneck, servers, controller; the switch knows everybody at the end."""
        self._stack.callback(os.setpriority, os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
        self._prepare()
        self._build_network(SWITCH_HOSTS, self._add_clients)
        self._bottleneck = self.switch.intfs[ROUTER.port].name
        self._route()
        set_bottleneck(self.pid(SWITCH_NAME), self._bottleneck, self.settings)
        self._start_servers()
        if self.controlled:
            self._start_controller()
        self._meet()

    def _start_controller(self) -> None:
        self.controller = SluiceRun(namespace_pid=self.pid(SWITCH_NAME), directory=self.directory)
        self.controller.configure(self._configure(self.controller.control_socket, self.directory, self.switch.thrift))
        self._stack.callback(self.controller.stop)
        self.controller.start()

    def _add_clients(self, net: Mininet) -> None:
        for client in CLIENTS:
            node = self._nodes[client.name] = net.addHost(client.name, LabHost, ip=str(client.interface))
            net.addLink(node, self._nodes[ROUTER.name], port1=0, port2=client.number)

    def _route(self) -> None:
        settings, router = self.settings, self.pid(ROUTER.name)
        own = [f"net.ipv4.conf.{where}.rp_filter=0" for where in ("all", "default", f"{ROUTER.name}-eth0")]
        run_in(router, ["sysctl", "-q", "-w", "net.ipv4.ip_forward=1", *own])
        interfaces: dict[str, str] = {}
        for client in CLIENTS:
            interface = interfaces[client.name] = f"{ROUTER.name}-eth{client.number}"
            run_in(router, ["sysctl", "-q", "-w", f"net.ipv4.conf.{interface}.rp_filter=0"])
            run_in(router, ["ip", "address", "replace", str(client.router_interface), "dev", interface])
            run_in(router, ["ip", "route", "add", str(client.pool), "via", str(client.interface.ip)])
            pid = self.pid(client.name)
            run_in(pid, ["ip", "route", "add", "local", str(client.pool), "dev", "lo"])
            self._set_route(pid, str(client.router_interface.ip))
            run_in(pid, ["sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=1024 65535"])
        for server in SERVERS:
            self._set_route(self.pid(server.name), str(server.gateway.ip))
        for host in (*CLIENTS, *SERVERS):
            # Chen & Heidemann's servers have a large SYN backlog (section 8.1); what is measured is not that.
            queues = ("net.ipv4.tcp_max_syn_backlog=8192", "net.core.somaxconn=8192", "net.ipv4.tcp_syncookies=0")
            control = f"net.ipv4.tcp_congestion_control={settings.congestion_control}"
            run_in(self.pid(host.name), ["sysctl", "-q", "-w", control, *queues])
        log = self.directory / "delay.log"
        self.distance = set_distances(router, interfaces, settings, log, self._stack.callback)

    def _set_route(self, pid: int, gateway: str) -> None:
        settings = self.settings
        tcp = ["initcwnd", str(settings.initcwnd), "rto_min", f"{1000 * settings.rto_min_s / settings.k:.0f}ms"]
        run_in(pid, ["ip", "route", "replace", "default", "via", gateway, *tcp])

    def _start_servers(self) -> None:
        settings = self.settings
        self.slow = cgroups.Group(
            self._hierarchies,
            SLOW.name,
            settings.slow_cpus,
            period_us=SLOW_PERIOD_US,
            memory_bytes=round(settings.slow_memory_mb * 2**20),
        )
        limits = [
            f"--workers={settings.slow_workers}",
            f"--backlog={settings.slow_backlog}",
            f"--cost-us={settings.slow_turn_us}",
            f"--memory-mb={settings.slow_memory_mb}",
            f"--answer-kb={settings.slow_answer_kb}",
        ]
        served = [(server, PORT) for server in SERVERS] + [(one.server, one.port) for one in self.further]
        for server, port in served:
            if server is SLOW:
                self._serve(server, port, *limits, procs=self.slow.procs)
            else:
                self._serve(server, port)
        pace = f"--bytes-per-s={max(1.0, settings.bulk_bit_per_s * settings.k / 8):.0f}"
        bulk = ("send", "--address", str(OTHER.address), "--port", str(BULK_PORT), pace)
        self._servers.append(self.start_program(OTHER.name, "bulk", *bulk))
        for server, port in (*served, (OTHER, BULK_PORT)):
            self._await_listening(server, port)

    def _serve(self, server: HostPlan, port: int, *limits: str, procs: Sequence[Path] = ()) -> None:
        place = ("--address", str(server.address), "--port", str(port))
        log = f"{server.name}-server-{port}"
        self._servers.append(self.start_program(server.name, "server", *place, *limits, procs=procs, log=log))

    def _await_listening(self, server: HostPlan, port: int) -> None:
        def ready() -> bool:
            for process in self._servers:
                process.require_running()
            return listening(self.pid(server.name), port)

        await_true(f"{server.name} listens on port {port}", ready, READY_TIMEOUT_S)

    def _meet(self) -> None:
        """Return once the switch knows r1 and the servers: an echo has come back from each."""
        for server in SERVERS:
            source = str(WITNESS.own_address)
            echo = ["ping", "-q", "-I", source, "-c", "1", "-i", "0.2", "-w", str(MEETING_TIMEOUT_S)]
            run_in(self.pid(WITNESS.name), [*echo, str(server.address)])
