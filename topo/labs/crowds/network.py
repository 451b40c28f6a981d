"""The lab with the network of Chen & Heidemann's Figure 17, from hosts to controller; it is built in order and taken
down in reverse order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sluice.addresses import Address

from topo.labs.crowds.links import read_bottleneck, set_bottleneck, set_distances
from topo.load.server import BulkServer, SizedServer
from topo.measure.counts import PacketCounts, packet_counts, quiet_counts
from topo.plan.crowd.configuration import controller_config
from topo.plan.crowd.network import (
    BULK_PORT,
    BYSTANDER,
    BYSTANDER_ADDRESS,
    CLIENTS,
    OTHER,
    PORT,
    ROUTER,
    ROUTES,
    SERVERS,
    SLOW,
    SWITCH_HOSTS,
    TARGET,
    TARGET_ADDRESS,
    WITNESS,
)
from topo.plan.crowd.readings import LinkCounts
from topo.plan.crowd.scenarios import Further, Settings
from topo.plan.network import HostPlan
from topo.testbed import cgroups
from topo.testbed.mininet import Mininet, Node
from topo.testbed.namespaces import interface_packets
from topo.testbed.network import SWITCH, MininetNetwork
from topo.testbed.nodes import KERNEL, KernelRouter, LabHost, ProcessSwitch
from topo.testbed.processes import run_in

SLOW_PERIOD_US = 10_000
"""Period of the slow server's CPU quota: 10 ms. With the kernel's default period of 100 ms the server would answer in
bursts."""
PRIORITY = -15
"""Niceness of all processes of the lab. With a usual niceness, a switch that waits for the CPU would look like a
congested network."""
MEETING_TIMEOUT_S = 10
TRACE = "trace.csv"
"""Name of the file with the decisions of flash-crowd control, in the lab's directory and in the directory of a run's
records."""


class CrowdRouter(KernelRouter):
    """The Linux kernel in place of the switch: it only routes, without balancing, measuring or limiting."""

    def around(self) -> Sequence[HostPlan]:
        """Return the neighbours of the router: the clients' router and the servers."""
        return SWITCH_HOSTS

    def start(self, controllers: list[Node]) -> None:
        """Start routing to the neighbours and to the clients' networks."""
        super().start(controllers)
        for route in ROUTES:
            run_in(self.pid, ["ip", "route", "add", route["to"], "via", route["via"]])


class CrowdLab(MininetNetwork):
    """The network of Chen & Heidemann's Figure 17. Requests to the target service have a static limit, are limited by
    flash-crowd control (the block `news` of the controller's configuration), or have no limit.

    With the kind KERNEL the lab has neither switch nor controller, and clients send requests to the servers' own
    addresses.
    """

    def __init__(
        self,
        kind: str,
        settings: Settings,
        target: HostPlan,
        *,
        news: Mapping[str, object] | None = None,
        static_per_s: float | None = None,
        further: Sequence[Further] = (),
    ) -> None:
        super().__init__(kind)
        self.settings = settings
        self.target = target
        self.further = further
        self.controlled = kind != KERNEL
        """Whether the lab has a controller."""
        self.distance = ""
        self._news, self._static_per_s = news, static_per_s

    def switch_class(self) -> type[ProcessSwitch]:
        """Return the class of the switch, or of the router that replaces the switch."""
        return super().switch_class() if self.controlled else CrowdRouter

    @property
    def places(self) -> Mapping[str, tuple[Address, int]]:
        """Address and port to which clients send requests, by service."""
        if self.controlled:
            further = {service.name: (service.address, PORT) for service in self.further}
            return {TARGET: (TARGET_ADDRESS, PORT), BYSTANDER: (BYSTANDER_ADDRESS, PORT), **further}
        further = {service.name: (service.server.address, service.port) for service in self.further}
        return {TARGET: (self.target.address, PORT), BYSTANDER: (OTHER.address, PORT), **further}

    def received_packets(self) -> int:
        """Return the number of packets that the switch has received."""
        interfaces = interface_packets(self.pid(SWITCH)).items()
        return sum(received for name, (received, _, _) in interfaces if name != "lo")

    def quiet_packet_counts(self) -> PacketCounts:
        """Return the switch's packet counters as soon as no packet is in transit."""

        def read() -> PacketCounts:
            packets = self.controller.ask(command="status")["packets"]
            return packet_counts(interface_packets(self.pid(SWITCH)), packets)

        return quiet_counts(read)

    def link(self) -> LinkCounts:
        """Read the counters of the bottleneck."""
        return read_bottleneck(self.pid(SWITCH), self._bottleneck)

    def build(self) -> None:
        """Start network, bottleneck, servers and controller; on return the switch has the MAC addresses of r1 and all
        servers."""
        before = os.getpriority(os.PRIO_PROCESS, 0)
        self.at_end(lambda: os.setpriority(os.PRIO_PROCESS, 0, before))
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
        self._build_network(SWITCH_HOSTS, self._add_clients)
        self._bottleneck = self.switch.intfs[ROUTER.port].name
        self._route()
        set_bottleneck(self.pid(SWITCH), self._bottleneck, self.settings)
        self._start_servers()
        if self.controlled:
            news = None if self._news is None else {**self._news, "trace_file": str(self.directory / TRACE)}
            self.start_controller(
                controller_config(
                    self.target,
                    settings=self.settings,
                    thrift=self.switch.thrift,
                    static_per_s=self._static_per_s,
                    news=news,
                    further=self.further,
                )
            )
        self._meet()

    def _add_clients(self, net: Mininet) -> None:
        for client in CLIENTS:
            node = self.nodes[client.name] = net.addHost(client.name, LabHost, ip=str(client.interface))
            net.addLink(node, self.nodes[ROUTER.name], port1=0, port2=client.number)

    def _route(self) -> None:
        router = ROUTER.name
        self._set(router, "net.ipv4.ip_forward=1")
        self._set(router, *(f"net.ipv4.conf.{where}.rp_filter=0" for where in ("all", "default", f"{router}-eth0")))
        interfaces = {client.name: f"{router}-eth{client.number}" for client in CLIENTS}
        for client in CLIENTS:
            interface = interfaces[client.name]
            self._set(router, f"net.ipv4.conf.{interface}.rp_filter=0")
            self.call(router, "ip", "address", "replace", str(client.router_interface), "dev", interface)
            self.call(router, "ip", "route", "add", str(client.pool), "via", str(client.interface.ip))
            self.call(client.name, "ip", "route", "add", "local", str(client.pool), "dev", "lo")
            self._set_route(client.name, str(client.router_interface.ip))
            self._set(client.name, "net.ipv4.ip_local_port_range=1024 65535")
        for server in SERVERS:
            self._set_route(server.name, str(server.gateway.ip))
        for host in (*CLIENTS, *SERVERS):
            # As in the paper's testbed (section 8.1), servers have a large SYN backlog, so that the backlog does not
            # limit requests.
            queues = ("net.ipv4.tcp_max_syn_backlog=8192", "net.core.somaxconn=8192", "net.ipv4.tcp_syncookies=0")
            self._set(host.name, f"net.ipv4.tcp_congestion_control={self.settings.congestion_control}", *queues)
        self.distance = set_distances(self, interfaces, self.settings)

    def _set(self, host: str, *settings: str) -> None:
        self.call(host, "sysctl", "-q", "-w", *settings)

    def _set_route(self, host: str, gateway: str) -> None:
        settings = self.settings
        tcp = ("initcwnd", str(settings.initcwnd), "rto_min", f"{1000 * settings.rto_min_s / settings.k:.0f}ms")
        self.call(host, "ip", "route", "replace", "default", "via", gateway, *tcp)

    def _start_servers(self) -> None:
        settings = self.settings
        self.slow = cgroups.Group(
            self._hierarchies,
            SLOW.name,
            settings.slow_cpus,
            period_us=SLOW_PERIOD_US,
            memory_bytes=round(settings.slow_memory_mb * 2**20),
        )
        limits: Mapping[str, Any] = {
            "workers": settings.slow_workers,
            "backlog": settings.slow_backlog,
            "cost_us": settings.slow_turn_us,
            "memory_mb": settings.slow_memory_mb,
            "answer_kb": settings.slow_answer_kb,
        }
        for host, port in [(server, PORT) for server in SERVERS] + [
            (service.server, service.port) for service in self.further
        ]:
            program = SizedServer(str(host.address), port, **(limits if host is SLOW else {}))
            process = self.start_program(program, host.name, procs=self.slow.procs if host is SLOW else ())
            self._servers.append(self.await_listening(process, host.name, port))
        bulk = BulkServer(str(OTHER.address), BULK_PORT, max(1.0, round(settings.bulk_bit_per_s * settings.k / 8)))
        process = self.start_program(bulk, OTHER.name)
        self._servers.append(self.await_listening(process, OTHER.name, BULK_PORT))

    def _meet(self) -> None:
        """Send an echo request to each server; return once all have answered and the switch therefore has the MAC
        addresses of r1 and the servers."""
        for server in SERVERS:
            source = str(WITNESS.own_address)
            echo = ("ping", "-q", "-I", source, "-c", "1", "-i", "0.2", "-w", str(MEETING_TIMEOUT_S))
            self.call(WITNESS.name, *echo, str(server.address))
