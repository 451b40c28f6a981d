"""Tests of closing idle connections with real TCP: Apache's prefork module, persistent connections, and a switch that
ends these connections towards client and server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPResponse

import pytest
from sluice.config.model import Config

from topo.labs.closing import PAGE, SERVER, ClosingNetwork
from topo.labs.webservers import apache_command, apache_configuration
from topo.plan.network import CLIENT, VIP, WEB_PORT
from topo.testbed.processes import await_true, run_in
from topo.tests import needs
from topo.tests.closer import TIMEOUT_S, Closer, closing, configured
from topo.tests.server import keep_alive

pytestmark = needs.ROOT

KEPT_S = 300
"""Apache's KeepAliveTimeout in seconds, so long that Apache closes no connection itself."""
KEEPALIVES_S = 6
"""Seconds of keepalive probes, one per second, after which a connection without answers would have ended: the third
unanswered probe ends it."""
GET = f"GET /page HTTP/1.1\r\nHost: {VIP}\r\n\r\n".encode()
LARGE = b"a large page\n" * 200_000
GET_LARGE = GET.replace(b"/page", b"/large")


class Net(ClosingNetwork):
    """The network with Apache's prefork module as the server; `config` is the switch's configuration."""

    config: Config

    def build(self) -> None:
        """Build the network, and start Apache."""
        super().build()
        files, directory, file = self.directory / "files", self.directory / "s1", self.directory / "apache.conf"
        for folder in (files, directory):
            folder.mkdir()
        (files / "page").write_bytes(PAGE)
        (files / "large").write_bytes(LARGE)
        keep = f"KeepAliveTimeout {KEPT_S}"
        file.write_text(apache_configuration(directory, "s1", str(SERVER.address), files, keep))
        self.await_listening(self.start("apache", apache_command(file), SERVER.name), SERVER.name, WEB_PORT)

    def sockets(self, host: str, port: int) -> list[str]:
        """Return the states of a host's TCP sockets for the connection with this client port."""
        lines = self.call(host, "ss", "-Htan").splitlines()
        return [line.split()[0] for line in lines if any(word.endswith(f":{port}") for word in line.split()[3:5])]

    def waits_for_window(self, port: int) -> bool:
        """Return whether the server is probing a zero window of the client with this port."""
        lines = self.call(SERVER.name, "ss", "-Htno").splitlines()
        return any(f":{port} " in line and "persist" in line for line in lines)


def asks(connection: socket.socket) -> bytes:
    """Send a request on a persistent connection; return the page."""
    connection.sendall(GET)
    return answer(connection)


def answer(connection: socket.socket) -> bytes:
    """Read the answer to a request, and return the page."""
    response = HTTPResponse(connection)
    response.begin()
    assert response.status == 200
    return response.read()


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    with Net() as running, configured(running) as running.config:
        yield running


async def becomes(what: str, condition: Callable[[], bool]) -> None:
    """Return once the condition is true; raise SetupError with the text `what` after TIMEOUT_S seconds."""
    await asyncio.to_thread(await_true, what, condition, TIMEOUT_S)


def test_an_idle_connection_is_closed_and_the_next_request_is_made_again(net: Net) -> None:
    """The server's socket ends at once, without TIME_WAIT. The client's next request is answered by a RST, and succeeds
    on a new connection."""

    async def act(closer: Closer) -> None:
        with net.connect(TIMEOUT_S) as connection:
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
        with net.connect(TIMEOUT_S) as again:
            assert await asyncio.to_thread(asks, again) == PAGE
        counts = (await closer.closing.counts([closer.server]))[closer.server]
        assert (counts.closed, counts.taken_back, counts.raced) == (1, 0, 1)

    closing(net.config, act)


def test_many_are_closed_and_their_clients_end_without_a_trace(net: Net) -> None:
    """Clients that receive the FIN close, so neither host has a socket left. A connection with an incomplete request
    stays open."""

    async def act(closer: Closer) -> None:
        with ExitStack() as stack:
            many = [stack.enter_context(net.connect(TIMEOUT_S)) for _ in range(6)]
            ports = [client.getsockname()[1] for client in many]
            for client in many:
                assert await asyncio.to_thread(asks, client) == PAGE
            waits = stack.enter_context(net.connect(TIMEOUT_S))
            waits.sendall(GET[:-2])
            await closer.close(len(many))
            for client in many:
                assert await asyncio.to_thread(client.recv, 1) == b""
                client.close()
            gone = [(host, port) for host in ("server", "client") for port in ports]
            await becomes("all are gone", lambda: not any(net.sockets(*each) for each in gone))
            assert await closer.load() == 1
            waits.sendall(b"\r\n")
            assert answer(waits) == PAGE

    closing(net.config, act)


def test_a_download_that_its_client_pauses_is_not_cut_off(net: Net) -> None:
    """The paused download looks idle: all data is acknowledged, and no packet follows because the client's window is
    closed. The switch must not close its connection."""

    async def act(closer: Closer) -> None:
        with net.connect(TIMEOUT_S, receive_buffer=20_000) as paused, net.connect(TIMEOUT_S) as other:
            paused.sendall(GET_LARGE)
            port = paused.getsockname()[1]
            await becomes("the client's window is closed", lambda: net.waits_for_window(port))
            assert await asyncio.to_thread(asks, other) == PAGE
            await closer.close(1)
            assert await asyncio.to_thread(other.recv, 1) == b""
            assert await asyncio.to_thread(answer, paused) == LARGE

    closing(net.config, act)


@pytest.mark.parametrize("stamps", [True, False])
def test_a_client_whose_fin_got_lost_gets_it_again(net: Net, stamps: bool) -> None:
    """The client's next keepalive probe makes the switch send the FIN again, with TCP timestamps and without."""
    client = net.pid(CLIENT.name)
    lost = ["INPUT", "-p", "tcp", "--tcp-flags", "FIN", "FIN", "-j", "DROP"]

    async def act(closer: Closer) -> None:
        with net.connect(TIMEOUT_S) as connection, ExitStack() as stack:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            run_in(client, ["iptables", "-A", *lost])
            rule = stack.enter_context(ExitStack())
            rule.callback(run_in, client, ["iptables", "-D", *lost])
            await closer.close(1)
            await becomes("the socket is gone", lambda: not net.sockets("server", port))
            assert net.sockets("client", port) == ["ESTAB"]
            rule.close()
            keep_alive(connection, probes=3)
            assert await asyncio.to_thread(connection.recv, 1) == b""
            assert net.sockets("client", port) == ["CLOSE-WAIT"]

    run_in(client, ["sysctl", "-qw", f"net.ipv4.tcp_timestamps={int(stamps)}"])
    try:
        closing(net.config, act)
    finally:
        run_in(client, ["sysctl", "-qw", "net.ipv4.tcp_timestamps=1"])


def test_a_client_that_does_not_close_does_not_take_its_peer_for_lost(net: Net) -> None:
    async def act(closer: Closer) -> None:
        with net.connect(TIMEOUT_S) as connection:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            await closer.close(1)
            await becomes("the client has the FIN", lambda: net.sockets("client", port) == ["CLOSE-WAIT"])
            keep_alive(connection, probes=3)
            await asyncio.sleep(KEEPALIVES_S)
            assert net.sockets("client", port) == ["CLOSE-WAIT"], "three keepalives without an answer end it"

    closing(net.config, act)


def test_a_server_whose_reset_got_lost_gets_it_again(net: Net) -> None:
    """The server's next keepalive probe makes the switch send the RST again."""
    server = net.pid(SERVER.name)
    lost = ["INPUT", "-p", "tcp", "--tcp-flags", "RST", "RST", "-j", "DROP"]

    async def act(closer: Closer) -> None:
        with net.connect(TIMEOUT_S) as connection:
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
