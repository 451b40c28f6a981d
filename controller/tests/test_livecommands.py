"""Tests of the commands that use a running controller, called as users call them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import signal
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from configs import web
from fakeswitch import FakeSwitch
from live import Running, feed, running, until
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap
from sluice.addresses import from_text
from sluice.cli.main import main
from sluice.dataplane.connection import Connection
from sluice.names import TICK_BASE, PinState, Register
from sluice.views import control
from sluice.views.status import gather
from sluice.views.statustext import render
from test_cli import ENV, SLUICE
from test_embedded_switch import pytestmark as built

from topo.testbed.switches.started import start as start_switch


@dataclass
class Done:
    """Exit status and output of a command."""

    returncode: int
    stdout: str
    stderr: str


def call(*arguments: str) -> Done:
    """Run a command to its end in the test's process, because a new process takes a second or more to start."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = main(arguments)
        except SystemExit as error:
            status = int(error.code or 0)
    return Done(status, out.getvalue(), err.getvalue())


async def acall(*arguments: str) -> Done:
    """Run a `sluice` command in a thread, while a controller runs."""
    return await asyncio.to_thread(call, *arguments)


@asynccontextmanager
async def led(tmp_path: Path) -> AsyncGenerator[tuple[FakeSwitch, Path, Running]]:
    """Run a controller that leads a fake switch, with its control socket."""
    path = tmp_path / "sluice.yaml"
    async with FakeSwitch() as switch:
        path.write_text(web(switch.address, control=str(tmp_path / "s.sock"), mode="fixed"))
        async with running(path) as it, control.serve(it.controller, str(tmp_path / "s.sock")):
            yield switch, path, it


@asynccontextmanager
async def led_embedded(tmp_path: Path) -> AsyncGenerator[tuple[Path, Running]]:
    """Run a controller with the embedded switch, for commands that read the complete connection table."""
    switch = await start_switch()
    path, socket = tmp_path / "sluice.yaml", str(tmp_path / "s.sock")
    path.write_text(web(switch.address, control=socket, mode="fixed"))
    try:
        async with running(path) as it, control.serve(it.controller, socket):
            yield path, it
    finally:
        await switch.stop()


async def test_explain(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        said = await acall("explain", "10.0.1.77:40000", "web", "-c", str(path))
        assert said.returncode == 0, said.stderr
        assert said.stdout.startswith("10.0.1.77:40000 to web 10.0.0.100:80\n")
        assert "no pin" in said.stdout
        assert "by choice: drawn by the weights, 128 of 256" in said.stdout
        shown = json.loads((await acall("explain", "10.0.1.77:40000", "web", "-c", str(path), "--json")).stdout)
        assert shown["new"]["by"] == "choice"
        wrong = await acall("explain", "10.0.1.77:x", "web", "-c", str(path))
        assert (wrong.returncode, wrong.stdout) == (1, "")
        assert wrong.stderr == "sluice: '10.0.1.77:x': a port is a number from 1 to 65535\n"


SYN = bytes(
    Ether(dst="02:00:00:00:00:01", src="02:aa:00:00:00:09")
    / IP(src="10.0.1.77", dst="10.0.0.100")
    / TCP(sport=40000, dport=80, flags="S")
).hex()


@built
async def test_the_path_of_a_packet_through_a_copy(tmp_path: Path) -> None:
    async with led_embedded(tmp_path) as (path, it):
        link = it.link
        place = Connection(from_text("10.0.1.77").packed, 40000, from_text("10.0.0.100").packed, 80).place
        key = place.fingerprint << 36 | PinState.ESTABLISHED << 32 | TICK_BASE
        await link.registers.write(Register.PIN_KEY_2, place.slot_2, key)
        await link.registers.write(Register.PIN_SERVER_2, place.slot_2, 2)
        done = await acall("explain", "--packet", SYN, "--json", "-c", str(path))
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout)
        assert (shown["port"], shown["length"]) == (1, 54)
        hits = {step["table"].rsplit(".", 1)[-1]: step for step in shown["steps"] if step["step"] == "table"}
        assert hits["services"]["hit"]
        assert shown["drop"] == "neighbour_unresolved", "none has answered yet"
        assert int(next(iter(hits["servers"]["key"].values())), 16) == 2, "the pin of the original is in the copy"
        capture = tmp_path / "one.pcap"
        wrpcap(str(capture), [Raw(bytes.fromhex(SYN))], linktype=1)
        text = await acall("explain", "--packet", str(capture), "-c", str(path))
        lines = text.stdout.splitlines()
        assert lines[:2] == ["54 bytes in by port 1, on a copy of the switch", "parsed: ethernet, ipv4, tcp"]
        assert lines[lines.index("translate") + 1] == "  table servers (server 0x0002): server=0002"
        assert lines[-1] == "dropped: neighbour_unresolved"
        assert (await link.registers.read(Register.PIN_KEY_2, [place.slot_2])) == [key], "the original is as it was"
        (offered,) = [s["offered"] for s in (await gather(it.controller))["services"]]
        assert offered == 0


@pytest.mark.parametrize(
    ("packet", "status", "text"),
    [
        (["--packet", "no-such-file"], 1, "'no-such-file' is neither a file nor hexadecimal digits"),
        (["--packet", "0102"], 1, "a frame of 2 bytes; Ethernet's have 14 to 9216"),
        (["--packet", "00" * 60, "--in-port", "9"], 1, "the configuration has no port 9; there is: 1, 2, 3"),
        (["--packet", "00" * 60, "10.0.1.77"], 2, "--packet stands in place of CLIENT and SERVICE"),
        (["10.0.1.77"], 2, "give CLIENT and SERVICE, or --packet"),
    ],
)
@built
def test_packets_that_are_none(tmp_path: Path, packet: list[str], status: int, text: str) -> None:
    path = tmp_path / "sluice.yaml"
    path.write_text(web())
    done = call("explain", "-c", str(path), *packet)
    assert (done.returncode, done.stdout) == (status, "")
    assert text in done.stderr


# -- status


async def test_watch_goes_on_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        process = await asyncio.create_subprocess_exec(
            *SLUICE, "status", "-c", str(path), "--json", "--watch", "0.05", stdout=asyncio.subprocess.PIPE, env=ENV
        )
        assert process.stdout is not None
        async with asyncio.timeout(60):
            for _ in range(3):
                assert json.loads(await process.stdout.readline())["role"] == "primary"
            process.send_signal(signal.SIGINT)
            await process.stdout.read()
            assert await process.wait() == 130


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "often", "１"])
def test_a_time_that_is_none_is_misuse(seconds: str) -> None:
    done = call("status", f"--watch={seconds}")
    assert done.returncode == 2
    assert f"{seconds!r} is not a time; write seconds" in done.stderr


def at_terminal(*arguments: str, until: str | None = None, **environment: str) -> str:
    """Return what a command writes to a terminal of 100 columns.

    If `until` is given, Ctrl-C ends the command when it has printed `until` twice.
    """
    ours, theirs = pty.openpty()
    env = {key: value for key, value in ENV.items() if key != "NO_COLOR"} | {"TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen([*SLUICE, *arguments], stdout=theirs, stderr=theirs, env=env | environment) as process:
        os.close(theirs)
        said = b""
        try:
            while more := os.read(ours, 1 << 16):
                said += more
                if until is not None and said.count(until.encode()) > 1:
                    process.send_signal(signal.SIGINT)
        except OSError:
            pass  # on Linux, EIO marks the end of the terminal's output
        os.close(ours)
        assert process.wait(60) == (0 if until is None else 130), said
    return said.decode()


async def test_colours_are_for_terminals_that_want_them(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        assert "\x1b[32mprimary" in await asyncio.to_thread(at_terminal, "status", "-c", str(path))
        assert "\x1b[3" not in await asyncio.to_thread(at_terminal, "status", "-c", str(path), NO_COLOR="1")
        assert "\x1b" not in (await acall("status", "-c", str(path))).stdout


@pytest.mark.parametrize("term", ["dumb", "unknown"])
async def test_a_terminal_that_cannot_be_drawn_on_gets_lines(tmp_path: Path, term: str) -> None:
    async with led(tmp_path) as (_, path, it):
        server = next(iter(it.controller.world.plan.servers)).name
        watch = ("status", "--watch", "0.05", "-c", str(path))
        assert "primary" in await asyncio.to_thread(at_terminal, *watch, TERM=term, until="every 0.05 s; Ctrl-C ends")
        drain = ("drain", server, "--wait", "-c", str(path))
        assert f"{server}: 0 connections left" in await asyncio.to_thread(at_terminal, *drain, TERM=term)


async def test_a_closed_output_ends_status_quietly(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        reader, writer = os.pipe()
        os.close(reader)
        process = await asyncio.create_subprocess_exec(
            *SLUICE, "status", "-c", str(path), stdout=writer, stderr=asyncio.subprocess.PIPE, env=ENV
        )
        os.close(writer)
        _, complaint = await process.communicate()
        assert (process.returncode, complaint) == (128 + signal.SIGPIPE, b"")


async def test_tables_fit_100_columns(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        shown = json.loads((await acall("status", "-c", str(path), "--json")).stdout)
    for server in shown["services"][0]["servers"]:
        more = {"name": "a-server-with-a-long-name-in-a-far-rack", "address": "255.255.255.255:65535"}
        more |= {"state": "draining", "weight": 65535, "r": 99999.5, "r_every_synack": 123.456, "connections": 4}
        counts = ("syn", "synack", "synack_again", "completed", "reset", "connections")
        server.update(more | dict.fromkeys(counts, 4_294_967_295))
    table = [line for line in render(shown).splitlines() if "server  " in line or "a-server" in line]
    assert len(table) == 3
    assert max(map(len, table)) <= 100
    assert "a-server" in table[1] and "4.3G" in table[1]


# -- drain


async def test_a_timeout_without_a_wait_is_misuse(tmp_path: Path) -> None:
    async with led(tmp_path) as (switch, path, _it):
        done = await acall("drain", "s1", "--timeout", "5", "-c", str(path))
        assert done.returncode == 2
        assert "--timeout needs --wait" in done.stderr
        assert switch.weights(1) == {1: 128, 2: 128}, "nothing is done"


@built
async def test_drain_waits_for_what_is_left(tmp_path: Path) -> None:
    async with led_embedded(tmp_path) as (path, it):
        link = it.link
        await link.registers.write(Register.PIN_SERVER_1, 7, 1)
        await link.registers.write(Register.PIN_KEY_1, 7, 5 << 36 | PinState.ESTABLISHED << 32 | TICK_BASE)
        late = await acall("drain", "s1", "--wait", "--timeout", "0.1", "--json", "-c", str(path))
        assert late.returncode == 3
        assert (json.loads(late.stdout)["left"], json.loads(late.stdout)["server"]) == (1, "s1")
        assert "s1 drains and has 1 open connections after" in late.stderr
        waiting = await asyncio.create_subprocess_exec(
            *(*SLUICE, "drain", "s1", "--wait", "-c", str(path)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=ENV,
        )
        assert waiting.stderr is not None
        async with asyncio.timeout(60):
            assert await waiting.stderr.readline() == b"s1: 1 connections left\n"
            await link.registers.write(Register.PIN_KEY_1, 7, 5 << 36 | PinState.CLOSED << 32 | TICK_BASE)
            said, more = await waiting.communicate()
        assert (waiting.returncode, more) == (0, b"s1: 0 connections left\n")
        assert said == b"s1 is drained: no open connection is left\n"


# -- reload


async def test_another_file_than_the_controllers_is_refused(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        link, other = tmp_path / "link.yaml", tmp_path / "other.yaml"
        link.symlink_to(path)
        assert (await acall("reload", "-c", str(link))).returncode == 0
        control = str(tmp_path / "s.sock")
        done = await acall("reload", "-c", str(other), "--socket", control)
        assert done.returncode == 1
        assert f"{other} is not the file that this controller reads, and does not exist: that is {path}" in done.stderr
        other.write_text(path.read_text())
        done = await acall("reload", "--dry-run", "-c", str(other))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{other} is not the file that this controller reads: that is {path}" in done.stderr
        assert (await acall("reload", "--socket", control)).returncode == 0


@built
async def test_a_dry_run_says_what_a_reload_would_change_and_writes_nothing(tmp_path: Path) -> None:
    async with led_embedded(tmp_path) as (path, it):
        assert (await acall("reload", "--dry-run", "-c", str(path))).stdout == "0 updates; nothing was written\n"
        more = "  - {name: s3, address: 10.0.2.3, port: 80}\n  admission: {rate_per_s: 250, burst: 25}\ncontrol:"
        text = path.read_text().replace("control:", more, 1)
        path.write_text(text.replace("port: 2, mac", "port: 2, vlan: 9, mac"))
        as_json = await acall("reload", "--dry-run", "--json", "-c", str(path))
        assert as_json.returncode == 0, as_json.stderr
        said = json.loads(as_json.stdout)["updates"]
        assert "+ servers server s3: to_server, address 10.0.2.3, port 80, draining 0" in said
        assert "+ egress_vlan port 2: set_vlan, id 9" in said
        assert "~ admission web: 250 per second, 25 at once" in said
        (choose,) = [line for line in said if line.startswith("~ choose service web: ")]
        assert "weight of s3 none -> " in choose
        assert len(it.controller.world.plan.services[0].servers) == 2, "it is not taken over"
        done = await acall("reload", "-c", str(path))
        assert done.stdout == f"reloaded: {len(said)} updates\n", "none of them was written"
        path.write_text(text.replace("port: 80}", "port: 80000}", 1))
        wrong = await acall("reload", "--dry-run", "-c", str(path))
        assert wrong.returncode == 1
        assert "65535" in wrong.stderr


async def test_a_dry_run_says_what_would_go(tmp_path: Path) -> None:
    async with led(tmp_path) as (_, path, _it):
        path.write_text(path.read_text().replace(", vlan: 7", ""))
        said = (await acall("reload", "--dry-run", "-c", str(path))).stdout
        assert said == "- egress_vlan port 3: set_vlan, id 7\n1 updates; nothing was written\n"


# -- events


async def test_events_are_printed_as_they_happen(tmp_path: Path) -> None:
    async with led(tmp_path) as (switch, path, it):
        process = await asyncio.create_subprocess_exec(
            *SLUICE,
            "events",
            "-f",
            "--json",
            "-c",
            str(path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=ENV,
        )
        assert process.stdout is not None
        stdout = process.stdout

        async def told(kind: str, **fields: Any) -> dict[str, Any]:
            async with asyncio.timeout(60):
                while True:
                    event = json.loads(await stdout.readline())
                    if event["kind"] == kind and fields.items() <= event.items():
                        return event

        assert "leads the switch" in (await told("link", up=True))["text"]
        await acall("drain", "s1", "-c", str(path))
        assert (await told("drain"))["server"] == "s1"
        await acall("undrain", "s1", "-c", str(path))
        await told("undrain")
        await acall("mode", "web", "paper", "-c", str(path))
        assert (await told("mode"))["mode"] == "paper"
        feed(switch, 1, syn=100, synack=50)
        feed(switch, 2, syn=100, synack=100)
        decided = await told("decision")
        assert decided["service"] == "web"
        while decided["weights"]["s1"] >= 128:
            decided = await told("decision")
        assert f"s1 {decided['before']['s1']} -> {decided['weights']['s1']}" in decided["text"]
        await acall("reload", "-c", str(path))
        await told("reload")
        await switch.restart()
        assert "switch lost" in (await told("link", up=False))["text"]
        assert (await told("link", up=True))["adopted"] is False
        await until(lambda: it.ready(2), "the second ready line")
        past = (await acall("events", "-c", str(path))).stdout.splitlines()
        assert any("  drain     s1 drains: no new connections" in line for line in past)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(60):
            await process.communicate()
        assert process.returncode == 130
        shown = await acall("status", "-c", str(path))
        assert shown.returncode == 0, "a follower that goes does no harm"


# -- First configuration, completion, JSON


def test_config_init_writes_a_good_file_over_nothing(tmp_path: Path) -> None:
    path = tmp_path / "sluice.yaml"
    done = call("config", "init", "-c", str(path))
    assert (done.returncode, done.stderr) == (0, "")
    written = path.read_text()
    assert f"#   sluice check -c {path} " in written
    assert ".venv" not in written and "examples/" not in written
    checked = call("check", "-c", str(path), "--json")
    assert json.loads(checked.stdout)["good"] is True
    path.write_text("mine\n")
    again = call("config", "init", "-c", str(path))
    assert again.returncode == 1
    assert again.stderr == f"sluice: {path} exists already; give another name with --config\n"
    assert path.read_text() == "mine\n"
    wrong = call("check", "-c", str(path), "--json")
    assert wrong.returncode == 1
    assert json.loads(wrong.stdout)["complaints"][0]["file"] == str(path)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_is_a_script_that_the_shell_reads(shell: str) -> None:
    done = call("completion", shell)
    assert done.returncode == 0
    assert "explain" in done.stdout and "--dry-run" in done.stdout
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=True, timeout=60)
