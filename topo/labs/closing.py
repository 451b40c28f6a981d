"""The lab of idle connections: users at several distances, the embedded switch, one web server with few workers.

```
 server 10.0.11.1 --- 2 sluice 1 --- 10.0.1.1 client, 10.101.0.1, 10.102.0.1, ...
                                     delays its users' packets by the users' distances
```
"""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping
from typing import Any

from topo.labs.webservers import WebServer
from topo.load.client import ThinkingUsers
from topo.plan.network import CLIENT, FAR, SERVICE, VIP, WEB_PORT, HostPlan, service, switch_config
from topo.testbed.namespaces import connect_in
from topo.testbed.network import SWITCH, NamespaceNetwork
from topo.testbed.processes import Process

SERVER = HostPlan("server", 2, 11)
NEIGHBOURS = {str(host.address): (host.port, host.mac) for host in (CLIENT, SERVER)}
"""Switch port and MAC address by IP address, for a switch without a controller."""
DISTANCES = {"10.101.0.1": 0.005, "10.102.0.1": 0.01, "10.103.0.1": 0.02, "10.104.0.1": 0.04, "10.105.0.1": 0.08}
"""Round trip time in seconds by user's address: five distances, as in Azuma et al."""
PAGE = b"a page\n" * 1000


class ClosingNetwork(NamespaceNetwork):
    """A network of client, switch and server."""

    def build(self) -> None:
        """Connect client and server to the switch, and start the switch."""
        self.hosts((CLIENT.name, SWITCH, SERVER.name))
        for host in (CLIENT, SERVER):
            self.attach(host)
        self.serve((CLIENT.port, SERVER.port))

    def connect(self, timeout_s: float, receive_buffer: int | None = None) -> socket.socket:
        """Return a connection of a user next to the switch, with a receive buffer of ``receive_buffer`` bytes (None:
        the kernel's default)."""
        return connect_in(self.pid(CLIENT.name), (str(VIP), WEB_PORT), timeout_s, receive_buffer=receive_buffer)


class ClosingLab(ClosingNetwork):
    """The lab: distant users, a web server, and a controller. If ``idle`` is given, the controller closes idle
    connections with these options."""

    def __init__(self, server: WebServer, idle: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.server = server
        self._idle = idle

    def build(self) -> None:
        """Build the network, the delay line, the server and the controller."""
        super().build()
        self.delay(CLIENT.name, DISTANCES)
        directory = self.directory / "web"
        (directory / "files").mkdir(parents=True)
        (directory / "files/page").write_bytes(PAGE)
        for name, text in self.server.files(directory, str(SERVER.address)).items():
            (directory / name).write_text(text)
        process = self.start("web", self.server.command(directory), SERVER.name)
        self.await_listening(process, SERVER.name, WEB_PORT)
        self.start_controller(configuration(self._idle))

    def users(self, **options: Any) -> Process:
        """Start the users' program, with these options of ThinkingUsers."""
        return self.start_program(ThinkingUsers(f"{VIP}:{WEB_PORT}", list(DISTANCES), **options), CLIENT.name)

    def idle(self) -> Mapping[str, Any]:
        """Return what `sluice status` reports of the server's idle connections."""
        (web,) = self.controller.ask(command="status")["services"]
        (server,) = web["servers"]
        return server["resources"]["idle"]


def ended(pages: Mapping[str, Any]) -> dict[str, int]:
    """Return by user's address the number of connections that the switch closed before the user's next request reached
    it: the user noticed the closing before the request, or the request crossed the FIN.

    `pages`: the output of the users' program (`topo.load.client.Pages`).
    """
    closed, raced = pages["found_closed"], pages["raced"]
    return {source: closed.get(source, 0) + raced.get(source, 0) for source in {*closed, *raced}}


def expected_races(pages: Mapping[str, Any], think_s: float) -> float:
    """Return the expected number of requests that cross a FIN on the way.

    A closed connection contributes the probability that its user's request falls into the round trip of the FIN: the
    round trip time divided by the mean thinking time `think_s`, both in seconds.
    """
    connect_s = {source: pages["connect_s"][source] / count for source, count in pages["connected"].items()}
    return math.fsum(count * connect_s[source] / think_s for source, count in ended(pages).items())


def configuration(idle: Mapping[str, Any] | None = None) -> dict[str, object]:
    """Return the controller's configuration: one service with one server.

    ``idle``: options for closing idle connections; None: the switch closes no connections.
    """
    more = {} if idle is None else {"resources": {"idle": dict(idle)}}
    web = service(SERVICE, VIP, [SERVER], **more)
    return switch_config((CLIENT, SERVER), [web], routes=[{"to": FAR, "via": str(CLIENT.address)}])
