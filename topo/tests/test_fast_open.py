"""Tests of TCP Fast Open (RFC 7413): data in a client's SYN does not bypass the rules, even if servers accept the data
without a cookie."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from topo.labs.content import server_of
from topo.plan.content import GROUPS, S3, SHOP_ADDRESS
from topo.plan.network import LOAD_CLIENT, WEB_PORT, HostPlan
from topo.testbed.namespaces import socket_in, tcp_counters
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import Process, await_true, run_in
from topo.tests import needs
from topo.tests.answering import AnsweringLab

pytestmark = needs.AGENTS

SERVERS_SETTING, CLIENTS_SETTING = 0x603, 0x5
"""Values of net.ipv4.tcp_fastopen: all listening sockets of servers accept data in SYNs, even without a cookie; clients
send data without a cookie."""
IMAGES = {server.name for server in GROUPS["images"]}
RULES = [{"name": group, "match": {"path": {"prefix": f"/{group}"}}, "to": group} for group in ("images", "fast")]
PATIENCE_S = 10.0
HEARD_S = 5.0


class FastOpenLab(AnsweringLab):
    """A lab whose servers accept data in SYNs."""

    def start_server(self, server: HostPlan) -> Process:
        """Set the sysctl, then start a server: the kernel decides at ``listen`` whether the socket accepts data in
        SYNs."""
        self.call(server.name, "sysctl", "-q", "-w", f"net.ipv4.tcp_fastopen={SERVERS_SETTING}")
        return super().start_server(server)


@pytest.fixture(scope="module")
def lab() -> Iterator[FastOpenLab]:
    with FastOpenLab(switch_kind(), content={"rules": RULES}) as running:
        client = running.pid(LOAD_CLIENT.name)
        run_in(client, ["sysctl", "-q", "-w", f"net.ipv4.tcp_fastopen={CLIENTS_SETTING}"])
        yield running


def asked(lab: FastOpenLab, path: str, *, in_syn: bool) -> str:
    """Send a request (``in_syn``: as data in the SYN); return the name of the server that answers."""
    request = f"GET {path}?bytes=10 HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n".encode()
    where = (str(SHOP_ADDRESS), WEB_PORT)
    with closing(socket_in(lab.pid(LOAD_CLIENT.name), socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(PATIENCE_S)
        if in_syn:
            assert connection.sendto(request, socket.MSG_FASTOPEN, where) == len(request)
        else:
            connection.connect(where)
            connection.sendall(request)
        answer = b""
        while data := connection.recv(1 << 16):
            answer += data
    return server_of(answer.decode("latin-1"))


def guesses(lab: FastOpenLab) -> int:
    """Return the number of right guesses by all agents."""
    return int(lab.controller.ask(command="status")["services"][0]["content"]["counts"]["guesses_right"])


def taken(lab: FastOpenLab) -> int:
    """Return the number of SYNs whose data a server has accepted."""
    return sum(tcp_counters(lab.pid(server.name))["TCPFastOpenPassive"] for server in lab.pool.servers)


def test_request_in_a_syn_of_a_remembered_client_goes_by_the_rules(lab: FastOpenLab) -> None:
    assert asked(lab, "/images", in_syn=False) in IMAGES
    before = guesses(lab)
    assert asked(lab, "/images", in_syn=False) in IMAGES
    await_true("the client to be remembered", lambda: guesses(lab) > before, HEARD_S)
    client = lab.pid(LOAD_CLIENT.name)
    refused = tcp_counters(client)["TCPFastOpenActiveFail"]
    assert asked(lab, "/fast", in_syn=True) == S3.name
    assert asked(lab, "/images", in_syn=True) in IMAGES
    assert tcp_counters(client)["TCPFastOpenActiveFail"] == refused + 2, "the client has sent no data in its SYNs"
    assert taken(lab) == 0
