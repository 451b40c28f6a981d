"""Tests of responses that pause for seconds while the controller closes idle connections: no response is cut off, even
before the controller has learned the length of pauses."""

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
"""Largest number of connections at the server. The idle connections alone exceed the threshold for closing."""


BYTES = 6_000
WHOLE = body(0, BYTES)


class PausingServer(WebServer):
    """The server of the lab's tests (`topo.tests.server`), used as the web server of the closing lab."""

    def files(self, directory: Path, address: str) -> Mapping[str, str]:
        """Return no files: the server needs no configuration."""
        del directory, address
        return {}

    def command(self, directory: Path) -> Sequence[str]:
        """Return the server's command line."""
        del directory
        return command(Server("server", str(SERVER.address)))


lab = lab_fixture(lambda: ClosingLab(PausingServer("pausing", 0, 0), {"limit": LIMIT, "rate": 1000}), "function")


def get(what: str, seconds: float) -> bytes:
    """Return a request; ``what`` is the server's parameter by which its answer pauses for ``seconds``."""
    return f"GET /?{what}={seconds:.2f}&bytes={BYTES} HTTP/1.1\r\nHost: {VIP}\r\n\r\n".encode()


def page(connection: socket.socket) -> bytes:
    """Read the next response and return its body."""
    response = HTTPResponse(connection)
    response.begin()
    return response.read()


def paused(lab: ClosingLab, seconds: float) -> bool:
    """Return whether a page arrives completely if the server pauses in the middle of the page, and then closes."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(get("pause", seconds))
        return page(connection) == WHOLE


def pipelined(lab: ClosingLab, seconds: float) -> bool:
    """Return whether two requests in one segment are both answered, the second one after a pause."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(get("wait", 0) + get("wait", seconds))
        received = b""
        while received.count(WHOLE) < 2 and (more := connection.recv(1 << 16)):
            received += more
        return received.count(WHOLE) == 2


def continued(lab: ClosingLab, seconds: float) -> bool:
    """Return whether a client is answered that receives 100 Continue, pauses, and then sends the body of its
    request."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(f"POST /?bytes={BYTES} HTTP/1.1\r\nHost: {VIP}\r\nExpect: 100-continue\r\n".encode())
        connection.sendall(b"Content-Length: 4\r\n\r\n")
        assert connection.recv(1 << 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
        time.sleep(seconds)
        connection.sendall(b"body")
        return page(connection) == WHOLE


def worked(lab: ClosingLab, seconds: float) -> bool:
    """Return whether a page arrives completely if the server pauses before the page."""
    with lab.connect(TIMEOUT_S) as connection:
        connection.sendall(get("wait", seconds))
        return page(connection) == WHOLE


def test_no_response_is_cut_off_that_pauses_and_what_is_idle_is_closed(lab: ClosingLab) -> None:
    """Responses pause while idle connections exceed the threshold all the time: only the idle connections are
    closed."""
    source = random.Random(5)
    with ExitStack() as stack:
        idle = [stack.enter_context(lab.connect(TIMEOUT_S)) for _ in range(IDLE)]
        for connection in idle:
            connection.sendall(get("wait", 0))
            assert page(connection) == WHOLE
        pauses = [LONGEST_S * (number + source.random()) / EVERY for number in range(EVERY)]
        asked = [(how, seconds) for how in (paused, pipelined, continued, worked) for seconds in pauses]
        with ThreadPoolExecutor(RESPONSES) as pool:
            running = [pool.submit(how, lab, seconds) for how, seconds in asked]
        whole = [future.result() for future in running]
        assert whole.count(False) == 0
        before = lab.idle()
        assert (before["closed"], before["raced"]) == (0, 0)
        await_true("what is idle is closed", lambda: lab.idle()["closed"] > 0, TIMEOUT_S)
