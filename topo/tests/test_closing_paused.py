"""Responses that pause for seconds, while idle connections are closed: none is cut off before anything is learned."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPResponse
from pathlib import Path

from topo.labs.closing import SERVER, ClosingLab
from topo.labs.webservers import WebServer
from topo.load.program import command
from topo.plan.network import VIP
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.fixtures import lab_fixture
from topo.tests.server import Server, body

pytestmark = needs.ROOT

RESPONSES, LONGEST_S = 400, 5.0
EVERY = RESPONSES // 4
IDLE = 30
TIMEOUT_S = 40.0
LIMIT = 25
"""Connections that the server can have; those that are idle alone are more than the threshold."""


BYTES = 6_000
WHOLE = body(0, BYTES)


class PausingServer(WebServer):
    """The server of the lab's tests, as a web server of the closing lab."""

    def files(self, directory: Path, address: str) -> Mapping[str, str]:
        """Return no files."""
        del directory, address
        return {}

    def command(self, directory: Path) -> Sequence[str]:
        """Return the server's command line."""
        del directory
        return command(Server("server", str(SERVER.address)))


lab = lab_fixture(lambda: ClosingLab(PausingServer("pausing", 0, 0), {"limit": LIMIT, "rate": 1000}), "function")


def get(what: str, seconds: float) -> bytes:
    """Return a request."""
    return f"GET /?{what}={seconds:.2f}&bytes={BYTES} HTTP/1.1\r\nHost: {VIP}\r\n\r\n".encode()


def page(connection: socket.socket) -> bytes:
    """Read the next response and return its body."""
    response = HTTPResponse(connection)
    response.begin()
    return response.read()


def paused(lab: ClosingLab, seconds: float) -> bool:
    """A page that pauses within itself, and ends with its connection, is whole."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(get("pause", seconds))
        return page(connection) == WHOLE


def pipelined(lab: ClosingLab, seconds: float) -> bool:
    """Two requests in one segment are both answered, the second after a pause."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(get("wait", 0) + get("wait", seconds))
        received = b""
        while received.count(WHOLE) < 2 and (more := connection.recv(1 << 16)):
            received += more
        return received.count(WHOLE) == 2


def continued(lab: ClosingLab, seconds: float) -> bool:
    """A client that receives 100 Continue and pauses before its body is answered."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(f"POST /?bytes={BYTES} HTTP/1.1\r\nHost: {VIP}\r\nExpect: 100-continue\r\n".encode())
        connection.sendall(b"Content-Length: 4\r\n\r\n")
        assert connection.recv(1 << 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
        time.sleep(seconds)
        connection.sendall(b"body")
        return page(connection) == WHOLE


def worked(lab: ClosingLab, seconds: float) -> bool:
    """A page that begins after a pause is complete."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(get("wait", seconds))
        return page(connection) == WHOLE


def test_no_response_is_cut_off_that_pauses_and_what_is_idle_is_closed(lab: ClosingLab) -> None:
    """Keep more connections open than the threshold, all the time."""
    source = random.Random(5)
    with ExitStack() as stack:
        idle = [stack.enter_context(lab.connect(TIMEOUT_S)) for _ in range(IDLE)]
        for one in idle:
            one.sendall(get("wait", 0))
            assert page(one) == WHOLE
        pauses = [LONGEST_S * (number + source.random()) / EVERY for number in range(EVERY)]
        asked = [(how, seconds) for how in (paused, pipelined, continued, worked) for seconds in pauses]
        with ThreadPoolExecutor(RESPONSES) as pool:
            running = [pool.submit(how, lab, seconds) for how, seconds in asked]
        whole = [one.result() for one in running]
        assert whole.count(False) == 0
        before = lab.idle()
        assert (before["closed"], before["raced"]) == (0, 0)
        await_true("what is idle is closed", lambda: lab.idle()["closed"] > 0, TIMEOUT_S)
