"""The lab of very many connections: a host with all clients, a host with all servers, and the embedded switch between
the two hosts.

```
 10.64.0.0/10 --- 10.0.1.1 --- 1 sluice 2 --- 10.0.11.1 s1     web = 10.0.0.100:80
                                        3 --- 10.0.12.1 s2
                                        4 --- 10.0.13.1 s3
                                        5 --- 10.0.14.1 s4     configured later
```
"""

from __future__ import annotations

import math
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from topo.labs.connections import table
from topo.labs.connections.clients import Clients
from topo.labs.connections.observer import Observer, Record
from topo.labs.connections.table import Table
from topo.labs.connections.tuples import CLIENTS, Tuples
from topo.labs.connections.wire import ETH_P_IP, Wire
from topo.plan.network import CLIENT, GRPC_PORT, SERVICE, VIP, HostPlan, servers_behind, service, switch_config
from topo.testbed.namespaces import socket_in
from topo.testbed.network import READY_S, SWITCH, NamespaceNetwork

SERVERS_HOST = "servers"
SERVERS = {server.name: server for server in servers_behind(4)}
NAMES = tuple(SERVERS)
AT_FIRST = NAMES[:3]
"""Servers configured at the beginning; reloads add and remove the fourth server."""
PERIOD_S, WINDOW_S = 0.5, 3.0
ENDED_S = 4.0
"""Seconds after which the slots of ended connections are free."""
TIMEOUT_S = 120.0


class ConnectionsLab(NamespaceNetwork):
    """The lab with switch, controller, servers and clients; the clients use the tuples (address and port)
    ``tuples``."""

    def __init__(self, tuples: Tuples, pipeline: Path | None = None) -> None:
        """``pipeline``: folder of the compiled P4 program for the switch; None: the default program."""
        super().__init__()
        self.tuples = tuples
        self._pipeline = pipeline

    def build(self) -> None:
        """Connect the hosts, start switch, observer and controller, and open the clients' socket."""
        self.hosts((CLIENT.name, SWITCH, SERVERS_HOST))
        interface = self._cable(CLIENT.name, CLIENT)
        interfaces = [self._cable(SERVERS_HOST, server) for server in SERVERS.values()]
        self.serve(host.port for host in (CLIENT, *SERVERS.values()))
        self._observe(interfaces)
        made = socket_in(self.pid(CLIENT.name), socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        self.at_end(made.close)
        self.wire = Wire(made, interface)
        macs = [bytes.fromhex(mac.replace(":", "")) for mac in (CLIENT.gateway_mac, CLIENT.mac)]
        self.clients = Clients(self.wire, (macs[0], macs[1]), int(VIP), self.tuples)
        self.start_controller(self.configuration(AT_FIRST), patience_s=TIMEOUT_S)
        self.await_neighbours()

    def _cable(self, inside: str, host: HostPlan) -> str:
        """Connect a host of the plan to the switch by a cable, and return the host's interface. ``inside`` is the
        namespace of the interface.

        The namespaces have no route back to the clients. Their kernels therefore answer ARP requests but no TCP
        segments, which only the lab's own programs answer.
        """
        interface = f"eth{host.port}"
        self.cable({inside: interface, SWITCH: f"port{host.port}"})
        self.call(inside, "ip", "link", "set", interface, "address", host.mac)
        self.call(inside, "ip", "address", "add", str(host.interface), "dev", interface)
        return interface

    def _observe(self, interfaces: Sequence[str]) -> None:
        tuples, control = self.directory / "tuples.npz", self.directory / "observer.sock"
        ours = self.tuples
        np.savez(tuples, client=ours.client, port=ours.port, service=ours.service, service_port=ours.service_port)
        self.observer = self.start_program(Observer(str(control), str(tuples), interfaces), SERVERS_HOST)
        self.observer.await_output("observing", READY_S)
        self._control = socket.socket(socket.AF_UNIX)
        self.at_end(self._control.close)
        self._control.settimeout(TIMEOUT_S)
        self._control.connect(str(control))

    # -- changes

    def configuration(self, servers: Sequence[str]) -> dict[str, Any]:
        """Return the controller's configuration with these servers."""
        balance = {"mode": "production", "period_s": PERIOD_S, "window_s": WINDOW_S}
        web = service(SERVICE, VIP, [SERVERS[name] for name in NAMES if name in servers], balance=balance)
        routes = [{"to": CLIENTS, "via": str(CLIENT.address)}]
        # Ended connections free their slots soon, so the table contains mostly open connections.
        ages = {"half_closed_s": ENDED_S / 2, "linger_s": ENDED_S / 2}
        made: dict[str, Any] = switch_config((CLIENT, *SERVERS.values()), [web], routes=routes, connections=ages)
        if self._pipeline is not None:
            made["switch"]["pipeline"] = str(self._pipeline)
        return made

    def command(self, *words: object) -> None:
        """Send a command to the observer (`topo.labs.connections.observer`) and wait until the observer has executed
        it."""
        self._control.sendall((" ".join(map(str, words)) + "\n").encode())
        if self._control.recv(16) != b"ok\n":
            self.observer.require_running()

    # -- counts

    def service(self) -> Mapping[str, Any]:
        """Return what `sluice status` reports of the service."""
        (service,) = self.controller.ask(command="status")["services"]
        return service

    def states(self) -> Mapping[str, str]:
        """Return the state of each server by name."""
        return {server["name"]: server["state"] for server in self.service()["servers"]}

    def loads(self) -> Mapping[str, float]:
        """Return each server's open connections divided by its ratio. For a new connection the switch draws several
        servers, and selects the server with the smallest value."""
        servers = self.service()["servers"]
        return {server["name"]: server["open"] / server["ratio"] if server["ratio"] else math.inf for server in servers}

    def table(self) -> Table:
        """Read the switch's connection table by a process in the switch's namespace."""
        path = self.directory / "table.npz"
        command = [sys.executable, "-m", table.__name__, f"127.0.0.1:{GRPC_PORT}", str(path)]
        process = self.start("table", command, SWITCH)
        if process.wait(TIMEOUT_S):
            process.require_running()
        return Table.load(path)

    def record(self) -> Record:
        """Return the observer's record so far."""
        path = self.directory / "seen.npz"
        self.command("note", path)
        return Record.load(path)
