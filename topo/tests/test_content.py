"""Tests of content switching with real curl, Apache and agents: each request reaches a server of its group, completely
and in order."""

from __future__ import annotations

import os
import re
from pathlib import Path

from topo.labs.content import ContentLab, curl, server_of
from topo.labs.webservers import PAGE, PAGE_BYTES
from topo.plan.content import AGENTS, GROUPS, S1, S2, S3, SHOP_ADDRESS
from topo.plan.network import DOWNLOAD_CLIENT
from topo.testbed.nodes import switch_kind
from topo.tests import needs
from topo.tests.fixtures import lab_fixture

pytestmark = needs.AGENTS

URL = f"http://{SHOP_ADDRESS}"
IMAGES = {server.name for server in GROUPS["images"]}


lab = lab_fixture(lambda: ContentLab(switch_kind()))


def posted(lab: ContentLab, total: int, path: str = "/xmlprocess.pl", name: str = "x") -> str:
    """Post a purchase of ``total``; return the name of the server that receives it."""
    body = f"<purchase><customerName>{name}</customerName><totalAmount>{total}</totalAmount></purchase>"
    return server_of(curl(lab, "-i", "-H", "Content-Type: text/xml", "--data-binary", body, URL + path))


def test_a_page_comes_whole(lab: ContentLab) -> None:
    for _ in range(5):
        sizes = curl(lab, "-o", "/dev/null", "-w", "%{http_code} %{size_download}", f"{URL}/{PAGE}")
        assert sizes == f"200 {PAGE_BYTES}"


def test_pages_go_to_groups_by_path(lab: ContentLab) -> None:
    assert {server_of(curl(lab, "-I", f"{URL}/{number}.gif")) for number in range(12)} <= IMAGES


def test_purchases_go_to_groups_by_what_they_say(lab: ContentLab) -> None:
    assert {posted(lab, 60_000, "/buy") for _ in range(3)} == {S3.name}
    assert {posted(lab, 6_000) for _ in range(3)} == {S3.name}
    assert {posted(lab, 10) for _ in range(3)} <= IMAGES
    assert posted(lab, 10, "/buy", "CCL") == S3.name


def test_a_client_by_its_address(lab: ContentLab) -> None:
    servers = [server_of(curl(lab, "-I", f"{URL}/{PAGE}", host=DOWNLOAD_CLIENT)) for _ in range(6)]
    assert len(set(servers)) == 1
    assert set(servers) <= IMAGES


def test_requests_of_one_connection_go_each_to_its_group(lab: ContentLab) -> None:
    paths = [f"{URL}/{number}.gif" if number % 2 else f"{URL}/{PAGE}" for number in range(20)]
    outputs = [word for path in paths for word in ("-o", "/dev/null", path)]
    output = curl(lab, "-D", "-", "-w", "%{num_connects} %{http_code}\n", *outputs)
    assert sum(int(line.split()[0]) for line in output.splitlines() if re.fullmatch(r"\d \d{3}", line)) == 1
    servers = re.findall(r"^X-Server: (\w+)", output, re.MULTILINE)
    assert len(servers) == len(paths)
    assert {name for number, name in enumerate(servers) if number % 2} <= IMAGES


def test_what_is_ambiguous_is_refused(lab: ContentLab) -> None:
    output = curl(lab, "-i", "-H", "Transfer-Encoding: chunked", "-H", "Content-Length: 4", "-d", "a", f"{URL}/{PAGE}")
    assert output.startswith("HTTP/1.1 400")


def test_an_upload_longer_than_any_window(lab: ContentLab, tmp_path: Path) -> None:
    upload = tmp_path / "upload"
    upload.write_bytes(os.urandom(1 << 20) * 10)
    options = ("-o", "/dev/null", "-w", "%{http_code} %{size_upload}", "-H", "Expect:", "-X", "POST")
    assert curl(lab, *options, "-T", str(upload), f"{URL}/{PAGE}") == f"200 {10 << 20}"


def test_both_agents_live(lab: ContentLab) -> None:
    for agent in AGENTS:
        lab.agents[agent.name].require_running()
    assert {S1.name, S2.name} == IMAGES
