"""Tests of content switching of TLS and mail with real clients and servers: the server that the rule selects answers
completely."""

from __future__ import annotations

import imaplib
import poplib
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from topo.labs.protocols import DOVECOT, PASSWORD, ProtocolsLab
from topo.plan.network import LOAD_CLIENT
from topo.plan.protocols import IMAP, NAMED, POP3, SMTP, TLS, USER, ProtocolPlan
from topo.testbed.namespaces import connect_in
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import command_in
from topo.tests import needs
from topo.tests.fixtures import lab_fixture

NEEDED = {"swaks": shutil.which("swaks"), "dovecot": Path(DOVECOT).exists(), "openssl": shutil.which("openssl")}
pytestmark = [
    *needs.AGENTS,
    pytest.mark.skipif(
        not all(NEEDED.values()), reason=f"not installed: {[n for n, has in NEEDED.items() if not has]}"
    ),
]

TIMEOUT_S = 20
PEOPLE = {f"b@{NAMED}": "s2", "a@a.example": "s1"}
"""The expected server by recipient of a mail (`PEOPLE`) and by user of a mailbox (`USERS`)."""
USERS = {USER: "s2", "ann": "s1"}


lab = lab_fixture(lambda: ProtocolsLab(switch_kind()))


def client(lab: ProtocolsLab, *command: str) -> tuple[int, str]:
    """Run a command in the client's namespace; return exit code and output."""
    argv = command_in(command, namespace_pid=lab.pid(LOAD_CLIENT.name))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def swaks(lab: ProtocolsLab, to: str, *options: str, sender: str = "x@y.example") -> tuple[int, str]:
    server = ("--server", f"{SMTP.address}:{SMTP.port}", "--timeout", f"{TIMEOUT_S}", "--helo", "client.example")
    return client(lab, "swaks", *server, "--from", sender, "--to", to, "--suppress-data", *options)


def connected(lab: ProtocolsLab, plan: ProtocolPlan) -> socket.socket:
    """Return a connection from the client to a service."""
    connection = connect_in(lab.pid(LOAD_CLIENT.name), (str(plan.address), plan.port), TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Imap(imaplib.IMAP4):
    """imaplib's client, with a socket in the lab's client namespace."""

    def __init__(self, lab: ProtocolsLab) -> None:
        self._lab = lab
        super().__init__(str(IMAP.address), IMAP.port)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        del timeout
        return connected(self._lab, IMAP)


class Pop3(poplib.POP3):
    """poplib's client, with a socket in the lab's client namespace."""

    def __init__(self, lab: ProtocolsLab) -> None:
        self._lab = lab
        super().__init__(str(POP3.address), POP3.port)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        del timeout
        return connected(self._lab, POP3)


@pytest.mark.parametrize(("person", "server"), PEOPLE.items())
@pytest.mark.parametrize("options", [(), ("--pipeline",), ("--tls",)], ids=["plain", "pipelined", "tls"])
def test_a_mail_goes_by_its_recipient(lab: ProtocolsLab, person: str, server: str, options: tuple[str, ...]) -> None:
    code, output = swaks(lab, person, *options)
    assert code == 0, output
    # After STARTTLS the agent cannot read the recipient, so the default rule selects the server.
    expected = "s1" if "--tls" in options else server
    assert re.findall(r"250 (\w+) got \d+", output) == [expected], output


def test_a_mail_of_a_megabyte(lab: ProtocolsLab) -> None:
    code, output = swaks(lab, f"b@{NAMED}", "--attach", "@/usr/bin/openssl")
    sizes = re.findall(r"250 s2 got (\d+)", output)
    assert code == 0, output
    assert int(sizes[0]) > Path("/usr/bin/openssl").stat().st_size


def test_a_recipient_that_the_server_refuses(lab: ProtocolsLab) -> None:
    code, output = swaks(lab, f"later@{NAMED}")
    assert code == 24, output
    assert "<** 451 4.7.1 s2 later" in output


def test_a_sender_that_the_server_refuses_is_refused_at_the_recipient(lab: ProtocolsLab) -> None:
    code, output = swaks(lab, f"b@{NAMED}", sender="nobody@y.example")
    assert code == 24, output
    assert "<-  250 2.1.0 OK" in output
    assert "<** 550 5.1.8 s2 takes nothing of nobody" in output


def test_curl_sends_a_mail(lab: ProtocolsLab) -> None:
    url = f"smtp://{SMTP.address}:{SMTP.port}/client.example"
    mail = ("--mail-from", "x@y.example", "--mail-rcpt", f"b@{NAMED}", "-T", "/etc/hostname")
    code, output = client(lab, "curl", "-sSv", "--max-time", f"{TIMEOUT_S}", url, *mail)
    assert code == 0, output
    assert "250 s2 got" in output


@pytest.mark.parametrize(("user", "server"), USERS.items())
def test_a_mailbox_by_imap(lab: ProtocolsLab, user: str, server: str) -> None:
    with Imap(lab) as mailbox:
        mailbox.login(user, PASSWORD)
        mailbox.select("INBOX", readonly=True)
        _, fields = mailbox.fetch("1", "(BODY[HEADER.FIELDS (SUBJECT)])")
        assert f"Subject: {server}" in str(fields)
    with Imap(lab) as mailbox:
        mailbox.authenticate("PLAIN", lambda _: f"\0{user}\0{PASSWORD}".encode())
        assert mailbox.select("INBOX", readonly=True)[0] == "OK"


@pytest.mark.parametrize(("user", "server"), USERS.items())
@pytest.mark.parametrize("url", [f"imap://{IMAP.address}/INBOX;MAILINDEX=1", f"pop3://{POP3.address}/1"])
def test_curl_reads_a_mail(lab: ProtocolsLab, url: str, user: str, server: str) -> None:
    code, output = client(lab, "curl", "-sS", "--max-time", f"{TIMEOUT_S}", "-u", f"{user}:{PASSWORD}", url)
    assert code == 0, output
    assert f"Subject: {server}" in output


def test_a_wrong_password_is_the_servers_to_refuse(lab: ProtocolsLab) -> None:
    with Imap(lab) as mailbox, pytest.raises(imaplib.IMAP4.error, match=r"AUTHENTICATIONFAILED"):
        mailbox.login(USER, "wrong")


@pytest.mark.parametrize(("user", "server"), USERS.items())
def test_a_mailbox_by_pop3(lab: ProtocolsLab, user: str, server: str) -> None:
    mailbox = Pop3(lab)
    assert "SASL" in mailbox.capa()
    mailbox.user(user)
    mailbox.pass_(PASSWORD)
    assert f"Subject: {server}".encode() in mailbox.retr(1)[1]
    mailbox.quit()


@pytest.mark.parametrize(("name", "server"), {NAMED: "s2", "www.b.example": "s1", None: "s1"}.items())
def test_a_tls_server_by_its_name(lab: ProtocolsLab, name: str | None, server: str) -> None:
    to = (
        ("--resolve", f"{name}:{TLS.port}:{TLS.address}", f"https://{name}/page")
        if name
        else (f"https://{TLS.address}/page",)
    )
    code, output = client(lab, "curl", "-skI", "--max-time", f"{TIMEOUT_S}", *to)
    assert code == 0, output
    assert f"X-Server: {server}" in output


@pytest.mark.parametrize(("name", "server"), {NAMED: "s2", "other.example": "s1"}.items())
@pytest.mark.parametrize("size", [100, 1000, 3000])
def test_a_hello_of_several_segments(lab: ProtocolsLab, name: str, server: str, size: int) -> None:
    """A ClientHello in several segments is switched by its server name. ALPN names make it as large as a ClientHello
    with an ML-KEM key."""
    protocols = ",".join(["http/1.1", *(f"{number:0>100}" for number in range(size // 100))])
    hello = ("-connect", f"{TLS.address}:{TLS.port}", "-servername", name, "-alpn", protocols)
    command = f"printf 'HEAD / HTTP/1.0\\r\\n\\r\\n' | timeout {TIMEOUT_S} openssl s_client -ign_eof {' '.join(hello)}"
    _, output = client(lab, "sh", "-c", command)
    assert f"X-Server: {server}" in output


def test_a_hello_byte_by_byte(lab: ProtocolsLab) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=NAMED)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    with connected(lab, TLS) as connection:
        for byte in hello:
            connection.sendall(bytes((byte,)))
        while True:
            incoming.write(connection.recv(1 << 16))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
        tls.write(b"HEAD / HTTP/1.0\r\n\r\n")
        connection.sendall(outgoing.read())
        answer = b""
        while b"\r\n\r\n" not in answer:
            incoming.write(connection.recv(1 << 16))
            with suppress(ssl.SSLWantReadError):
                answer += tls.read(1 << 16)
        assert b"X-Server: s2" in answer


def test_what_the_agents_have_seen(lab: ProtocolsLab) -> None:
    for agent in lab.agents.values():
        agent.require_running()
    status = lab.controller.ask(command="status")
    assert {"tls", "smtp", "imap", "pop3"} <= {service["name"] for service in status["services"]}
