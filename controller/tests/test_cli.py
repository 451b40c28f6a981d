"""Tests of the command line as users call it, in a process of its own."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import IO

import pytest
import sluice
from configs import web
from fakeswitch import FakeSwitch
from sluice.cli import live
from sluice.cli.main import main
from sluice.features.balance.trace import Appended
from sluice.names import DropReason

SLUICE = [sys.executable, "-m", "sluice"]
ENV = os.environ | {"PYTHONPATH": str(Path(sluice.__file__).resolve().parents[1])}


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a `sluice` command in a process of its own until its end."""
    return subprocess.run([*SLUICE, *arguments], capture_output=True, text=True, timeout=60, check=False, env=ENV)


async def acall(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a `sluice` command in a process of its own, while the test's process serves a fake switch."""
    return await asyncio.to_thread(call, *arguments)


async def start(
    path: Path, *options: str, stdout: int | None = None, stderr: int | IO[bytes] | None = None, **environment: str
) -> Process:
    """Start a controller in a process of its own."""
    command = [*SLUICE, "run", "-c", str(path), *options]
    return await asyncio.create_subprocess_exec(*command, stdout=stdout, stderr=stderr, env=ENV | environment)


def test_check_says_good(tmp_path: Path) -> None:
    path = tmp_path / "sluice.yaml"
    path.write_text(web())
    done = call("check", "--config", str(path))
    assert (done.returncode, done.stdout) == (0, f"{path}: good (1 services, 2 servers)\n")


def test_check_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    path = tmp_path / "sluice.yaml"
    path.write_text(web().replace("mode: paper", "mod: paper"))
    done = call("check", "-c", str(path))
    assert done.returncode == 1
    assert done.stderr == f"{path}:11: services[0].balance.mod: unknown key; did you mean 'mode'?\n"


def test_status_without_a_controller(tmp_path: Path) -> None:
    done = call("status", "--socket", str(tmp_path / "none.sock"))
    assert done.returncode == 1
    assert done.stderr.startswith("sluice: no controller listens on ")


@pytest.mark.parametrize("answer", [b"", b'{"ok": true, "resu'])
def test_a_controller_that_dies_while_it_answers_is_named(answer: bytes, tmp_path: Path) -> None:
    path = str(tmp_path / "s.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()

        def dies() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=dies)
        thread.start()
        done = call("status", "--socket", path)
        thread.join()
    text = f"sluice: {path}: the controller closed the connection without a whole answer\n"
    assert (done.returncode, done.stderr) == (1, text)


def test_a_broken_pipe_that_is_not_the_output_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_: object) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe", "metrics")

    monkeypatch.setattr(live, "_mode", broken)
    assert main(["mode", "web", "paper"]) == 1
    assert capsys.readouterr().err == "sluice: metrics: Broken pipe\n"


def test_a_socket_or_an_address_that_cannot_be_had_is_named(tmp_path: Path) -> None:
    path, control = tmp_path / "sluice.yaml", tmp_path / "none" / "s.sock"
    path.write_text(web(control=str(control)))
    assert call("run", "-c", str(path)).stderr == f"sluice: control socket {control}: No such file or directory\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        path.write_text(web(control=str(tmp_path / "s.sock")) + f'metrics: {{address: "{address}"}}\n')
        assert call("run", "-c", str(path)).stderr == f"sluice: metrics {address}: Address already in use\n"


def test_misuse_is_status_2() -> None:
    assert call("dance").returncode == 2


@pytest.mark.parametrize("start", ["1_700_000_000", "١٢٣", "１７", "²", " 17", "17s", "10:00", ""])
def test_a_time_that_is_none_is_misuse(start: str) -> None:
    done = call("replay", "capture.pcap", f"--start={start}")
    assert done.returncode == 2
    assert f"--start: {start!r} is not a time; write seconds since the epoch, such as 1700000000.25" in done.stderr


async def test_run_status_drain_metrics_and_a_clean_end(
    switch: FakeSwitch, tmp_path: Path, unused_tcp_port: int
) -> None:
    path, trace = tmp_path / "sluice.yaml", tmp_path / "trace.jsonl"
    more = f'metrics: {{address: "127.0.0.1:{unused_tcp_port}"}}'
    path.write_text(web(switch.address, control=str(tmp_path / "s.sock"), more="").rstrip("\n") + f"\n{more}\n")
    process = await start(path, "--trace-file", str(trace), "--log-json", stdout=PIPE, stderr=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("sluice: ready switch=")
        assert Path(tmp_path / "s.sock").stat().st_mode & 0o777 == 0o600

        shown = await acall("status", "-c", str(path))
        assert "web 10.0.0.100:80  mode paper" in shown.stdout
        as_json = json.loads((await acall("status", "-c", str(path), "--json")).stdout)
        assert [s["name"] for s in as_json["services"][0]["servers"]] == ["s1", "s2"]

        drained = await acall("drain", "s1", "-c", str(path))
        assert drained.stdout == "s1 drains: no new connections, the old ones stay\n"
        assert switch.weights(1) == {2: 256}
        refused = await acall("drain", "s2", "-c", str(path))
        assert refused.returncode == 1
        assert "s2 is the last server" in refused.stderr

        url = f"http://127.0.0.1:{unused_tcp_port}/metrics"
        metrics = (await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read())).decode()
        assert "sluice_up 1.0" in metrics
        assert 'sluice_server_ratio{server="s1",service="web"} 0.0' in metrics
        assert 'sluice_service_offered_total{service="web"} 0.0' in metrics
        for reason in (reason for reason in DropReason if reason is not DropReason.NONE):
            row = f'sluice_drops_total{{reason="{reason.name.lower()}"}} 0.0'
            assert row in metrics, "an increase is seen from the first packet on"
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            _, log = await process.communicate()
    assert process.returncode == 0
    assert not (tmp_path / "s.sock").exists()
    events = [json.loads(entry) for entry in log.decode().splitlines()]
    assert {"time", "level", "switch", "task", "event"} <= set(events[0])
    decisions = [json.loads(entry) for entry in trace.read_text().splitlines()]
    assert decisions[0]["servers"]["s1"]["weight"] in (0, 128)


async def test_switch_and_metrics_are_reached_by_ipv6(switch: FakeSwitch, tmp_path: Path, unused_tcp_port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", switch.port)
        await asyncio.gather(copy(reader, ours), copy(theirs, writer))

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while octets := await reader.read(1 << 16):
            writer.write(octets)
        writer.close()

    path, metrics = tmp_path / "sluice.yaml", f"[::1]:{unused_tcp_port}"
    async with await asyncio.start_server(forward, "::1", 0) as server:
        address = f"[::1]:{server.sockets[0].getsockname()[1]}"
        path.write_text(web(address, control=str(tmp_path / "s.sock")) + f'metrics: {{address: "{metrics}"}}\n')
        process = await start(path, stdout=PIPE)
        assert process.stdout is not None
        try:
            async with asyncio.timeout(60):
                assert (await process.stdout.readline()).decode().startswith(f"sluice: ready switch={address} ")
            url = f"http://{metrics}/metrics"
            shown = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=10).read())
            assert b"sluice_up 1.0" in shown
        finally:
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await process.communicate()


def test_unusable_trace_file_is_said(tmp_path: Path) -> None:
    path = tmp_path / "sluice.yaml"
    path.write_text(web(control=str(tmp_path / "s.sock")))
    done = call("run", "-c", str(path), "--trace-file", str(tmp_path / "no" / "trace"))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr


def test_a_rotated_trace_goes_on_in_a_file_of_its_old_name(tmp_path: Path) -> None:
    path, rotated = tmp_path / "trace.csv", tmp_path / "trace.csv.1"
    file = Appended(path)
    for line, is_new in (("head\n", True), ("one\n", False)):
        assert file.is_new() is is_new
        file.write(line)
    path.rename(rotated)
    assert file.is_new(), "its columns are named again"
    file.write("two\n")
    assert (rotated.read_text(), path.read_text()) == ("head\none\n", "two\n")
    other = tmp_path / "other"
    other.write_text("theirs\n")
    other.replace(path)
    assert not file.is_new()
    file.write("three\n")
    assert path.read_text() == "theirs\nthree\n"


async def test_rotation_and_signals_do_not_end_it(switch: FakeSwitch, tmp_path: Path) -> None:
    path, trace, log = tmp_path / "sluice.yaml", tmp_path / "trace.jsonl", tmp_path / "log"
    path.write_text(web(switch.address, control=str(tmp_path / "s.sock")))
    with log.open("wb") as errors:
        process = await start(path, "--trace-file", str(trace), "--log-json", stdout=DEVNULL, stderr=errors)
    try:
        async with asyncio.timeout(60):
            while not (trace.exists() and trace.read_text()):
                assert process.returncode is None
                await asyncio.sleep(0.05)
            trace.rename(tmp_path / "trace.jsonl.1")
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                process.send_signal(number)
            while not (trace.exists() and trace.read_text().endswith("\n")):
                assert process.returncode is None
                await asyncio.sleep(0.05)
            while log.read_text().count("signal without a meaning") < 2:
                assert process.returncode is None
                await asyncio.sleep(0.05)
        assert all(json.loads(line)["service"] == "web" for line in trace.read_text().splitlines())
        assert process.returncode is None
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(60):
            assert await process.wait() == 0


async def test_proxies_do_not_stand_between_it_and_the_switch(switch: FakeSwitch, tmp_path: Path) -> None:
    """The configured proxy does not exist, so a request through that proxy would fail."""
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"), "http://127.0.0.1:1")
    path = tmp_path / "sluice.yaml"
    path.write_text(web(switch.address, control=str(tmp_path / "s.sock")))
    process = await start(path, stdout=PIPE, stderr=DEVNULL, **proxies | {"no_proxy": "", "no_grpc_proxy": ""})
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert (await process.stdout.readline()).startswith(b"sluice: ready switch=")
    finally:
        process.terminate()
        await process.wait()


async def test_a_full_disk_and_a_reader_that_has_gone_do_not_end_it(switch: FakeSwitch, tmp_path: Path) -> None:
    path, full = tmp_path / "sluice.yaml", "/dev/full"
    path.write_text(web(switch.address, control=str(tmp_path / "s.sock"), more="news: {production: {window_s: 1}}"))
    reader, stdout = os.pipe()
    process = await start(path, "--trace-file", full, "--news-trace", full, "--log-json", stdout=stdout, stderr=PIPE)
    os.close(stdout)
    try:
        assert (await asyncio.to_thread(os.read, reader, 1000)).startswith(b"sluice: ready switch=")
        os.close(reader)
        await switch.restart()
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while switch.pushes < 2 or not switch.weights(1):
                assert process.returncode is None, (await process.stderr.read()).decode()
                await asyncio.sleep(0.05)
        asked = json.loads((await acall("status", "-c", str(path), "--json")).stdout)
        assert asked["role"] == "primary" and asked["news"]["sentence"]
        events: list[dict[str, str]] = []
        async with asyncio.timeout(60):
            while sum(event["event"] == "trace cannot be written" for event in events) < 2:
                events.append(json.loads(await process.stderr.readline()))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            _, log = await process.communicate()
    assert process.returncode == 0
    events += [json.loads(entry) for entry in log.decode().splitlines()]
    failed = [(e["file"], e["error"]) for e in events if e["event"] == "trace cannot be written"]
    assert failed == [(full, "[Errno 28] No space left on device")] * 2, "each trace says so, once"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_ends_cleanly_while_it_waits_for_a_switch(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "sluice.yaml"
    path.write_text(web("127.0.0.1:1", control=str(tmp_path / "s.sock")))
    process = await start(path, stderr=PIPE)
    assert process.stderr is not None
    async with asyncio.timeout(60):
        line = (await process.stderr.readline()).decode()
        assert 'event="switch lost; trying again"' in line
        process.send_signal(number)
        assert await process.wait() == 0
