"""Tests of the lab with real TCP: pages, long downloads across weight changes, connections to hosts that are no
servers; the switch loses no packet."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest

from topo.labs.web import Lab
from topo.labs.webservers import HEAVY, LONG, PAGE, WORK
from topo.measure.downloads import Downloads, spanning
from topo.plan.network import DOWNLOAD_CLIENT, LOAD_CLIENT, PLAIN_HOST, SERVER_NAMES, SERVERS, VIP, WEB_PORT, Balance
from topo.testbed.errors import SetupError
from topo.testbed.namespaces import socket_in
from topo.testbed.nodes import SYN_RETRIES, switch_kind, syn_sysctls
from topo.testbed.processes import before_all_else, run_in
from topo.tests import needs
from topo.tests.fixtures import lab_fixture

pytestmark = needs.ALONE

URL = f"http://{VIP}/{PAGE}"
EVERYONE = os.sched_getaffinity(0)


lab = lab_fixture(lambda: Lab(switch_kind(), Balance("fixed", 1.0, 10.0)))


def curl(lab: Lab, url: str, *options: str) -> str:
    return lab.call(LOAD_CLIENT.name, "curl", "-sS", "--max-time", "10", *options, url)


def test_a_hosts_syn_timers_are_its_namespaces_own(lab: Lab) -> None:
    client, other = (lab.pid(host.name) for host in (LOAD_CLIENT, DOWNLOAD_CLIENT))
    retries, linear = syn_sysctls(client)
    run_in(client, ["sysctl", "-q", "-w", f"{SYN_RETRIES}={retries + 1}"])
    try:
        assert syn_sysctls(client) == (retries + 1, linear)
        assert syn_sysctls(other) == (retries, linear)
    finally:
        run_in(client, ["sysctl", "-q", "-w", f"{SYN_RETRIES}={retries}"])


def test_the_switch_runs_before_all_else(lab: Lab) -> None:
    if not before_all_else([]):
        pytest.skip("no real-time priority is allowed here")
    assert lab.switch.process is not None and lab.controller.process is not None
    threads = [int(thread.name) for thread in Path(f"/proc/{lab.switch.process.pid}/task").iterdir()]
    assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_RR}
    assert os.sched_getscheduler(lab.controller.process.pid) == os.SCHED_OTHER


def test_the_servers_have_a_processor_to_themselves(lab: Lab) -> None:
    if len(EVERYONE) == 1:
        pytest.skip("there is one processor only")
    if not lab.switch.parted_from_servers:
        pytest.skip("this switch needs all processors")
    assert lab.switch.process is not None and lab.controller.process is not None
    servers = [pid for name in SERVER_NAMES for pid in lab.server_pids(name)]
    assert len(servers) > len(SERVER_NAMES)
    switch = [int(thread.name) for thread in Path(f"/proc/{lab.switch.process.pid}/task").iterdir()]
    others = [*switch, lab.controller.process.pid, lab.pid(LOAD_CLIENT.name), 0]
    last = {max(EVERYONE)}
    assert {frozenset(os.sched_getaffinity(pid)) for pid in servers} == {frozenset(last)}
    assert {frozenset(os.sched_getaffinity(pid)) for pid in others} == {frozenset(EVERYONE - last)}


def test_a_page_comes_whole_through_the_switch(lab: Lab) -> None:
    output = lab.directory / "fetched"
    before = lab.observe().counts
    for _ in range(20):
        curl(lab, URL, "--fail", "-o", str(output))
        assert hashlib.sha256(output.read_bytes()).digest() == hashlib.sha256((lab.files / PAGE).read_bytes()).digest()
    after = lab.observe().counts
    answered = sum(after[name].since(before[name]).synack for name in SERVER_NAMES)
    completed = sum(after[name].since(before[name]).completed for name in SERVER_NAMES)
    assert (answered, completed) == (20, 20)


def test_a_compressed_file_arrives_complete_and_costs_cpu_by_its_size(lab: Lab) -> None:
    output = lab.directory / "fetched"
    for path in (WORK, HEAVY):
        curl(lab, f"http://{VIP}/{path}", "--fail", "--compressed", "-o", str(output))
        assert output.read_bytes() == (lab.files / path).read_bytes()

    def least_cost_s(path: str, times: int) -> float:
        # Take the minimum, because disturbances only add CPU time (cold caches, Apache's parent process).
        return min(lab.request_cost_s(SERVER_NAMES[0], path, 1) for _ in range(times))

    assert 10 < least_cost_s(HEAVY, 3) / least_cost_s(WORK, 15) < 40


def test_a_host_that_is_no_server_is_reached_and_so_are_router_and_service(lab: Lab) -> None:
    client = lab.pid(LOAD_CLIENT.name)
    for address in (PLAIN_HOST.address, LOAD_CLIENT.gateway.ip, VIP):
        assert " 0% packet loss" in run_in(client, ["ping", "-c", "3", "-i", "0.2", "-W", "2", str(address)])


def test_an_expired_ttl_is_answered(lab: Lab) -> None:
    with pytest.raises(SetupError, match=r"Time to live exceeded"):
        lab.call(LOAD_CLIENT.name, "ping", "-c", "1", "-W", "2", "-t", "1", str(PLAIN_HOST.address))


def test_a_server_is_not_reached_past_its_service(lab: Lab) -> None:
    before = lab.observe().drops.get("direct_to_server", 0)
    with socket_in(lab.pid(LOAD_CLIENT.name), socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.connect((str(SERVERS[0].address), WEB_PORT))
    assert lab.observe().drops["direct_to_server"] > before


def downloads(lab: Lab, seconds: float) -> Downloads:
    return lab.start_downloads(4, (lab.files / LONG).stat().st_size / seconds)


def test_downloads_live_across_weight_changes(lab: Lab) -> None:
    running = downloads(lab, seconds=8.0)
    changes: list[float] = []
    try:
        for name in SERVER_NAMES:
            for drain in (True, False):
                lab.controller.drain(name, drain=drain)
                changes.append(time.time())
                for _ in range(3):
                    curl(lab, URL, "--fail", "-o", "/dev/null")
        finished = running.finish()
    finally:
        running.abort()
    assert [outcome.fault for outcome in finished] == [""] * len(finished)
    assert all(spanning(finished, moment) == 4 for moment in changes)


def test_a_draining_server_gets_no_new_connections(lab: Lab) -> None:
    lab.controller.drain("s1", drain=True)
    try:
        before = lab.observe().counts["s1"]
        for _ in range(12):
            curl(lab, URL, "--fail", "-o", "/dev/null")
        assert lab.observe().counts["s1"].since(before).syn == 0
    finally:
        lab.controller.drain("s1", drain=False)


def test_the_switch_goes_on_without_its_controller_and_the_next_one_takes_over(lab: Lab) -> None:
    before = lab.observe()
    running = downloads(lab, seconds=4.0)
    try:
        lab.controller.stop()
        for _ in range(6):
            curl(lab, URL, "--fail", "-o", "/dev/null")
        lab.controller.start()
        finished = running.finish()
    finally:
        running.abort()
    assert [outcome.fault for outcome in finished] == [""] * len(finished)
    after = lab.observe()
    assert after.ratios == before.ratios
    assert sum(count.syn for count in after.counts.values()) >= sum(count.syn for count in before.counts.values()) + 10


def test_every_packet_is_accounted_for(lab: Lab) -> None:
    before = lab.quiet_packet_counts()
    for _ in range(20):
        curl(lab, URL, "--fail", "-o", "/dev/null")
    difference = lab.quiet_packet_counts().since(before)
    assert difference.received > 20 * 70
    assert difference.conserved()
