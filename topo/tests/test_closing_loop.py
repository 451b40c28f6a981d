"""Tests that the controller's loop closes idle connections of Apache's prefork module as configured: single
connections, and thousands.

With `FULL=1` in the environment 10,000 connections are closed instead of 2,000.
"""

from __future__ import annotations

import math
import os
import socket
import time
from contextlib import ExitStack

from topo.labs.closing import PAGE, ClosingLab, expected_races
from topo.labs.webservers import WebServer
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.fixtures import lab_fixture
from topo.tests.test_closing import asks

pytestmark = needs.LONG

KEPT_S = 300
"""Apache's KeepAliveTimeout in seconds, so long that Apache closes no connection itself."""
TIMEOUT_S = 30.0
WORKERS = 5
ROOM = {"limit": WORKERS, "threshold": 0.8, "release": 0.75, "least_age_s": 0.1}
"""Options for closing: above 4 connections (0.8 of 5) the controller closes idle connections until 3 are left."""
APART_S = 0.3
"""Seconds between two connections, so that their order by idle time is certain. The idle time begins with the client's
acknowledgement, which may be delayed."""

CLOSINGS = 10_000 if os.environ.get("FULL") else 2_000
CROWD_WORKERS = 40
CROWD_IDLE = {"limit": CROWD_WORKERS, "threshold": 0.8, "least_age_s": 0.1, "rate": 1000}
USERS, THINK_S, ROUND_S = 150, 1.0, 15.0
MOST_ROUNDS = 12 * CLOSINGS // 2_000
RACES = 1.5


lab = lab_fixture(lambda: ClosingLab(WebServer("prefork", WORKERS, KEPT_S), ROOM), "function")


def await_closed(lab: ClosingLab, closed: int) -> None:
    """Return once the controller's status reports ``closed`` closed connections."""
    await_true(f"{closed} are closed", lambda: lab.idle()["closed"] == closed, TIMEOUT_S)


def test_above_the_threshold_the_longest_idle_go_and_new_users_get_in(lab: ClosingLab) -> None:
    with ExitStack() as stack:

        def user() -> socket.socket:
            made = stack.enter_context(lab.connect(TIMEOUT_S))
            assert asks(made) == PAGE
            time.sleep(APART_S)
            return made

        first, second, third, fourth = (user() for _ in range(4))
        await_true("four are idle", lambda: lab.idle()["idle"] == 4, TIMEOUT_S)
        assert asks(first) == PAGE
        time.sleep(APART_S)
        assert (lab.idle()["open"], lab.idle()["asked"]) == (4, 0), "at the threshold all stay"
        fifth = user()
        await_closed(lab, 2)
        assert (second.recv(1), third.recv(1)) == (b"", b""), "the longest idle"
        for stays in (first, fourth, fifth):
            assert asks(stays) == PAGE
        for more in range(2 * WORKERS):
            user()
            await_true(f"{more}: there is room", lambda: lab.idle()["open"] <= 4, TIMEOUT_S)
        shown = lab.idle()
        assert shown["closed"] >= 2 * WORKERS
        assert (shown["limit"], shown["taken_back"], shown["raced"]) == (WORKERS, 0, 0)


def test_of_thousands_that_are_closed_no_page_is_lost() -> None:
    """Users with round trips of 5 to 80 ms repeat requests as HTTP permits. No page is lost, and few requests cross the
    end of their connection."""
    seen = {"pages": 0, "raced": 0, "expected": 0.0}
    with ClosingLab(WebServer("prefork", CROWD_WORKERS, KEPT_S), CROWD_IDLE) as lab:
        shown = lab.idle()
        for number in range(MOST_ROUNDS):
            users = lab.users(users=USERS, think=THINK_S, objects=1, session=1000, seconds=ROUND_S, seed=number)
            pages = users.result(ROUND_S + TIMEOUT_S)
            assert pages["lost"] == []
            seen["pages"] += pages["pages"]
            seen["raced"] += sum(pages["raced"].values())
            seen["expected"] += expected_races(pages, THINK_S)
            if (shown := lab.idle())["closed"] >= CLOSINGS:
                break
        print(f"{shown}; {seen}")
        assert shown["closed"] >= CLOSINGS
        assert seen["pages"] > CLOSINGS
        chance = 3 * math.sqrt(seen["expected"])
        assert max(seen["raced"], shown["raced"]) <= max(RACES * seen["expected"], seen["expected"] + chance)
