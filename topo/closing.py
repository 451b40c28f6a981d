"""The lab of idle connections: users at several distances, the embedded switch, one web server with few workers.

```
 server 198.51.100.11 --- 2 sluice 1 --- 192.0.2.10 client, 10.101.0.1, 10.102.0.1, ...
                                         holds what its users send for the time that they are away
```
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from testbed.namespaces import OFFLOADS, listening
from testbed.processes import Process, await_true, run_in
from testbed.switches import EMBEDDED, Endpoints
from topo.controller import SluiceRun
from topo.realtime import before_all_else
from topo.switches import REPOSITORY
from topo.webservers import WebServer
from workload.plan import WEB_PORT

CLIENT, SERVER, VIP = "192.0.2.10", "198.51.100.11", "203.0.113.80"
PORTS = {"client": 1, "server": 2}
MACS = {1: "02:00:00:00:01:10", 2: "02:00:00:00:02:11"}
GRPC_PORT = 9559
FAR = "10.96.0.0/11"
"""Where the users are, by way of the client: a /16 for each distance."""
DISTANCES = {"10.101.0.1": 0.005, "10.102.0.1": 0.01, "10.103.0.1": 0.02, "10.104.0.1": 0.04, "10.105.0.1": 0.08}
"""Users' addresses, and their round trips in seconds: those are five in Azuma et al. too."""
TABLE = "100"
READY_S = 30.0
PAGE = b"a page\n" * 1000


class ClosingNet:
    """Client, switch and server: a namespace each, and the embedded switch.  A context manager."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._pids: dict[str, int] = {}
        self._runs = 0

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pid(self, name: str) -> int:
        """Return a process in the namespace of `client`, `switch` or `server`."""
        return self._pids[name]

    def start(self, name: str, argv: Sequence[str], inside: str | None = None) -> Process:
        """Start a program, in a host's namespace; it ends with the net at the latest."""
        self._runs += 1
        process = Process(
            name,
            argv,
            log=self.directory / f"{name}-{self._runs}.txt",
            namespace_pid=self._pids[inside] if inside else None,
            directory=REPOSITORY,
        )
        self._stack.callback(process.stop)
        return process

    def _build(self) -> None:
        self.directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-closing-")))
        self.directory.chmod(0o755)  # for the web server's own user
        for name in ("client", "switch", "server"):
            self._pids[name] = self.start(name, ["unshare", "--net", "sleep", "7200"]).pid
        for name in self._pids:
            self._await_namespace(name)
        self._cable("client", CLIENT)
        self._cable("server", SERVER)
        endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", self.directory)
        command = EMBEDDED.command(EMBEDDED.find(), {port: f"port{port}" for port in PORTS.values()}, endpoints)
        EMBEDDED.await_serving(self.start("sluice-switch", before_all_else(command), "switch"), endpoints, READY_S)

    def _await_namespace(self, name: str) -> None:
        ours = Path("/proc/self/ns/net").readlink()
        there = Path(f"/proc/{self.pid(name)}/ns/net")
        await_true(f"namespace of {name}", lambda: there.readlink() != ours, READY_S)
        run_in(self.pid(name), ["ip", "link", "set", "lo", "up"])

    def _cable(self, host: str, address: str) -> None:
        """Without offloads: a frame is a segment."""
        port, there, switch = PORTS[host], self.pid(host), self.pid("switch")
        end = f"port{port}"
        run_in(there, ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", end, "netns", str(switch)])
        for pid, name in ((there, "eth0"), (switch, end)):
            run_in(pid, ["ethtool", "-K", name, *(word for one in OFFLOADS[:6] for word in (one, "off"))])
            run_in(pid, ["sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1"])
            run_in(pid, ["ip", "link", "set", name, "up"])
        run_in(there, ["ip", "link", "set", "eth0", "address", MACS[port]])
        run_in(there, ["ip", "address", "add", f"{address}/24", "dev", "eth0"])
        run_in(there, ["ip", "route", "add", "default", "via", address.rsplit(".", 1)[0] + ".1"])


class ClosingLab(ClosingNet):
    """With users' distances, a web server and a controller, which closes idle connections if ``idle`` has options."""

    def __init__(self, server: WebServer, idle: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.server = server
        self._idle = idle

    def _build(self) -> None:
        super()._build()
        self._delay()
        self._serve()
        self.controller = SluiceRun(namespace_pid=self.pid("switch"), directory=self.directory)
        self.controller.configure(configuration(self._idle, self.controller.control_socket))
        self._stack.callback(self.controller.stop)
        self.controller.start()

    def _delay(self) -> None:
        """What users send is held, by the address that they send from."""
        client = self.pid("client")
        classes = [f"{'.'.join(address.split('.')[:2])}.0.0/16={held_s:.6f}" for address, held_s in DISTANCES.items()]
        words = [word for one in classes for word in ("--class", one)]
        command = [sys.executable, "-m", "topo.load.delay", "--device", "delay0", *words]
        self.start("delay", before_all_else(command), "client").await_output("ready", READY_S)
        settings = ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.delay0.rp_filter=0")
        run_in(client, ["sysctl", "-qw", *settings, "net.ipv4.conf.delay0.accept_local=1"])
        run_in(client, ["ip", "link", "set", "delay0", "txqueuelen", "20000", "up"])
        run_in(client, ["ip", "route", "add", "default", "dev", "delay0", "table", TABLE])
        for address in DISTANCES:
            run_in(client, ["ip", "address", "add", f"{address}/32", "dev", "lo"])
            run_in(client, ["ip", "rule", "add", "from", address, "iif", "lo", "lookup", TABLE])

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
