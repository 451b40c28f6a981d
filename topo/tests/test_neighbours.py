"""Tests of new clients on a subnet of the switch: their first connection, and connections while no controller runs."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Generator
from contextlib import contextmanager

from topo.labs.web import Lab
from topo.plan.network import DOWNLOAD_CLIENT, VIP, WEB_PORT, Balance
from topo.testbed.namespaces import connect_in, tcp_counters
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import run_in
from topo.tests import needs
from topo.tests.fixtures import lab_fixture

pytestmark = needs.ROOT

CLIENTS = 20
INTERFACE = f"{DOWNLOAD_CLIENT.name}-eth0"
NEW = (f"10.0.{DOWNLOAD_CLIENT.subnet}.{number}" for number in itertools.count(50))
"""Addresses on the subnet of c2 that the switch has not resolved yet."""
PATIENCE_S = 10.0


lab = lab_fixture(lambda: Lab(switch_kind(), Balance("fixed", 1.0, 10.0)))


@contextmanager
def client(lab: Lab) -> Generator[str]:
    """Add a new address to c2, empty the ARP cache of c2, and yield the address."""
    pid, address = lab.pid(DOWNLOAD_CLIENT.name), next(NEW)
    run_in(pid, ["ip", "address", "add", f"{address}/24", "dev", INTERFACE])
    run_in(pid, ["ip", "neighbour", "flush", "dev", INTERFACE])
    try:
        yield address
    finally:
        run_in(pid, ["ip", "address", "del", f"{address}/24", "dev", INTERFACE])


def connects(lab: Lab, address: str) -> int:
    """Connect to the service and fetch a page; return the number of repeated SYNs."""
    pid = lab.pid(DOWNLOAD_CLIENT.name)
    before = tcp_counters(pid)["TCPSynRetrans"]
    with connect_in(pid, (str(VIP), WEB_PORT), PATIENCE_S, source=(address, 0)) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1")
    return tcp_counters(pid)["TCPSynRetrans"] - before


def test_first_connection_of_a_client_on_the_link_takes_one_syn(lab: Lab) -> None:
    for _ in range(CLIENTS):
        with client(lab) as address:
            assert connects(lab, address) == 0


def test_client_that_need_not_ask_for_the_router_is_found_while_its_answer_waits(lab: Lab) -> None:
    gateway = str(DOWNLOAD_CLIENT.gateway.ip)
    router = ["lladdr", DOWNLOAD_CLIENT.gateway_mac, "dev", INTERFACE, "nud", "permanent"]
    for _ in range(CLIENTS):
        with client(lab) as address:
            lab.call(DOWNLOAD_CLIENT.name, "ip", "neighbour", "replace", gateway, *router)
            try:
                assert connects(lab, address) == 0
            finally:
                lab.call(DOWNLOAD_CLIENT.name, "ip", "neighbour", "del", gateway, "dev", INTERFACE)


def test_known_clients_connect_while_no_controller_runs(lab: Lab) -> None:
    assert lab.controller.process is not None
    with client(lab) as known:
        assert connects(lab, known) == 0
        os.kill(lab.controller.process.pid, signal.SIGSTOP)
        try:
            assert [connects(lab, known) for _ in range(CLIENTS)] == [0] * CLIENTS
        finally:
            os.kill(lab.controller.process.pid, signal.SIGCONT)
