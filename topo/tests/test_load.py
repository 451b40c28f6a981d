"""Tests of request logs, of the sizes and rates in them, and of their replay against a server over real sockets."""

from __future__ import annotations

import random
import select
import socket
import statistics
import struct
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from topo.load.client import Replay, ReplayClients
from topo.load.delay import DelayLine
from topo.load.program import command
from topo.load.server import BLOCK_BYTES, SPARE_BYTES, Server, SizedServer, answer_to
from topo.plan.outcomes import Ending, Outcome, read_outcomes, write_outcomes
from topo.plan.requests import LogFormatError, Request, draw_wait, read_log, write_log
from topo.plan.synthesis import Crowd, draw_size, synthesise
from topo.plan.worldcup import SIZE_UNKNOWN, Record, as_requests, read_records, write_records
from topo.testbed import REPOSITORY
from topo.testbed.namespaces import free_port


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    requests = [Request(0.25, 7, "target", 100), Request(0.5, 8, "bystander", 0, 7000)]
    assert write_log(tmp_path / "log", requests) == 2
    assert list(read_log(tmp_path / "log")) == requests


@pytest.mark.parametrize(
    ("line", "says"),
    [("1.0,2,target", "line 3: '1.0,2,target' is no request"), ("0.1,2,target,5,0", "line 3: times must not fall")],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, says: str) -> None:
    write_log(tmp_path / "log", [Request(0.5, 1, "target", 1)])
    with (tmp_path / "log").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(LogFormatError, match=says):
        list(read_log(tmp_path / "log"))


def test_compression_divides_times_and_multiplies_rates() -> None:
    assert Request(8.0, 1, "target", 100, 7000).compressed(8) == Request(1.0, 1, "target", 100, 56000)


def test_world_cup_records_are_twenty_bytes_big_endian(tmp_path: Path) -> None:
    record = Record(0x35458ED0, 1, 2, 3, 4, 5, 6, 0x60)
    assert record.pack() == bytes.fromhex("35458ed0 00000001 00000002 00000003 04 05 06 60")
    assert record.region == 3
    write_records(tmp_path / "wc", [record] * 5000)
    assert list(read_records(tmp_path / "wc")) == [record] * 5000


def test_a_cut_world_cup_log_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "wc").write_bytes(Record(1, 1, 1, 1).pack() * 2 + b"abc")
    with pytest.raises(LogFormatError, match="byte 40: the last record is cut off"):
        list(read_records(tmp_path / "wc"))


def test_world_cup_requests_spread_over_their_second_and_keep_to_a_region() -> None:
    records = [
        Record(100, 1, 0, 10, server=0x20),
        Record(100, 2, 0, SIZE_UNKNOWN, server=0x20),
        Record(101, 3, 0, 30, server=0x40),
        Record(102, 4, 0, 40, server=0x3F),
    ]
    assert list(as_requests(records, "target", region=1)) == [
        Request(0.0, 1, "target", 10),
        Request(0.5, 2, "target", 0),
        Request(2.0, 4, "target", 40),
    ]


def test_sizes_are_the_papers() -> None:
    source = random.Random(1)
    sizes = [draw_size(source) for _ in range(100_000)]
    under_10k = [size for size in sizes if size < 10_000]
    assert sum(size < 1000 for size in sizes) / len(sizes) == pytest.approx(0.5, abs=0.01)
    assert len(under_10k) / len(sizes) == pytest.approx(0.9, abs=0.01)
    assert sum(under_10k) / sum(sizes) == pytest.approx(0.5, abs=0.03)


def test_rates_are_the_papers_and_the_seed_decides() -> None:
    crowd = Crowd(end_s=1500.0)
    times = [request.time_s for request in synthesise(crowd, "target", seed=3)]
    assert len([moment for moment in times if moment < 1000]) / 1000 == pytest.approx(20, rel=0.05)
    assert len([moment for moment in times if moment >= 1060]) / 440 == pytest.approx(110, rel=0.05)
    assert times == [request.time_s for request in synthesise(crowd, "target", seed=3)]
    assert times != [request.time_s for request in synthesise(crowd, "target", seed=4)]


def test_a_crowd_that_is_over_leaves_the_quiet_rate() -> None:
    crowd = Crowd(ramp_s=0.0, over_s=1500.0)
    assert [crowd.rate(time_s) for time_s in (999.9, 1000.0, 1499.9, 1500.0)] == [20.0, 110.0, 110.0, 20.0]


def test_patience_is_exponential_and_half_go_on_waiting() -> None:
    source = random.Random(1)
    assert statistics.fmean(draw_wait(60.0, source) for _ in range(20_000)) == pytest.approx(120, rel=0.05)
    assert draw_wait(0.0, source) == float("inf")


def test_outcomes_are_read_as_they_were_written(tmp_path: Path) -> None:
    outcomes = [
        Outcome(1.0, 2, "target", 3, 0.25, 0.5, 0.75, 3, Ending.FINISHED, 1, 0.0),
        Outcome(2.0, 2, "target", 3, None, None, 1.5, 0, Ending.GAVE_UP, 2, 0.0),
    ]
    write_outcomes(tmp_path / "outcomes", outcomes)
    assert read_outcomes(tmp_path / "outcomes") == outcomes


@pytest.mark.parametrize(
    ("request_", "header", "size"),
    [
        (b"GET /25 HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 25\r\n\r\n", 25),
        (b"GET /x HTTP/1.0\r\n\r\n", b"HTTP/1.0 400 Bad Request\r\n\r\n", 0),
        (b"GET /99999999 HTTP/1.0\r\n\r\n", b"HTTP/1.0 400 Bad Request\r\n\r\n", 0),
        (b"rubbish", b"HTTP/1.0 400 Bad Request\r\n\r\n", 0),
    ],
)
def test_the_server_answers_with_the_size_asked_for(request_: bytes, header: bytes, size: int) -> None:
    assert answer_to(request_) == (header, size)


@contextmanager
def server(**limits: float) -> Generator[int]:
    """Run a server process on a free port of the loopback interface, and yield the port."""
    port = free_port()
    process = subprocess.Popen(command(SizedServer("127.0.0.1", port, **limits)), cwd=REPOSITORY)  # type: ignore[arg-type]
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1.0).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait()


def listening(**limits: Any) -> Server:
    """Return a server in this process that listens on a free port."""
    return Server(SizedServer("127.0.0.1", 0, backlog=64, workers=64, **limits))


def replayed(port: int, requests: list[Request], seconds: float = 60.0, patience_s: float = 0.0) -> list[Outcome]:
    servers = {"target": f"127.0.0.1:{port}"}
    plan = ReplayClients("", "127.16.0.0/16", servers, time.time(), seconds, "", patience_s)
    return sorted(Replay(plan).run(requests), key=lambda outcome: outcome.due_s)


@pytest.mark.parametrize(
    "limits", [{}, {"workers": 3, "cost_us": 20}, {"cost_us": 20, "memory_mb": 40, "answer_kb": 2048}]
)
def test_every_request_gets_its_bytes(limits: dict[str, float]) -> None:
    sizes = [0, 1, 2047, 2048, 2049, 700_000] * 5
    requests = [Request(number / 1000, number, "target", size) for number, size in enumerate(sizes)]
    with server(**limits) as port:
        outcomes = replayed(port, requests)
    assert [ended.ending for ended in outcomes] == [Ending.FINISHED] * len(sizes)
    assert [ended.bytes for ended in outcomes] == sizes
    for outcome in outcomes:
        assert outcome.connect_s is not None and outcome.first_byte_s is not None and outcome.done_s is not None
        assert 0 < outcome.connect_s <= outcome.first_byte_s <= outcome.done_s


def test_a_client_that_leaves_gets_no_second_turn() -> None:
    """Clients reset their connections while the server has unsent answers. The server sends these clients no further
    block, although epoll reports reset connections repeatedly."""
    server = listening(cost_us=10.0)
    clients = [socket.create_connection(server.address) for _ in range(20)]
    for client in clients:
        client.sendall(b"GET /700000 HTTP/1.0\r\n\r\n")
    while server.waiting < len(clients):
        server.step()
    for client in clients:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    server.step()
    assert server.waiting < len(clients)
    while server.waiting:
        server.step()


def test_what_finds_no_memory_waits_until_an_answer_has_ended() -> None:
    answer_bytes = 4 << 20
    limit = listening().own_bytes() + SPARE_BYTES + 5 * answer_bytes
    server = listening(cost_us=10.0, answer_kb=answer_bytes / 2**10, memory_mb=limit / 2**20)
    clients = [socket.create_connection(server.address) for _ in range(20)]
    for client in clients:
        client.sendall(b"GET /40000 HTTP/1.0\r\n\r\n")
    most, before = 0, server.own_bytes()
    while server.waiting or len(select.select(clients, [], [], 0)[0]) < len(clients):
        server.step()
        most = max(most, server.own_bytes() - before)
    assert 3 * answer_bytes < most < 6 * answer_bytes
    assert server.own_bytes() - before < answer_bytes


def test_an_answer_that_never_fits_is_made_all_the_same() -> None:
    server = listening(cost_us=10.0, answer_kb=1024, memory_mb=1 / 2**20)
    with socket.create_connection(server.address) as client:
        client.sendall(b"GET /1000 HTTP/1.0\r\n\r\n")
        while not select.select([client], [], [], 0)[0]:
            server.step()
        assert client.recv(64).startswith(b"HTTP/1.0 200 OK")


def test_a_client_on_a_slow_line_takes_its_time() -> None:
    with server() as port:
        (slow,) = replayed(port, [Request(0.0, 1, "target", 40_000, 20_000)])
    assert slow.ending is Ending.FINISHED and slow.done_s is not None and slow.done_s > 1.0


def test_the_outcome_names_what_ended_a_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        requests = [Request(0.0, number, "target", 1) for number in range(20)]
        given_up = replayed(silent.getsockname()[1], requests, patience_s=0.05)
        pending = replayed(silent.getsockname()[1], requests[:1], seconds=0.1)
        port = silent.getsockname()[1]
    assert {outcome.ending for outcome in given_up} == {Ending.GAVE_UP}
    assert [outcome.ending for outcome in pending] == [Ending.PENDING]
    (refused,) = replayed(port, requests[:1])
    assert refused.ending is Ending.REFUSED and refused.connect_s is None


def test_the_delay_line_keeps_order_and_lets_others_pass() -> None:
    line = DelayLine({"10.101.0.0/16": 0.5, "10.102.0.0/16": 0.1})
    far, near = (bytes(12) + bytes((10, second, 0, 1)) for second in (101, 102))
    assert line.take(far, 0.0) and line.take(far + b"2", 0.2) and line.take(near, 0.3)
    assert not line.take(bytes(12) + bytes((10, 9, 0, 1)), 0.0)
    assert line.next() == pytest.approx(0.4)
    assert line.due(0.45) == [near]
    assert line.due(1.0) == [far, far + b"2"]
    assert line.next() is None


def test_a_turn_on_the_wall_sends_a_block_and_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("topo.load.server.time.sleep", slept.append)
    server = listening(turn_us=8000)
    with socket.create_connection(server.address) as client:
        client.sendall(b"GET /%d HTTP/1.0\r\n\r\n" % (3 * BLOCK_BYTES))
        while not slept:
            server.step()
        assert server.waiting == 1, "the rest has to wait for its turns"
        server.turn_s = 0.08
        while server.waiting:
            server.step()
    assert slept == [0.008, 0.08, 0.08]
