"""Tests of caps on servers' open connections with real TCP. Connections beyond a server's cap go to the other servers.
Once all servers are full, the switch refuses new connections (by RSTs, as configured) until a server has room.
Established connections stay open.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from sluice.features.balance.spill import READ_S

from topo.plan.network import SERVER_NAMES
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.fixtures import lab_fixture
from topo.tests.talking import TIMEOUT_S, Connection, TalkingLab, connect

pytestmark = needs.ROOT

FIRST, *REST = SERVER_NAMES
CAPS = {FIRST: 3, **dict.fromkeys(REST, 8)}
FULL = dict.fromkeys(SERVER_NAMES, "full")
CROWD, CROWD_CAPS = 600, {FIRST: 20, **dict.fromkeys(REST, 400)}


lab = lab_fixture(TalkingLab)


class Users:
    """Connections of the load client that stay open."""

    def __init__(self, lab: TalkingLab, caps: Mapping[str, int]) -> None:
        self._lab, self._caps = lab, caps
        self.made: list[Connection] = []

    def connect(self) -> Connection | None:
        """Open a connection; return None if it is refused."""
        try:
            self.made.append(connect(self._lab, self._lab.port()))
        except ConnectionRefusedError:
            return None
        return self.made[-1]

    def seen(self) -> Connection | None:
        """Open a connection like `connect`. If it fills its server, return only after the controller has counted it."""
        connection = self.connect()
        if connection is not None and self.counts[connection.server] >= self._caps.get(connection.server, 10**6):
            await_true(
                f"{connection.server} is full", lambda: states(self._lab)[connection.server] == "full", TIMEOUT_S
            )
        return connection

    def leave(self, server: str) -> None:
        """Close a connection to a server; return once the controller has counted the close."""
        connection = next(user for user in self.made if user.server == server)
        self.made.remove(connection)
        connection.socket.close()
        await_true("it has left", lambda: opened(self._lab)[server] == self.counts[server], TIMEOUT_S)

    @property
    def counts(self) -> Counter[str]:
        return Counter(user.server for user in self.made)

    @property
    def lost(self) -> list[int]:
        """The ports of connections whose server no longer answers."""
        return [user.port for user in self.made if not user.holds()]


def service(lab: TalkingLab) -> dict[str, Any]:
    return lab.controller.ask(command="status")["services"][0]


def states(lab: TalkingLab) -> dict[str, str]:
    return {server["name"]: server["state"] for server in service(lab)["servers"]}


def opened(lab: TalkingLab) -> dict[str, int]:
    return {server["name"]: server["open"] for server in service(lab)["servers"]}


def cap(wanted: dict[str, Any], caps: Mapping[str, int]) -> None:
    wanted["news"] = {"mode": "static", "refuse": "reset"}
    for server in wanted["services"][0]["servers"]:
        server.pop("max_connections", None)
        if server["name"] in caps:
            server["max_connections"] = caps[server["name"]]


@contextmanager
def capped(lab: TalkingLab, caps: Mapping[str, int]) -> Generator[Users]:
    """Set caps of open connections by server while the context is active, and yield users; at the end close all
    connections."""
    users = Users(lab, caps)
    with lab.configured(lambda wanted: cap(wanted, caps)):
        try:
            yield users
        finally:
            for connection in users.made:
                connection.socket.close()
            await_true("all have left", lambda: not any(opened(lab).values()), TIMEOUT_S)


def test_nothing_is_refused_until_all_are_full_and_then_until_there_is_room(lab: TalkingLab) -> None:
    with capped(lab, CAPS) as users:
        for _ in range(sum(CAPS.values())):
            assert users.seen() is not None, f"refused at {users.counts} of {CAPS}"
        assert users.counts == CAPS, "with a look between, nobody is beyond"
        assert (states(lab), service(lab)["refuses"]) == (FULL, True)
        before = service(lab)["refused"]
        assert [users.connect() for _ in range(5)] == [None] * 5
        assert service(lab)["refused"] == before + 5
        assert users.lost == []
        users.leave(REST[0])
        await_true("admission again", lambda: not service(lab)["refuses"], TIMEOUT_S)
        connection = users.seen()
        assert connection is not None and connection.server == REST[0]
        assert users.connect() is None
        users.leave(FIRST)
        await_true("admission again", lambda: not service(lab)["refuses"], TIMEOUT_S)
        assert users.seen() is not None and users.counts == CAPS and users.lost == []


def test_a_server_without_a_cap_takes_the_rest(lab: TalkingLab) -> None:
    with capped(lab, {FIRST: 3}) as users:
        for _ in range(40):
            assert users.seen() is not None
        assert users.counts[FIRST] == 3 and users.lost == []


def test_one_that_drains_is_no_room_and_a_cap_is_lowered_below_what_is_open(lab: TalkingLab) -> None:
    with capped(lab, CAPS) as users, lab.draining(REST[1]):
        for _ in range(CAPS[FIRST] + CAPS[REST[0]]):
            assert users.seen() is not None
        assert users.connect() is None
        lower = {**CAPS, REST[0]: 2}
        with lab.configured(lambda wanted: cap(wanted, lower)):
            users.leave(REST[0])
            assert states(lab)[REST[0]] == "full" and users.connect() is None and users.lost == []
            lab.controller.drain(REST[1], drain=False)
            connection = users.seen()
            assert connection is not None and connection.server == REST[1]
            lab.controller.drain(REST[1], drain=True)
        assert users.lost == []


def test_a_controller_that_is_killed_finds_the_full_servers(lab: TalkingLab) -> None:
    with capped(lab, CAPS) as users:
        while users.counts[FIRST] < CAPS[FIRST]:
            assert users.seen() is not None
        process = lab.controller.process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT_S)
        for _ in range(4):
            connection = users.connect()
            assert connection is not None and connection.server != FIRST, "the switch goes on without"
        lab.controller.start()
        assert states(lab)[FIRST] == "full" and users.lost == []
        while not service(lab)["refuses"]:
            assert users.seen() is not None
        assert users.counts == CAPS
        users.leave(FIRST)
        await_true("admission again", lambda: not service(lab)["refuses"], TIMEOUT_S)
        connection = users.connect()
        assert connection is not None and connection.server == FIRST, "its share is not lost by the restart"


@pytest.mark.calm
def test_beyond_its_cap_a_server_gets_what_arrives_within_a_look(lab: TalkingLab) -> None:
    """Users connect one after another without pauses. Beyond its cap, a server receives only connections made within
    twice READ_S (the time between two readings of the switch) after the server has reached its cap."""
    with capped(lab, CROWD_CAPS) as users:
        moments: list[float] = []
        began = time.monotonic()
        for _ in range(CROWD):
            connection = users.connect()
            assert connection is not None
            if connection.server == FIRST:
                moments.append(time.monotonic())
        beyond = moments[CROWD_CAPS[FIRST] :]
        rate = CROWD / (time.monotonic() - began)
        print(f"{len(beyond)} beyond a cap of {CROWD_CAPS[FIRST]}, at {rate:.0f} connections/s to the service")
        assert all(moment - moments[CROWD_CAPS[FIRST] - 1] < 2 * READ_S for moment in beyond)
