"""Closing with real TCP: Apache's prefork, kept-alive connections, and a switch that ends them for both sides."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from finsy import P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4UpdateType
from finsy.proto import p4r
from sluice.config import Config
from sluice.configload import parse
from sluice.names import Action, Table
from sluice.switch.choice import program_for
from sluice.switch.closing import Closing, services_of
from sluice.switch.plan import make_plan
from sluice.switch.programmer import Programmer
from sluice.switch.registers import open_registers
from sluice.switch.secondlook import read_loads
from sluice.switch.session import Session

from testbed.namespaces import OFFLOADS, socket_in
from testbed.processes import Process, await_true, run_in
from testbed.switches import EMBEDDED, Endpoints
from topo.apache import start_apache
from topo.tests.reached import reached
from workload.plan import WEB_PORT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

CLIENT, SERVER, VIP = "192.0.2.10", "198.51.100.11", "203.0.113.80"
MACS = {1: "02:00:00:00:01:10", 2: "02:00:00:00:02:11"}
GRPC_PORT = 9559
TIMEOUT_S = 30.0
KEPT_S = 300
"""Apache's KeepAliveTimeout: it closes nothing itself."""
GET = f"GET /page HTTP/1.1\r\nHost: {VIP}\r\n\r\n".encode()
PAGE = b"a page\n" * 1000
LARGE = b"a large page\n" * 200_000
GET_LARGE = GET.replace(b"/page", b"/large")


@dataclass
class Net:
    """Client, switch and server: a namespace each, held by a process."""

    client: Process
    switch: Process
    server: Process
    config: Config

    def connected(self, receive_buffer: int | None = None) -> socket.socket:
        """A connection of the client's to the service, with a buffer of so many bytes."""
        made = socket_in(self.client.pid, socket.AF_INET, socket.SOCK_STREAM)
        made.settimeout(TIMEOUT_S)
        if receive_buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        made.connect((VIP, WEB_PORT))
        return made

    def sockets(self, holder: Process, port: int) -> list[str]:
        """States of a host's sockets of the connection with this port of the client's."""
        lines = run_in(holder.pid, ["ss", "-Htan"]).splitlines()
        return [line.split()[0] for line in lines if any(word.endswith(f":{port}") for word in line.split()[3:5])]

    def waits_for_window(self, port: int) -> bool:
        """Whether the server asks the client of this port for a larger window."""
        lines = run_in(self.server.pid, ["ss", "-Htno"]).splitlines()
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


def _cable(switch: Process, port: int, host: Process, address: str) -> None:
    end = f"port{port}"
    run_in(host.pid, ["ip", "link", "add", "eth0", "type", "veth", "peer", "name", end, "netns", str(switch.pid)])
    for holder, name in ((host, "eth0"), (switch, end)):
        for offload in OFFLOADS:
            if not offload.endswith("vlan"):
                run_in(holder.pid, ["ethtool", "-K", name, offload, "off"])
        run_in(holder.pid, ["ip", "link", "set", name, "up"])
    run_in(host.pid, ["ip", "link", "set", "eth0", "address", MACS[port]])
    run_in(host.pid, ["ip", "address", "add", f"{address}/24", "dev", "eth0"])
    run_in(host.pid, ["ip", "route", "add", "default", "via", address.rsplit(".", 1)[0] + ".1"])


@contextmanager
def _held(stack: ExitStack, name: str) -> Generator[Process]:
    holder = Process(name, ["unshare", "--net", "sleep", "infinity"], log=None)
    stack.callback(holder.stop)
    ours = Path("/proc/self/ns/net").readlink()
    theirs = Path(f"/proc/{holder.pid}/ns/net")
    await_true(f"{name} has its namespace", lambda: theirs.readlink() != ours, TIMEOUT_S)
    yield holder


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="sluice-closing-")))
        folder.chmod(0o755)  # for Apache's own user
        client, switch, server = (stack.enter_context(_held(stack, name)) for name in ("client", "switch", "server"))
        _cable(switch, 1, client, CLIENT)
        _cable(switch, 2, server, SERVER)
        run_in(switch.pid, ["ip", "link", "set", "lo", "up"])
        endpoints = Endpoints(f"127.0.0.1:{GRPC_PORT}", folder)
        command = EMBEDDED.command(EMBEDDED.find(), {1: "port1", 2: "port2"}, endpoints)
        process = Process("switch", command, log=folder / "switch.log", namespace_pid=switch.pid)
        stack.callback(process.stop)
        EMBEDDED.await_serving(process, endpoints, TIMEOUT_S)
        stack.callback(_apache(folder, server).stop)
        config = _configuration(stack.enter_context(reached(switch.pid, GRPC_PORT)))
        neighbours = {CLIENT: (1, MACS[1]), SERVER: (2, MACS[2])}
        with Programmer(config, neighbours):
            pass
        yield Net(client, switch, server, config)


def _apache(folder: Path, server: Process) -> Process:
    files = folder / "files"
    files.mkdir()
    (files / "page").write_bytes(PAGE)
    (files / "large").write_bytes(LARGE)
    return start_apache(
        "s1",
        SERVER,
        namespace_pid=server.pid,
        cgroup_procs=(),
        cores=(),
        backlog=16,
        directory=folder / "s1",
        files=files,
        more=f"KeepAliveTimeout {KEPT_S}",
    )


def _configuration(address: str) -> Config:
    return parse(
        yaml.safe_dump(
            {
                "switch": {"address": address},
                "interfaces": [
                    {"port": 1, "mac": "02:00:00:00:00:01", "address": "192.0.2.1/24"},
                    {"port": 2, "mac": "02:00:00:00:00:02", "address": "198.51.100.1/24"},
                ],
                "services": [
                    {
                        "name": "web",
                        "address": VIP,
                        "port": WEB_PORT,
                        "servers": [{"name": "s1", "address": SERVER, "port": WEB_PORT}],
                    }
                ],
            }
        )
    )


class Closer:
    """A controller that closes what it is told to."""

    def __init__(self, net: Net, session: Session, closing: Closing, load: Callable[[], Awaitable[int]]) -> None:
        self.session = session
        self.closing = closing
        self.load = load
        ((self.server, self.service),) = services_of(make_plan(net.config)).items()

    async def idle(self, number: int) -> list[int]:
        """Flows of so many idle connections, as soon as there are so many."""
        end = time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            noted = [one.flow for one in await self.closing.read_idle(time.monotonic())]
            found = await self.closing.facts(noted, time.monotonic())
            assert {one.server for one in found} <= {self.server}
            if len(found) == number:
                return [one.flow for one in found]
            await asyncio.sleep(0.02)
        raise AssertionError(f"{number} idle connections are not found")

    async def close(self, number: int) -> None:
        """Close all idle connections, of which there are so many."""
        for flow in await self.idle(number):
            await self.closing.tickle(flow, self.service, 0.0)


def closing(net: Net, act: Callable[[Closer], Awaitable[None]]) -> None:
    """Run a test with the server's closing on."""

    async def run() -> None:
        at = net.config.switch
        async with Session(at.address, at.device_id, await program_for(at), at.election_id) as session:
            registers = await open_registers(session, None)
            stage = Closing(session, registers)
            await stage.prepare()
            await stage.prepare()
            (server,) = services_of(make_plan(net.config))
            how = {"measured": 0, "sampling": 0, "closed": 1, "send_cap": 0, "receive_cap": 0}
            match = P4TableMatch(server=server)
            entry = P4TableEntry(Table.RESOURCES, match=match, action=P4TableAction(Action.MANAGE, **how))
            entity = entry.encode(session.pipeline.schema)
            await session.write([p4r.Update(type=P4UpdateType.INSERT.vt(), entity=entity)])

            async def load() -> int:
                return (await read_loads(registers, [server]))[server]

            try:
                await act(Closer(net, session, stage, load))
            finally:
                await session.write([p4r.Update(type=P4UpdateType.DELETE.vt(), entity=entity)])

    asyncio.run(run())


async def becomes(what: str, condition: Callable[[], bool]) -> None:
    """Return once a condition holds."""
    await asyncio.to_thread(await_true, what, condition, TIMEOUT_S)


def test_an_idle_connection_is_closed_and_the_next_request_is_made_again(net: Net) -> None:
    """The server's socket is gone at once, without TIME_WAIT; a client that did not look is reset, and tries again."""

    async def act(closer: Closer) -> None:
        with net.connected() as connection:
            port = connection.getsockname()[1]
            assert await asyncio.to_thread(asks, connection) == PAGE
            assert net.sockets(net.server, port) == ["ESTAB"]
            assert await closer.load() == 1
            await closer.close(1)
            await becomes("the socket is gone", lambda: not net.sockets(net.server, port))
            assert await closer.load() == 0
            await becomes("the client has the FIN", lambda: net.sockets(net.client, port) == ["CLOSE-WAIT"])
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

    closing(net, act)


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
            gone = [(holder, port) for holder in (net.server, net.client) for port in ports]
            await becomes("all are gone", lambda: not any(net.sockets(*each) for each in gone))
            assert await closer.load() == 1
            waits.sendall(b"\r\n")
            assert answer(waits) == PAGE

    closing(net, act)


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

    closing(net, act)
