"""Tests of guesses with real curl, Apache and agents: a remembered client is connected to its last server at once, and
moved if the rules select another group."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from topo.labs.content import ContentLab, curl, server_of
from topo.labs.webservers import PAGE
from topo.plan.content import AGENTS, GROUPS, S3, SHOP_ADDRESS
from topo.plan.network import DOWNLOAD_CLIENT
from topo.testbed.namespaces import interface_packets
from topo.testbed.nodes import switch_kind
from topo.testbed.processes import await_true
from topo.tests import needs
from topo.tests.answering import FLOOD_SYNS, flood

pytestmark = needs.AGENTS

URL = f"http://{SHOP_ADDRESS}"
IMAGES = {server.name for server in GROUPS["images"]}
TOLD_S = 0.6
"""Seconds after which both agents have reported to the controller; they report twice per second."""
HEARD_S = 5.0
TIMES = 20


@pytest.fixture(scope="module")
def lab() -> Iterator[ContentLab]:
    with ContentLab(switch_kind()) as running:
        bought(running)  # the client is remembered from now on, with a server of the group `fast`
        yield running


def bought(lab: ContentLab, total: int = 60_000, path: str = "/buy", *, padding: int = 0) -> str:
    """Post a purchase of ``total``; return the name of the server that receives it."""
    body = f"{' ' * padding}<purchase><totalAmount>{total}</totalAmount></purchase>"
    options = ["-H", "Content-Type: text/xml", "-H", "Expect:", "--data-binary", body]
    return server_of(curl(lab, "-i", *options, URL + path))


def counts(lab: ContentLab) -> dict[str, int]:
    """Return the sums of the counts of both agents."""
    shop = lab.controller.ask(command="status")["services"][0]
    return dict(shop["content"]["counts"])


class Guesses:
    """Compares the agents' counts of right and wrong guesses since the object's creation with expected numbers."""

    def __init__(self, lab: ContentLab) -> None:
        self.lab = lab
        self.before = counts(lab)

    def are(self, right: int, wrong: int) -> None:
        wanted = {"guesses_right": right, "guesses_wrong": wrong, "guesses_reset": 0, "handshakes": 0}

        def is_counted() -> bool:
            now = counts(self.lab)
            return {name: now[name] - self.before[name] for name in wanted} == wanted

        await_true(f"{right} right and {wrong} wrong guesses, and no handshake of an agent", is_counted, HEARD_S)


def settled(lab: ContentLab) -> Guesses:
    """Wait until both agents have reported all events; return a `Guesses` that counts from now on."""
    last = counts(lab)

    def quiet() -> bool:
        nonlocal last
        before, last = last, counts(lab)
        return before == last

    time.sleep(TOLD_S)
    await_true("agents have reported everything", quiet, HEARD_S)
    return Guesses(lab)


def test_the_same_group_is_a_hit(lab: ContentLab) -> None:
    guesses = settled(lab)
    assert {bought(lab) for _ in range(3)} == {S3.name}
    guesses.are(right=3, wrong=0)


def test_another_group_is_a_miss(lab: ContentLab) -> None:
    guesses = settled(lab)
    assert {server_of(curl(lab, "-I", f"{URL}/{number}.gif")) for number in range(3)} <= IMAGES
    guesses.are(right=0, wrong=3)


def test_a_page_comes_whole_from_a_guessed_server_that_has_each_request(lab: ContentLab, tmp_path: Path) -> None:
    guesses = settled(lab)
    page = tmp_path / "page"
    for _ in range(3):
        assert server_of(curl(lab, "-D", "-", "-o", str(page), f"{URL}/{PAGE}")) == S3.name
        assert page.read_bytes() == (lab.files / PAGE).read_bytes()
    guesses.are(right=3, wrong=0)


def test_requests_of_one_guessed_connection_go_each_to_its_group(lab: ContentLab) -> None:
    guesses = settled(lab)
    paths = [f"{URL}/{number}.gif" if number % 2 else f"{URL}/{PAGE}" for number in range(10)]
    output = curl(lab, "-D", "-", *(word for path in paths for word in ("-o", "/dev/null", path)))
    servers = re.findall(r"^X-Server: (\w+)", output, re.MULTILINE)
    assert len(servers) == len(paths)
    assert servers[0] == S3.name
    assert {name for number, name in enumerate(servers) if number % 2} <= IMAGES
    guesses.are(right=1, wrong=0)


def test_a_request_of_many_segments(lab: ContentLab) -> None:
    guesses = settled(lab)
    assert bought(lab, padding=30_000) == S3.name
    guesses.are(right=1, wrong=0)
    assert bought(lab, 10, "/xmlprocess.pl", padding=30_000) in IMAGES
    guesses.are(right=1, wrong=1)


def test_an_upload_longer_than_any_window(lab: ContentLab, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(os.urandom(1 << 20) * 10)
    options = ("-o", "/dev/null", "-w", "%{http_code} %{size_upload}", "-H", "Expect:", "-X", "POST", "-T", str(upload))
    guesses = settled(lab)
    assert curl(lab, *options, f"{URL}/{PAGE}") == f"200 {10 << 20}"
    guesses.are(right=1, wrong=0)


def test_what_is_ambiguous_is_refused(lab: ContentLab) -> None:
    output = curl(lab, "-i", "-H", "Transfer-Encoding: chunked", "-H", "Content-Length: 4", "-d", "a", f"{URL}/{PAGE}")
    assert output.startswith("HTTP/1.1 400")


def packets(lab: ContentLab) -> int:
    """Return the number of packets that all agents have received."""
    return sum(interface_packets(lab.pid(agent.name))[f"{agent.name}-eth0"][0] for agent in AGENTS)


def test_later_connections_of_a_sticky_client_pass_no_agent(lab: ContentLab) -> None:
    first = server_of(curl(lab, "-I", f"{URL}/{PAGE}", host=DOWNLOAD_CLIENT))
    before = packets(lab)
    servers = {server_of(curl(lab, "-I", f"{URL}/{PAGE}", host=DOWNLOAD_CLIENT)) for _ in range(TIMES)}
    assert servers == {first}
    # An agent receives at least two packets of a connection that passes it. Other packets are occasional ARP answers of
    # the switch.
    assert packets(lab) - before < TIMES


def test_a_flood_of_syns_leaves_guesses_as_they_are(lab: ContentLab) -> None:
    guesses = settled(lab)
    before = counts(lab)["handshakes"]
    flooding, during = flood(lab), 0
    while flooding.exit_code() is None or not during:
        assert bought(lab) == S3.name
        during += 1
    wanted = before + FLOOD_SYNS // 2

    def is_counted() -> bool:
        now = counts(lab)
        right, wrong = (now[name] - guesses.before[name] for name in ("guesses_right", "guesses_wrong"))
        return (right, wrong) == (during, 0) and now["handshakes"] > wanted

    await_true(f"{during} right guesses during a flood", is_counted, HEARD_S)


def test_another_agent_goes_on_when_one_is_killed(lab: ContentLab) -> None:
    os.kill(lab.agents[AGENTS[0].name].pid, signal.SIGKILL)
    assert {bought(lab) for _ in range(5)} == {S3.name}
