"""The lab of very many connections: one host with all clients, one with all servers, the embedded switch between them.

```
 10.64.0.0/10 --- 10.0.1.2 --- 1 sluice 2 --- 10.0.11.2 s1     web = 10.0.0.100:80
                                        3 --- 10.0.12.2 s2
                                        4 --- 10.0.13.2 s3
                                        5 --- 10.0.14.2 s4     configured later
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
from sluice.addresses import from_text

from topo.labs.connections import observer
from topo.labs.connections.clients import Clients
from topo.labs.connections.observer import Seen
from topo.labs.connections.table import Table
from topo.labs.connections.tuples import CLIENTS, Tuples
from topo.labs.connections.wire import ETH_P_IP, Wire
from topo.testbed.controller import SluiceRun
from topo.testbed.namespaces import socket_in
from topo.testbed.nets import GRPC_PORT, READY_S, SWITCH, Net
from topo.testbed.processes import await_true, run_in

VIP, PORT = "10.0.0.100", 80
CLIENT = "10.0.1.2"
SERVERS = ("s1", "s2", "s3", "s4")
AT_FIRST = SERVERS[:3]
"""The fourth comes and goes by reloads."""
PERIOD_S, WINDOW_S = 0.5, 3.0
ENDED_S = 4.0
"""By then the slots of connections that have ended are free."""
TIMEOUT_S = 120.0


def _mac(kind: int, port: int) -> str:
    return f"02:00:00:00:{kind:02x}:{port:02x}"


def configuration(servers: Sequence[str], control: str) -> dict[str, Any]:
    """Return the controller's, with these servers."""
    ports = range(2, 2 + len(SERVERS))
    return {
        "switch": {"address": f"127.0.0.1:{GRPC_PORT}"},
        "interfaces": [
            {"port": 1, "mac": _mac(0, 1), "address": "10.0.1.1/24"},
            *({"port": port, "mac": _mac(0, port), "address": f"10.0.{9 + port}.1/24"} for port in ports),
        ],
        "routes": [{"to": CLIENTS, "via": CLIENT}],
        # Who has ended leaves its slot soon: what is open is what the table is full of.
        "connections": {"half_closed_s": ENDED_S / 2, "linger_s": ENDED_S / 2},
        "control": control,
        "services": [
            {
                "name": "web",
                "address": VIP,
                "port": PORT,
                "balance": {"mode": "production", "period_s": PERIOD_S, "window_s": WINDOW_S},
                "servers": [
                    {"name": name, "address": f"10.0.{11 + number}.2", "port": PORT}
                    for number, name in enumerate(SERVERS)
                    if name in servers
                ],
            }
        ],
    }


class ManyLab(Net):
    """With controller, servers, and clients that have these tuples."""

    def __init__(self, tuples: Tuples, pipeline: Path | None = None) -> None:
        """``pipeline``: the folder of another program than the usual one."""
        super().__init__("sluice-many-")
        self.tuples = tuples
        self._pipeline = pipeline

    def build(self) -> None:
        """See Net."""
        self.hosts(("client", SWITCH, "servers"))
        self._cable("client", "eth1", 1, f"{CLIENT}/24")
        for number in range(len(SERVERS)):
            self._cable("servers", f"eth{2 + number}", 2 + number, f"10.0.{11 + number}.2/24")
        self.serve(range(1, 2 + len(SERVERS)))
        self._observe()
        made = socket_in(self.pid("client"), socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
        self.stack.callback(made.close)
        self.wire = Wire(made, "eth1")
        macs = [bytes.fromhex(_mac(kind, 1).replace(":", "")) for kind in (0, 1)]
        self.clients = Clients(self.wire, (macs[0], macs[1]), int(from_text(VIP)), self.tuples)
        self.controller = SluiceRun(namespace_pid=self.pid(SWITCH), directory=self.directory, patience_s=TIMEOUT_S)
        self.controller.configure(self.configuration(AT_FIRST))
        self.stack.callback(self.controller.stop)
        self.controller.start()
        await_true("the neighbours are known", self._know_each_other, READY_S)

    def _know_each_other(self) -> bool:
        return not self.controller.ask(command="status")["neighbours_missing"]

    def _cable(self, host: str, interface: str, port: int, address: str) -> None:
        """Nothing leads to the clients: so the hosts' kernels answer ARP, and no segment."""
        self.cable({host: interface, SWITCH: f"port{port}"})
        there = self.pid(host)
        run_in(there, ["ip", "link", "set", interface, "address", _mac(1, port)])
        run_in(there, ["ip", "address", "add", address, "dev", interface])

    def _observe(self) -> None:
        tuples, control = self.directory / "tuples.npz", self.directory / "observer.sock"
        ours = self.tuples
        np.savez(tuples, client=ours.client, port=ours.port, service=ours.service, service_port=ours.service_port)
        command = [sys.executable, "-m", observer.__name__, "--control", str(control), "--tuples", str(tuples)]
        interfaces = [f"eth{2 + number}" for number in range(len(SERVERS))]
        self.observer = self.start("observer", [*command, *interfaces], "servers")
        self.observer.await_output("observing", READY_S)
        self._control = socket.socket(socket.AF_UNIX)
        self.stack.callback(self._control.close)
        self._control.settimeout(TIMEOUT_S)
        self._control.connect(str(control))

    # -- what happens

    def configuration(self, servers: Sequence[str]) -> dict[str, Any]:
        """Return the controller's, with these servers."""
        made = configuration(servers, str(self.controller.control_socket))
        if self._pipeline is not None:
            made["switch"]["pipeline"] = str(self._pipeline)
        return made

    def drain(self, server: str, *, drain: bool) -> None:
        """Give a server no new connections, or its share again."""
        self.controller.ask(command="drain" if drain else "undrain", server=server)

    def tell(self, *words: object) -> None:
        """Give the observer a command; see there."""
        self._control.sendall((" ".join(map(str, words)) + "\n").encode())
        if self._control.recv(16) != b"ok\n":
            self.observer.require_running()

    # -- what is seen

    def service(self) -> Mapping[str, Any]:
        """What `sluice status` says of the service."""
        (service,) = self.controller.ask(command="status")["services"]
        return service

    def states(self) -> Mapping[str, str]:
        """What it says of each server."""
        return {one["name"]: one["state"] for one in self.service()["servers"]}

    def loads(self) -> Mapping[str, float]:
        """Return each server's open connections divided by its share; new ones go to the lesser of two."""
        servers = self.service()["servers"]
        return {one["name"]: one["open"] / one["ratio"] if one["ratio"] else math.inf for one in servers}

    def table(self) -> Table:
        """The connection table as it is."""
        self._runs += 1
        path = self.directory / f"table-{self._runs}.npz"
        command = [sys.executable, "-m", "topo.labs.connections.table", f"127.0.0.1:{GRPC_PORT}", str(path)]
        process = self.start("table", command, SWITCH)
        if process.wait(TIMEOUT_S):
            process.require_running()
        table = Table.load(path)
        path.unlink()
        return table

    def seen(self) -> Seen:
        """What the observer has seen."""
        path = self.directory / "seen.npz"
        self.tell("note", path)
        return Seen.load(path)
