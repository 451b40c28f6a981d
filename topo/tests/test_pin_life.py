"""Tests of the lifetime of pins (entries in the connection table) with real TCP (docs/reference/pipeline.md).
Connections that are kept alive or half closed keep their server, although SYNs of other clients compete for their
slots. No new connection reaches a server that drains or is removed, whatever earlier connections its port had.
"""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from topo.measure.capture import Capture
from topo.measure.handshakes import Segment
from topo.plan.network import LOAD_CLIENT, SERVERS, VIP, WEB_PORT
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.client import WAYS, PortReuse
from topo.tests.fixtures import lab_fixture
from topo.tests.server import content, keep_alive
from topo.tests.talking import SHORT, TIMEOUT_S, Connection, TalkingLab, connections, press

pytestmark = needs.LONG

COMPUTING_S = SHORT["half_closed_s"] / 2
REUSE_TIMEOUT_S = 120.0
PORTS_OF_A_WAY = {"embedded": 110, "bmv2": 8}
"""Number of ports for each way of ending a connection, by kind of switch. All ports together make some 1,000
(embedded) or 70 (bmv2) connections/s of 14 packets each. BMv2 has few ports, because it forwards only some thousand
packets/s."""


lab = lab_fixture(TalkingLab)


def test_a_connection_that_either_end_keeps_alive_keeps_its_server(lab: TalkingLab) -> None:
    """For three times the idle time only keepalive probes pass, SYNs of other clients compete for the connections'
    slots, and a server drains. Every connection with keepalive probes keeps its server; some without probes lose
    theirs."""
    with (
        lab.pressed(),
        connections(lab, 12, lambda connection: keep_alive(connection.socket)) as by_client,
        connections(lab, 12, lambda connection: connection.says("keepalive")) as by_server,
        connections(lab, 12) as silent,
    ):
        with lab.draining(by_client[0].server):
            press(lab, [*by_client, *by_server, *silent], 3 * SHORT["idle_s"])
            assert [connection.port for connection in (*by_client, *by_server) if not connection.holds()] == []
        assert not all(connection.holds() for connection in silent), (
            "without probes slots are lost: else nothing was tried"
        )


def test_a_connection_that_one_end_has_closed_keeps_its_server(lab: TalkingLab) -> None:
    """The end that has not closed is silent for longer than `linger_s`, while SYNs of other clients compete for the
    connections' slots, and then sends megabytes. All bytes arrive."""
    size = 3_000_000
    sent = content("client", size)

    def client_closes(connection: Connection) -> None:
        connection.socket.sendall(f"compute {COMPUTING_S} {size}\n".encode())
        connection.socket.shutdown(socket.SHUT_WR)

    def server_closes(connection: Connection) -> None:
        connection.socket.sendall(b"listen\n")
        assert connection.read() == b""

    with (
        lab.pressed(),
        connections(lab, 12, server_closes) as late,
        connections(lab, 6, client_closes) as by_client,
        connections(lab, 6, server_closes) as by_server,
    ):
        with lab.draining(by_client[0].server):
            press(lab, [*by_client, *by_server], COMPUTING_S)
            for connection in by_server:
                connection.socket.sendall(sent)
                connection.socket.shutdown(socket.SHUT_WR)
            for connection in by_client:
                assert connection.read() == content(connection.server, size), connection.server
            for connection in by_server:
                received = f"{connection.port} {hashlib.sha256(sent).hexdigest()}"
                lab.talkers[connection.server].await_output(received, TIMEOUT_S)
        press(lab, late, 1.5 * SHORT["half_closed_s"])
        assert not all(goes_on(connection) for connection in late), (
            "after `half_closed_s` slots are lost: else nothing was tried"
        )


def goes_on(connection: Connection) -> bool:
    """Send some bytes three times within 0.4 s; return False if the connection is reset."""
    try:
        for _ in range(2):
            connection.socket.sendall(b"late")
            time.sleep(0.2)
        connection.socket.sendall(b"late")
    except ConnectionError:
        return False
    return True


@dataclass(frozen=True)
class Made:
    """PortReuse's report on a connection; `began` is in seconds, on the clock of time.time()."""

    began: float
    port: int
    way: str
    server: str
    fault: str


class Reuse:
    """A process of PortReuse in the load client's namespace, and its reports."""

    def __init__(self, lab: TalkingLab) -> None:
        self._ports = PORTS_OF_A_WAY[lab.kind]
        self._process = lab.start_program(PortReuse(f"{VIP}:{WEB_PORT}", self._ports), LOAD_CLIENT.name)
        self._read = 0
        self.made: list[Made] = []

    def __enter__(self) -> Reuse:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()

    def await_used(self, times: int, since: float = 0.0) -> None:
        """Return once every port has made ``times`` connections that began after ``since``."""

        def used() -> bool:
            time.sleep(0.2)
            self._process.require_running()
            self._take()
            counts = dict.fromkeys((made.port for made in self.made), 0)
            for made in self.made:
                counts[made.port] += made.began >= since
            return len(counts) == self._ports * len(WAYS) and min(counts.values()) >= times

        await_true(f"every port has been used {times} times", used, REUSE_TIMEOUT_S)

    def _take(self) -> None:
        with self._process.log.open("rb") as log:
            log.seek(self._read)
            whole = log.read().rpartition(b"\n")[0]
        if whole:
            self._read += len(whole) + 1
            self.made += [Made(*json.loads(line)) for line in whole.splitlines()]


@contextmanager
def syns_at(lab: TalkingLab, host: str, address: Any) -> Generator[list[Segment]]:
    """Capture at a host's interface while the context is active; yield the list, which grows, of the SYNs to the
    service's port at `address`."""
    seen: list[Segment] = []

    def take(segment: Segment) -> None:
        if segment.syn and not segment.ack:
            seen.append(segment)

    capture = Capture(lab.pid(host), f"{host}-eth0", address, WEB_PORT, take)
    try:
        yield seen
        capture.stop()
    finally:
        capture.close()


@pytest.mark.parametrize("how", ["drained", "removed"])
def test_ports_used_again_lead_no_new_connection_to_a_server_that_goes(lab: TalkingLab, how: str) -> None:
    """While a server is drained or removed, ports make connection after connection. Either end closes by FIN or RST, or
    the client ends without a packet. No new connection reaches that server."""
    lab.call(LOAD_CLIENT.name, "sysctl", "-q", "-w", "net.ipv4.tcp_tw_reuse=1")
    server, goes = SERVERS[0], lab.draining if how == "drained" else lab.removed
    with (
        connections(lab, 24) as existing,
        syns_at(lab, LOAD_CLIENT.name, VIP) as sent,
        syns_at(lab, server.name, server.address) as arrived,
        Reuse(lab) as reuse,
    ):
        reuse.await_used(1)
        with goes(server.name):
            gone = time.time()
            reuse.await_used(2, since=gone)
            assert [connection.port for connection in existing if not connection.holds()] == []
            back = time.time()
    assert server.name in {connection.server for connection in existing}
    assert {made.server for made in reuse.made if made.began < gone} == {made.name for made in SERVERS}
    assert [made for made in reuse.made if made.fault] == []
    assert [made for made in reuse.made if made.began >= gone and made.server == server.name] == []
    assert [segment for segment in arrived if gone <= segment.time < back and last_sent(segment, sent) >= gone] == []


def last_sent(arrived: Segment, sent: Sequence[Segment]) -> float:
    """Return the time (on the clock of time.time()) at which a SYN that has arrived was sent: the time of its last
    repetition before the arrival."""
    same = (
        segment
        for segment in sent
        if (segment.client_port, segment.sequence) == (arrived.client_port, arrived.sequence)
    )
    return max(segment.time for segment in same if segment.time <= arrived.time)
