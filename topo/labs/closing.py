"""The lab of idle connections: users at several distances, the embedded switch, one web server with few workers.

```
 server 198.51.100.11 --- 2 sluice 1 --- 192.0.2.10 client, 10.101.0.1, 10.102.0.1, ...
                                         holds what its users send for the time that they are away
```
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from topo.labs.webservers import WebServer
from topo.plan.network import WEB_PORT
from topo.testbed.controller import SluiceRun
from topo.testbed.namespaces import listening, socket_in
from topo.testbed.nets import GRPC_PORT, READY_S, SWITCH, Net
from topo.testbed.processes import Process, run_in

CLIENT, SERVER, VIP = "192.0.2.10", "198.51.100.11", "203.0.113.80"
MACS = {1: "02:00:00:00:01:10", 2: "02:00:00:00:02:11"}
FAR = "10.96.0.0/11"
"""Where the users are, by way of the client: a /16 for each distance."""
DISTANCES = {"10.101.0.1": 0.005, "10.102.0.1": 0.01, "10.103.0.1": 0.02, "10.104.0.1": 0.04, "10.105.0.1": 0.08}
"""Users' addresses, and their round trips in seconds: those are five in Azuma et al. too."""
PAGE = b"a page\n" * 1000


class ClosingNet(Net):
    """Client, switch and server."""

    def __init__(self) -> None:
        super().__init__("sluice-closing-")

    def build(self) -> None:
        """See Net."""
        self.hosts(("client", SWITCH, "server"))
        self.attach("client", 1, MACS[1], CLIENT)
        self.attach("server", 2, MACS[2], SERVER)
        self.serve(MACS)


class ClosingLab(ClosingNet):
    """With users' distances, a web server and a controller, which closes idle connections if ``idle`` has options."""

    def __init__(self, server: WebServer, idle: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.server = server
        self._idle = idle

    def build(self) -> None:
        """See Net."""
        super().build()
        self.delay("client", DISTANCES)
        self._serve()
        self.controller = SluiceRun(namespace_pid=self.pid(SWITCH), directory=self.directory)
        self.controller.configure(configuration(self._idle, self.controller.control_socket))
        self.stack.callback(self.controller.stop)
        self.controller.start()

    def connected(self, timeout_s: float) -> socket.socket:
        """A connection of a user next to the switch."""
        made = socket_in(self.pid("client"), socket.AF_INET, socket.SOCK_STREAM)
        made.settimeout(timeout_s)
        made.connect((VIP, WEB_PORT))
        return made

    def _serve(self) -> None:
        directory = self.directory / "web"
        (directory / "files").mkdir(parents=True)
        (directory / "files/page").write_bytes(PAGE)
        for name, text in self.server.files(directory, SERVER).items():
            (directory / name).write_text(text)
        process = self.start("web", self.server.command(directory), "server")
        process.await_true("listens", lambda: listening(self.pid("server"), WEB_PORT), READY_S)

    # -- running

    def users(self, *options: str) -> Process:
        """Start the users' program (topo.load.thinking)."""
        sources = [word for address in DISTANCES for word in ("--source", address)]
        command = [sys.executable, "-m", "topo.load.thinking", "--to", f"{VIP}:{WEB_PORT}", *sources, *options]
        return self.start("users", command, "client")

    def idle(self) -> Mapping[str, Any]:
        """What `sluice status` says of the server's connections."""
        (service,) = self.controller.ask(command="status")["services"]
        (server,) = service["servers"]
        return server["resources"]["idle"]

    def established(self) -> int:
        """Connections that the server's kernel has, its queue's with them."""
        return len(run_in(self.pid("server"), ["ss", "-Htn", "state", "established"]).splitlines())


def told(users: Process, timeout_s: float) -> Mapping[str, Any]:
    """What the users' program says in the end; raises SetupError if it failed or is late."""
    if users.wait(timeout_s):
        users.require_running()
    return json.loads(users.output().splitlines()[-1])


def configuration(idle: Mapping[str, Any] | None, control: Path) -> Mapping[str, object]:
    """Return the controller's: one service, one server."""
    service: dict[str, object] = {
        "name": "web",
        "address": VIP,
        "port": WEB_PORT,
        "servers": [{"name": "s1", "address": SERVER, "port": WEB_PORT}],
    }
    if idle is not None:
        service["resources"] = {"idle": dict(idle)}
    return {
        "switch": {"address": f"127.0.0.1:{GRPC_PORT}"},
        "interfaces": [
            {"port": 1, "mac": "02:00:00:00:00:01", "address": "192.0.2.1/24"},
            {"port": 2, "mac": "02:00:00:00:00:02", "address": "198.51.100.1/24"},
        ],
        "routes": [{"to": FAR, "via": CLIENT}],
        "control": str(control),
        "services": [service],
    }
