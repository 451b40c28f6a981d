"""Closing with real TCP: Apache's prefork, kept-alive connections, and a switch that ends them for both sides."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPResponse

import pytest
from sluice.config.model import Config
from sluice.switch.programmer import Programmer

from topo.labs.apache import start_apache
from topo.labs.closing import CLIENT, MACS, PAGE, SERVER, VIP, ClosingNet
from topo.plan.network import WEB_PORT
from topo.testbed.namespaces import socket_in
from topo.testbed.nets import GRPC_PORT
from topo.testbed.processes import Process, await_true, run_in
from topo.tests.closer import TIMEOUT_S, Closer, closing, configured
from topo.tests.reached import reached

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

KEPT_S = 300
"""Apache's KeepAliveTimeout: it closes nothing itself."""
KEEPALIVES_S = 6
"""More than three keepalives take that get no answer, a second apart."""
GET = f"GET /page HTTP/1.1\r\nHost: {VIP}\r\n\r\n".encode()
LARGE = b"a large page\n" * 200_000
GET_LARGE = GET.replace(b"/page", b"/large")


@dataclass
class Net:
    """Hosts and the switch's configuration."""

    place: ClosingNet
    config: Config

    def connected(self, receive_buffer: int | None = None) -> socket.socket:
        """A connection of the client's to the service, with a buffer of so many bytes."""
        made = socket_in(self.place.pid("client"), socket.AF_INET, socket.SOCK_STREAM)
        made.settimeout(TIMEOUT_S)
        if receive_buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.connect((VIP, WEB_PORT))
        return made

    def sockets(self, host: str, port: int) -> list[str]:
        """States of a host's sockets of the connection with this port of the client's."""
        lines = run_in(self.place.pid(host), ["ss", "-Htan"]).splitlines()
        return [line.split()[0] for line in lines if any(word.endswith(f":{port}") for word in line.split()[3:5])]

    def waits_for_window(self, port: int) -> bool:
        """Whether the server asks the client of this port for a larger window."""
        lines = run_in(self.place.pid("server"), ["ss", "-Htno"]).splitlines()
        return any(f":{port} " in line and "persist" in line for line in lines)


def asks(connection: socket.socket) -> bytes:
    """One request on a connection that is kept alive; the page."""
    connection.sendall(GET)
    return answer(connection)


def answer(connection: socket.socket) -> bytes:
    """The page that was asked for."""
    response = HTTPResponse(connection)
    response.begin()
    assert response.status == 200
    return response.read()


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    with ClosingNet() as place, ExitStack() as stack:
        stack.callback(_apache(place).stop)
        config = configured(stack.enter_context(reached(place.pid("switch"), GRPC_PORT)), VIP, SERVER)
        with Programmer(config, {CLIENT: (1, MACS[1]), SERVER: (2, MACS[2])}):
            pass
        yield Net(place, config)


def _apache(place: ClosingNet) -> Process:
    files = place.directory / "files"
    files.mkdir()
    (files / "page").write_bytes(PAGE)
    (files / "large").write_bytes(LARGE)
    return start_apache(
        "s1",
        SERVER,
        namespace_pid=place.pid("server"),
        cgroup_procs=(),
        cores=(),
        backlog=16,
        directory=place.directory / "s1",
        files=files,
        more=f"KeepAliveTimeout {KEPT_S}",
    )


async def becomes(what: str, condition: Callable[[], bool]) -> None:
    """Return once a condition holds."""
    await asyncio.to_thread(await_true, what, condition, TIMEOUT_S)


def test_an_idle_connection_is_closed_and_the_next_request_is_made_again(net: Net) -> None:
    """The server's socket is gone at once, without TIME_WAIT; a client that did not look is reset, and tries again."""

    async def act(closer: Closer) -> None:
        with net.connected() as connection:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            assert net.sockets("server", port) == ["ESTAB"]
            assert await closer.load() == 1
            await closer.close(1)
            await becomes("the socket is gone", lambda: not net.sockets("server", port))
            assert await closer.load() == 0
            await becomes("the client has the FIN", lambda: net.sockets("client", port) == ["CLOSE-WAIT"])
            connection.sendall(GET)
            assert connection.recv(1) == b"", "the FIN"
            with pytest.raises(ConnectionError):
                while True:
                    connection.sendall(GET)
                    await asyncio.sleep(0.01)
        with net.connected() as again:
            assert await asyncio.to_thread(asks, again) == PAGE
        counts = (await closer.closing.counts([closer.server]))[closer.server]
        assert (counts.closed, counts.taken_back, counts.raced) == (1, 0, 1)

    closing(net.config, act)


def test_many_are_closed_and_their_clients_end_without_a_trace(net: Net) -> None:
    """Clients that see the FIN close: neither host keeps a socket. A connection whose client waits is left alone."""

    async def act(closer: Closer) -> None:
        with ExitStack() as stack:
            many = [stack.enter_context(net.connected()) for _ in range(6)]
            ports = [one.getsockname()[1] for one in many]
            for one in many:
                assert await asyncio.to_thread(asks, one) == PAGE
            waits = stack.enter_context(net.connected())
            waits.sendall(GET[:-2])
            await closer.close(len(many))
            for one in many:
                assert await asyncio.to_thread(one.recv, 1) == b""
                one.close()
            gone = [(host, port) for host in ("server", "client") for port in ports]
            await becomes("all are gone", lambda: not any(net.sockets(*each) for each in gone))
            assert await closer.load() == 1
            waits.sendall(b"\r\n")
            assert answer(waits) == PAGE

    closing(net.config, act)


def test_a_download_that_its_client_pauses_is_not_cut_off(net: Net) -> None:
    """All that was sent is acknowledged and nobody says anything more, for the client's window is closed."""

    async def act(closer: Closer) -> None:
        with net.connected(receive_buffer=20_000) as paused, net.connected() as other:
            paused.sendall(GET_LARGE)
            port = paused.getsockname()[1]
            await becomes("the client's window is closed", lambda: net.waits_for_window(port))
            assert await asyncio.to_thread(asks, other) == PAGE
            await closer.close(1)
            assert await asyncio.to_thread(other.recv, 1) == b""
            assert await asyncio.to_thread(answer, paused) == LARGE

    closing(net.config, act)


def keeps_alive(connection: socket.socket) -> None:
    """Ask for the peer every second, and give up behind three silences."""
    for option, value in (
        (socket.TCP_KEEPIDLE, 1),
        (socket.TCP_KEEPINTVL, 1),
        (socket.TCP_KEEPCNT, 3),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, option, value)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


@pytest.mark.parametrize("stamps", [True, False])
def test_a_client_whose_fin_got_lost_gets_it_again(net: Net, stamps: bool) -> None:
    """With its next keepalive, with TCP timestamps and without."""
    client = net.place.pid("client")
    lost = ["INPUT", "-p", "tcp", "--tcp-flags", "FIN", "FIN", "-j", "DROP"]

    async def act(closer: Closer) -> None:
        with net.connected() as connection, ExitStack() as stack:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            run_in(client, ["iptables", "-A", *lost])
            rule = stack.enter_context(ExitStack())
            rule.callback(run_in, client, ["iptables", "-D", *lost])
            await closer.close(1)
            await becomes("the socket is gone", lambda: not net.sockets("server", port))
            assert net.sockets("client", port) == ["ESTAB"]
            rule.close()
            keeps_alive(connection)
            assert await asyncio.to_thread(connection.recv, 1) == b""
            assert net.sockets("client", port) == ["CLOSE-WAIT"]

    run_in(client, ["sysctl", "-qw", f"net.ipv4.tcp_timestamps={int(stamps)}"])
    try:
        closing(net.config, act)
    finally:
        run_in(client, ["sysctl", "-qw", "net.ipv4.tcp_timestamps=1"])


def test_a_client_that_does_not_close_does_not_take_its_peer_for_lost(net: Net) -> None:
    async def act(closer: Closer) -> None:
        with net.connected() as connection:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            await closer.close(1)
            await becomes("the client has the FIN", lambda: net.sockets("client", port) == ["CLOSE-WAIT"])
            keeps_alive(connection)
            await asyncio.sleep(KEEPALIVES_S)
            assert net.sockets("client", port) == ["CLOSE-WAIT"], "three keepalives without an answer end it"

    closing(net.config, act)


def test_a_server_whose_reset_got_lost_gets_it_again(net: Net) -> None:
    """With its next keepalive."""
    server = net.place.pid("server")
    lost = ["INPUT", "-p", "tcp", "--tcp-flags", "RST", "RST", "-j", "DROP"]

    async def act(closer: Closer) -> None:
        with net.connected() as connection:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            run_in(server, ["iptables", "-A", *lost])
            try:
                await closer.close(1)
                await becomes("the client has the FIN", lambda: net.sockets("client", port) == ["CLOSE-WAIT"])
            finally:
                run_in(server, ["iptables", "-D", *lost])
            assert net.sockets("server", port) == ["ESTAB"]
            await becomes("the socket is gone", lambda: not net.sockets("server", port))

    settings = {"time": 1, "intvl": 1, "probes": 100}
    run_in(server, ["sysctl", "-qw", *(f"net.ipv4.tcp_keepalive_{name}={value}" for name, value in settings.items())])
    closing(net.config, act)
