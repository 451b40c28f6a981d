"""Tests of cases in which other content switches fail, with real hosts, switch, controller and agents; clients compare
every byte.

Segments that a host's kernel never sends are tested in `agent/tests/suite`. With `FULL=1` in the environment
clients send 10,000 requests on 100 connections instead of 1,000 on 20.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import struct
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from topo.plan.content import GROUPS, S1, S2, S3
from topo.plan.network import LOAD_CLIENT, WEB_PORT, HostPlan
from topo.testbed.namespaces import connect_in
from topo.testbed.processes import await_true, run_in
from topo.tests import answering, needs
from topo.tests.answering import AnsweringLab, outcome_of
from topo.tests.server import body, keep_alive

pytestmark = needs.AGENTS
lab = pytest.fixture(scope="module")(answering.running)

CONNECTIONS, REQUESTS = (100, 100) if os.environ.get("FULL") else (20, 50)
IMAGES = {server.name for server in GROUPS["images"]}
PATHS = ("/images", "/fast", "/page")
PATIENCE_S = 10.0
WAIT_S = 2.0
"""Default of the option `limits.wait_s`: seconds within which a client's request must be complete."""
KEPT_S = 4.5
"""Seconds in which four keepalive probes are sent, one per second; two unanswered probes end a connection."""
UPLOAD = body(7, 10 << 20)
XML = "Content-Type: text/xml\r\n"
ORDER = b"<order>" + b" " * 20_000 + b"<total>6000</total></order>"


class Client:
    """A connection from the load client c1 to the service."""

    def __init__(self, lab: AnsweringLab) -> None:
        self.socket = connect_in(lab.pid(LOAD_CLIENT.name), (str(lab.target), WEB_PORT), PATIENCE_S)
        self._came = b""

    def say(self, *pieces: bytes) -> None:
        """Send the pieces, one after another."""
        for piece in pieces:
            self.socket.sendall(piece)

    def hear(self, end: bytes) -> bytes:
        """Receive up to and including ``end``; return the bytes before ``end``."""
        while end not in self._came:
            more = self.socket.recv(1 << 16)
            assert more, self._came
            self._came += more
        heard, _, self._came = self._came.partition(end)
        return heard

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Receive the next answer; return its status, header fields and body."""
        first, *lines = self.hear(b"\r\n\r\n").decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines)
        while len(self._came) < (length := int(fields.get("Content-Length", 0))):
            more = self.socket.recv(1 << 16)
            assert more, self._came
            self._came += more
        whole, self._came = self._came[:length], self._came[length:]
        return int(first.split(" ")[1]), fields, whole


@contextmanager
def connected(lab: AnsweringLab) -> Generator[Client]:
    client = Client(lab)
    with closing(client.socket):
        yield client


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: shop\r\n\r\n".encode()


def refusals(lab: AnsweringLab) -> dict[str, int]:
    (shop, *_) = lab.controller.ask(command="status")["services"]
    return shop["content"]["refused"]


def held(lab: AnsweringLab) -> int:
    """Return the number of connections that the agents report."""
    (shop, *_) = lab.controller.ask(command="status")["services"]
    return sum(agent["connections"] for agent in shop["content"]["agents"])


@pytest.mark.parametrize("pipelined", [1, 7])
def test_each_request_of_a_connection_has_its_own_group(lab: AnsweringLab, pipelined: int) -> None:
    size: dict[str, Any] = {"connections": CONNECTIONS, "at_once": CONNECTIONS, "requests": REQUESTS}
    outcome = outcome_of(lab.ask(*PATHS, **size, pipelined=pipelined))
    assert (outcome.wrong, outcome.broken, outcome.answered) == ([], {}, CONNECTIONS * REQUESTS)
    assert set(outcome.servers["/images"]) <= IMAGES
    assert set(outcome.servers["/fast"]) == {S3.name}
    # The agents have no connections left after the clients have ended.
    await_true("agents hold nothing", lambda: held(lab) == 0, 3.0)


def test_late_copies_of_segments_take_no_connection_back(lab: AnsweringLab) -> None:
    """An agent changes servers, and copies of the former server's last segments arrive after that server's connection
    was reset. All answers are correct."""
    copying = [lab.start_late_copies(server) for server in (S1, S2, S3)]
    for seed in range(1, 6):
        replies = outcome_of(lab.ask(*PATHS, connections=20, requests=50, pipelined=7, seed=seed))
        assert (replies.wrong, replies.broken, replies.answered) == ([], {}, 1000), f"seed {seed}"
        assert set(replies.servers["/images"]) <= IMAGES, f"seed {seed}: {replies.servers}"
        assert set(replies.servers["/fast"]) == {S3.name}, f"seed {seed}: {replies.servers}"
    for process in copying:
        process.require_running()
        process.stop()


def test_two_gets_for_different_groups_in_one_segment(lab: AnsweringLab) -> None:
    with connected(lab) as client:
        client.say(get("/images?seed=1&bytes=5000") + get("/fast?seed=2&bytes=5000"))
        answers = [client.answer() for _ in range(2)]
    assert [whole for _, _, whole in answers] == [body(1, 5000), body(2, 5000)]
    assert answers[0][1]["X-Server"] in IMAGES
    assert answers[1][1]["X-Server"] == S3.name


@pytest.mark.parametrize("path", ["/fast", "/stay/fast"])
def test_client_half_closes_and_the_answer_comes_later(lab: AnsweringLab, path: str) -> None:
    with connected(lab) as client:
        client.say(get(f"{path}?seed=3&bytes=200000&wait={WAIT_S + 0.5}"))
        client.socket.shutdown(socket.SHUT_WR)
        assert client.answer()[::2] == (200, body(3, 200_000))
        assert client.socket.recv(1) == b""


@pytest.mark.parametrize("where", ["headers", "body"])
def test_expect_100_continue(lab: AnsweringLab, where: str) -> None:
    fields = XML if where == "body" else ""
    path = "/order" if where == "body" else "/stay/fast"
    head = f"POST {path} HTTP/1.1\r\nHost: shop\r\n{fields}Expect: 100-continue\r\nContent-Length: {len(ORDER)}\r\n\r\n"
    with connected(lab) as client:
        client.say(head.encode())
        assert client.hear(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        client.say(ORDER)
        status, fields, digest = client.answer()
        if where == "body" and status == 100:  # from the server; the first was the agent's
            status, fields, digest = client.answer()
    assert (status, fields["X-Server"], digest) == (200, S3.name, hashlib.sha256(ORDER).hexdigest().encode())


def test_chunked_upload_with_a_rule_on_the_body(lab: AnsweringLab) -> None:
    chunks = [ORDER[at : at + 1999] for at in range(0, len(ORDER), 1999)] + [b""]
    raw = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    with connected(lab) as client:
        client.say(f"POST /order HTTP/1.1\r\nHost: shop\r\n{XML}Transfer-Encoding: chunked\r\n\r\n".encode(), raw)
        status, fields, digest = client.answer()
    assert (status, fields["X-Server"], digest) == (200, S3.name, hashlib.sha256(ORDER).hexdigest().encode())


def test_body_above_its_limit_loses_nothing(lab: AnsweringLab) -> None:
    order = b"<order>" + b" " * 300_000 + b"<total>6000</total></order>"
    with connected(lab) as client:
        client.say(f"POST /order HTTP/1.1\r\nHost: shop\r\n{XML}Content-Length: {len(order)}\r\n\r\n".encode(), order)
        status, _, digest = client.answer()
    assert (status, digest) == (200, hashlib.sha256(order).hexdigest().encode())


@pytest.mark.parametrize("head", ["CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "Upgrade"])
def test_connect_and_upgrade_are_opaque(lab: AnsweringLab, head: str) -> None:
    upgrade = "GET /fast HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    with connected(lab) as client:
        client.say((upgrade if head == "Upgrade" else head).encode())
        assert client.answer()[0] in (101, 200)
        # After the upgrade, bytes that look like a request for another group are no request.
        client.say(get("/images"), UPLOAD[:200_000])
        client.hear(get("/images"))
        client.say(b"end.")
        assert client.hear(b"end.") == UPLOAD[:200_000]


@pytest.fixture
def guarding(lab: AnsweringLab) -> Iterator[AnsweringLab]:
    """Yield the lab with an additional rule that refuses requests for paths below /stay/admin by status 403."""
    configuration = lab.controller.configuration
    lab.controller.reload(lab.with_rule({"name": "admin", "match": {"path": {"prefix": "/stay/admin"}}, "refuse": 403}))
    yield lab
    lab.controller.reload(configuration)


def test_nothing_passes_unread_where_a_rule_refuses(guarding: AnsweringLab) -> None:
    with connected(guarding) as client:
        client.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert client.answer()[0] == 505
    with connected(guarding) as client:
        # All requests of the connection go to the server that was selected first, but the agent checks every request.
        servers: set[str] = set()
        for path in ("/stay/fast", "/stay/images", "/images"):
            client.say(get(path))
            status, fields, _ = client.answer()
            assert status == 200
            servers.add(fields["X-Server"])
        assert len(servers) == 1
        client.say(get("/stay/admin"))
        assert client.answer()[0] == 403
    with connected(guarding) as client:
        client.say(get("/stay/images"), get("/stay/admin"))
        assert [client.answer()[0] for _ in range(2)] == [200, 403]
    with connected(guarding) as client:
        client.say(b"GET /fast HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert client.answer()[0] == 502


def test_one_byte_is_408_and_others_do_not_wait(lab: AnsweringLab) -> None:
    slow = [Client(lab) for _ in range(20)]
    for client in slow:
        client.say(b"G")
    began = time.monotonic()
    with connected(lab) as client:
        client.say(get("/fast?bytes=9&seed=4"))
        assert client.answer()[::2] == (200, body(4, 9))
    assert {client.answer()[0] for client in slow} == {408}
    assert time.monotonic() - began >= WAIT_S - 0.5
    for client in slow:
        client.socket.close()


def test_a_server_that_refuses_or_is_silent(lab: AnsweringLab) -> None:
    before = refusals(lab)
    lab.servers[S3.name].stop()
    with connected(lab) as client:
        client.say(get("/fast"))
        assert client.answer()[0] == 503
    lab.servers[S3.name] = lab.start_server(S3)
    drop = ["-p", "tcp", "--dport", str(WEB_PORT), "-j", "DROP"]
    lab.call(S3.name, "iptables", "-A", "INPUT", *drop)
    try:
        with connected(lab) as client:
            client.say(get("/fast"))
            assert client.answer()[0] == 503
        # After a client has reset its connection before the answer, the agents have no connection left.
        with connected(lab) as client:
            client.say(get("/fast"))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        lab.call(S3.name, "iptables", "-D", "INPUT", *drop)
    with connected(lab) as client:
        client.say(get("/fast?bytes=9&seed=5"))
        assert client.answer()[::2] == (200, body(5, 9))

    def refused() -> bool:
        now = refusals(lab)
        return all(now.get(why, 0) == before.get(why, 0) + 1 for why in ("server_refused", "no_server"))

    await_true("both are counted once", refused, 3.0)


def behind_synproxy(lab: AnsweringLab, action: str) -> None:
    """Add (action -A) or delete (-D) iptables rules by which the kernel of S3 answers SYNs by cookies with a window of
    0, and opens the window later."""
    pid, to_server = lab.pid(S3.name), ["-p", "tcp", "--dport", str(WEB_PORT)]
    state = ["-m", "state", "--state"]
    run_in(pid, ["sysctl", "-q", "-w", "net.netfilter.nf_conntrack_tcp_loose=0"])
    for rule in (
        ["-t", "raw", action, "PREROUTING", *to_server, "--syn", "-j", "CT", "--notrack"],
        [action, "INPUT", *to_server, *state, "INVALID,UNTRACKED", "-j", "SYNPROXY", "--sack-perm", "--mss", "1460"],
        [action, "INPUT", *to_server, *state, "INVALID", "-j", "DROP"],
    ):
        run_in(pid, ["iptables", *rule])


def test_a_server_behind_synproxy_closes_no_window_but_its_own(lab: AnsweringLab) -> None:
    behind_synproxy(lab, "-A")
    try:
        for path in ("/fast", "/stay/fast", "/images", "/stay/images", "/fast"):
            for seed in range(3):
                with connected(lab) as client:
                    client.say(get(f"{path}?bytes=5000&seed={seed}"))
                    assert client.answer()[::2] == (200, body(seed, 5000)), path
    finally:
        behind_synproxy(lab, "-D")


@pytest.mark.parametrize("path", ["/images", "/stay/images"])
def test_pool_with_window_scales_7_and_10(lab: AnsweringLab, path: str) -> None:
    """Servers with different window scales receive uploads completely. If Mininet has set net.core.rmem_max to 16 MiB,
    the scales are 9 and 10."""
    sizes = {S1: 6 << 20, S2: 32 << 20}
    of_all = int(Path("/proc/sys/net/core/rmem_max").read_text())
    wanted = {str(max(size, of_all).bit_length() - 16) for size in sizes.values()}
    for server, largest in sizes.items():
        lab.call(server.name, "sysctl", "-q", "-w", f"net.ipv4.tcp_rmem=4096 131072 {largest}")
    digest = hashlib.sha256(UPLOAD).hexdigest().encode()
    scales: set[str] = set()
    for _ in range(20):
        with connected(lab) as client:
            client.say(f"PUT {path} HTTP/1.1\r\nHost: shop\r\nContent-Length: {len(UPLOAD)}\r\n\r\n".encode(), UPLOAD)
            status, fields, received = client.answer()
        assert (status, received) == (200, digest)
        scales.add(fields["X-Scale"])
        if scales == wanted:
            assert len(scales) == len(sizes)
            return
    raise AssertionError(f"servers with scales {scales} were met, not {wanted}")


@pytest.mark.parametrize("path", ["/fast", "/stay/fast"])
def test_an_upload_to_a_slow_server_with_a_small_window(lab: AnsweringLab, path: str) -> None:
    lab.call(S3.name, "sysctl", "-q", "-w", "net.ipv4.tcp_rmem=4096 8192 16384")
    head = f"PUT {path}?pace=0.01 HTTP/1.1\r\nHost: shop\r\nContent-Length: {len(UPLOAD)}\r\n\r\n"
    with connected(lab) as client:
        client.say(head.encode(), UPLOAD)
        status, _, received = client.answer()
    assert (status, received) == (200, hashlib.sha256(UPLOAD).hexdigest().encode())


def test_keepalives_are_answered_at_every_moment(lab: AnsweringLab) -> None:
    """A client's keepalive probes are answered in every state: by the agent before the first request, by the server to
    which the agent forwards them between two requests, and by the server directly after the splice."""
    moments = (None, "/fast?bytes=9&seed=1", "/stay/fast?bytes=9&seed=1")
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(lab)) for _ in moments]
        for client, path in zip(clients, moments, strict=True):
            keep_alive(client.socket, probes=2)
            if path is not None:
                client.say(get(path))
                assert client.answer()[::2] == (200, body(1, 9))
        time.sleep(KEPT_S)
        for client in clients:
            client.say(get("/fast?bytes=9&seed=2"))
            assert client.answer()[::2] == (200, body(2, 9))


NAMES = {S1: "a.example", S3: "b.example"}
"""The names (SNI) of the TLS servers."""
SECURE = "10.0.0.111"
MANY_PROTOCOLS = [f"protocol-{number}" for number in range(150)]
"""Names of ALPN protocols that make a ClientHello longer than one segment."""


def secured(lab: AnsweringLab) -> Mapping[str, Any]:
    """Return the lab's configuration with an additional service that is switched by the name in the ClientHello."""
    configuration = lab.controller.configuration
    content = {
        "protocol": "tls",
        "agents": configuration["services"][0]["content"]["agents"],
        "default": {"to": S1.name},
        "rules": [{"name": "b", "match": {"sni": NAMES[S3]}, "to": S3.name}],
    }
    secure = {"name": "secure", "address": SECURE, "port": 443, "content": content}
    groups = [
        {
            "name": server.name,
            "address": f"10.0.9.{20 + place}",
            "port": 443,
            "servers": [{"name": f"tls-{server.name}", "address": str(server.address), "port": 443}],
        }
        for place, server in enumerate(NAMES)
    ]
    return {**configuration, "services": [*configuration["services"], secure, *groups]}


def start_tls(lab: AnsweringLab, server: HostPlan, directory: Path) -> bytes:
    """Start a TLS server; return its certificate once it listens."""
    files = [str(directory / f"{server.name}.{kind}") for kind in ("key", "cert")]
    subject = ["-subj", f"/CN={server.name}", "-days", "2"]
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject]
    run_in(None, [*make, "-keyout", files[0], "-out", files[1]])
    serve = ["openssl", "s_server", "-accept", "443", "-key", files[0], "-cert", files[1], "-www"]
    lab.await_listening(lab.start(f"TLS of {server.name}", serve, server.name), server.name, 443)
    return ssl.PEM_cert_to_DER_cert(Path(files[1]).read_text())


def test_tls_goes_by_the_name_in_its_hello(lab: AnsweringLab, tmp_path: Path) -> None:
    certificates = {server: start_tls(lab, server, tmp_path) for server in NAMES}
    lab.controller.reload(secured(lab))
    for name, protocols, server in (
        (NAMES[S1], [], S1),
        (NAMES[S3], [], S3),
        (None, [], S1),
        (NAMES[S3], MANY_PROTOCOLS, S3),
    ):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(protocols)
        plain = connect_in(lab.pid(LOAD_CLIENT.name), (SECURE, 443), PATIENCE_S)
        with plain, context.wrap_socket(plain, server_hostname=name) as client:
            assert client.getpeercert(binary_form=True) == certificates[server]
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert client.recv(15) == b"HTTP/1.0 200 ok"
