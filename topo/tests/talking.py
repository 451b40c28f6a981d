"""The web lab with line-based servers, connections to these servers, and SYNs of other clients whose connections have
the same slots in the switch's table."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from harness.slots import Tuple5, colliding
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from topo.labs.web import Lab
from topo.plan.network import LOAD_CLIENT, SERVERS, VIP, WEB_PORT, Balance
from topo.testbed.namespaces import connect_in, socket_in
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import Process
from topo.tests.server import Server

INTERFACE = f"{LOAD_CLIENT.name}-eth0"
TIMEOUT_S = 20.0

SHORT = {"pending_s": 1, "answered_s": 2, "idle_s": 4, "idle_least_s": 4, "half_closed_s": 6, "linger_s": 0.5}
"""Lifetimes of pins (entries in the connection table) in seconds, short enough for a test. Keepalive probes are sent
every second."""
STRANGERS = "20.0.0.0/8"
"""Network of the other clients, as used by harness.slots.colliding."""
PRESSES_PER_S = 4


class TalkingLab(Lab):
    """The web lab with a server of `topo.tests.server` in place of each Apache."""

    def __init__(self) -> None:
        super().__init__(switch_kind(), Balance("fixed", 1.0, 10.0, second_look=True))
        self.talkers: dict[str, Process] = {}
        self._ports = count(20_000)

    def port(self) -> int:
        """Return a port of the load client that no test has used."""
        return next(self._ports)

    def _start_servers(self) -> None:
        for server in SERVERS:
            program = Server(server.name, str(server.address))
            process = self.start_program(program, server.name, cores=self._cores.servers)
            self.talkers[server.name] = self.await_listening(process, server.name, WEB_PORT)
            self._servers.append(process)

    @contextmanager
    def configured(self, change: Callable[[dict[str, Any]], None]) -> Generator[None]:
        """Change the controller's configuration while the context is active."""
        before = self.controller.configuration
        wanted = {**self.controller.configuration}
        change(wanted)
        try:
            self.controller.reload(wanted)
            yield
        finally:
            self.controller.reload(before)

    @contextmanager
    def pressed(self) -> Generator[None]:
        """Shorten the lifetimes of pins while the context is active, and add a route to the clients whose SYNs `press`
        sends."""

        def change(wanted: dict[str, Any]) -> None:
            wanted["connections"] = SHORT
            wanted["routes"] = [{"to": STRANGERS, "via": str(LOAD_CLIENT.address)}]

        with self.configured(change):
            yield

    @contextmanager
    def draining(self, name: str) -> Generator[None]:
        """Drain a server while the context is active."""
        self.controller.drain(name, drain=True)
        try:
            yield
        finally:
            self.controller.drain(name, drain=False)

    @contextmanager
    def removed(self, name: str) -> Generator[None]:
        """Remove a server from the configuration while the context is active."""

        def change(wanted: dict[str, Any]) -> None:
            (service,) = wanted["services"]
            service["servers"] = [server for server in service["servers"] if server["name"] != name]

        with self.configured(change):
            yield


@dataclass
class Connection:
    """An established connection of the load client, and the name of its first server."""

    port: int
    socket: socket.socket
    server: str = ""

    def says(self, line: str) -> str:
        """Send a line and return the server's answer; the empty string if the connection is reset or nothing
        answers."""
        try:
            self.socket.sendall(f"{line}\n".encode())
            answer = b""
            while not answer.endswith(b"\n"):
                more = self.socket.recv(64)
                if not more:
                    return ""
                answer += more
        except ConnectionError:
            return ""
        return answer.decode().strip()

    def holds(self) -> bool:
        """Return whether the connection's first server still answers."""
        return self.says("name") == self.server

    def read(self) -> bytes:
        """Return the bytes up to the server's FIN."""
        data = bytearray()
        while more := self.socket.recv(1 << 16):
            data += more
        return bytes(data)


def connect(lab: TalkingLab, port: int) -> Connection:
    """Return a new connection from a port; raise OSError if it is not established."""
    client = lab.pid(LOAD_CLIENT.name)
    made = Connection(port, connect_in(client, (str(VIP), WEB_PORT), TIMEOUT_S, source=("", port)))
    made.server = made.says("name")
    return made


@contextmanager
def connections(
    lab: TalkingLab, number: int, prepare: Callable[[Connection], object] = lambda _: None
) -> Generator[list[Connection]]:
    """Yield ``number`` established connections; ``prepare`` is called for each as soon as it is open."""
    with ExitStack() as stack:
        made: list[Connection] = []
        for _ in range(number):
            port = lab.port()
            made.append(connect(lab, port))
            stack.enter_context(made[-1].socket)
            prepare(made[-1])
        yield made


def press(lab: TalkingLab, pressed: Sequence[Connection], seconds: float) -> None:
    """For ``seconds``, send SYNs of other clients whose connections have the same slots as `pressed`, in both ways
    (hash functions) of the table. The switch gives them the slots as soon as the slots are free."""
    frames: list[bytes] = []
    for connection in pressed:
        key = Tuple5(str(LOAD_CLIENT.address), connection.port, str(VIP), WEB_PORT)
        for stranger in islice(colliding(key, slot_1=key.slot_1, slot_2=key.slot_2), 3):
            ethernet = Ether(src=LOAD_CLIENT.mac, dst=LOAD_CLIENT.gateway_mac)
            addresses = IP(src=stranger.client, dst=str(VIP))
            frames.append(bytes(ethernet / addresses / TCP(sport=stranger.client_port, dport=WEB_PORT, flags="S")))
    end = time.monotonic() + seconds
    with socket_in(lab.pid(LOAD_CLIENT.name), socket.AF_PACKET, socket.SOCK_RAW) as raw:
        raw.bind((INTERFACE, 0))
        while time.monotonic() < end:
            for frame in frames:
                raw.send(frame)
            time.sleep(1 / PRESSES_PER_S)
