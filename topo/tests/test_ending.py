"""Tests that the demo removes all its processes, namespaces, interfaces, cgroups and files, whatever ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from topo.plan.network import THREE
from topo.testbed import REPOSITORY
from topo.testbed.cgroups import PREFIX, mounted
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import Interrupted, interruptible
from topo.testbed.mininet import Node
from topo.testbed.namespaces import socket_in
from topo.testbed.network import MininetNetwork
from topo.testbed.nodes import SWITCHES, switch_kind
from topo.tests import needs

pytestmark = needs.ROOT

SO_NETNS_COOKIE = 71
"""Socket option since Linux 5.14 (include/uapi/asm-generic/socket.h)."""


def parents() -> dict[int, int]:
    """Return the id of the parent by process id, for all processes that have not ended. Ended processes that init has
    not reaped yet are omitted."""
    parent_of: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                parent_of[int(entry.name)] = int(parent)
    return parent_of


def network_namespace(pid: int) -> int:
    """Return the cookie of a process's network namespace; 0 if the process has ended. Unlike an inode number, a cookie
    is never reused."""
    try:
        with socket_in(pid, socket.AF_UNIX, socket.SOCK_STREAM) as unix_socket:
            return int.from_bytes(unix_socket.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), sys.byteorder)
    except SetupError:
        return 0


@dataclass
class Traces:
    """The processes and namespaces of a running demo."""

    pid: int
    processes: set[int] = field(default_factory=set[int])
    namespaces: set[int] = field(default_factory=set[int])

    def look(self) -> None:
        """Add the demo's current processes and namespaces."""
        tree = parents()
        family = {self.pid}
        while grown := {pid for pid, parent in tree.items() if parent in family} - family:
            family |= grown
        self.processes |= family - {self.pid}
        own = network_namespace(os.getpid())
        self.namespaces |= {network_namespace(pid) for pid in family} - {own, 0}

    def left(self) -> list[str]:
        """Return descriptions of all processes, namespaces, cgroups and files of the demo that still exist."""
        name = f"{PREFIX}{self.pid}-"
        pids = parents()
        return [
            *(f"process {pid}" for pid in self.processes & set(pids)),
            *(f"namespace {space}" for space in {network_namespace(pid) for pid in pids} & self.namespaces),
            *(str(path) for hierarchy in mounted().distinct() for path in hierarchy.root.glob(f"{name}*")),
            *(str(path) for path in Path(tempfile.gettempdir()).glob(f"{name}*")),
        ]


def end_demo(tmp_path: Path, when: str, end: Callable[[int, Traces], None]) -> tuple[int, str, Traces]:
    """Run the demo until a line of its output contains `when`, end the demo by `end`, and return its exit code, output
    and traces."""
    demo = subprocess.Popen(
        [sys.executable, "-m", "topo.demo", "--output", str(tmp_path)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    traces = Traces(demo.pid)
    try:
        assert demo.stdout is not None
        lines: list[str] = []
        for line in demo.stdout:
            lines.append(line)
            if when in line:
                break
        traces.look()
        end(demo.pid, traces)
        rest, _ = demo.communicate(timeout=60)
    finally:
        demo.kill()
        demo.wait()
    return demo.returncode, "".join(lines) + rest, traces


def interfaces() -> set[str]:
    return {entry.name for entry in Path("/sys/class/net").iterdir()}


@pytest.mark.parametrize(
    ("when", "number"),
    [("sluice demo:", signal.SIGINT), ("network up", signal.SIGTERM), ("looking for a rate", signal.SIGINT)],
)
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, when: str, number: signal.Signals) -> None:
    before = interfaces()

    def interrupt(pid: int, traces: Traces) -> None:
        time.sleep(1.0)  # interrupt the demo at some point after that line
        traces.look()
        os.kill(pid, number)

    code, output, traces = end_demo(tmp_path, when, interrupt)
    assert code == 128 + number, output
    assert f"ended by {number.name}; everything it started is gone" in output
    assert traces.processes and traces.namespaces
    assert traces.left() == []
    assert interfaces() <= before


class Network(MininetNetwork):
    """A network of switch and hosts, without server programs and controller."""

    def build(self) -> None:
        """Create the switch and the lab's hosts."""
        self._build_network(THREE.hosts)


@pytest.mark.parametrize("command", [1, 25, 30])
def test_an_interrupt_waits_for_what_a_node_answers_to_mininet(monkeypatch: pytest.MonkeyPatch, command: int) -> None:
    before, asked, traces = interfaces(), 0, Traces(os.getpid())
    unchanged = Node.waitOutput

    def interrupted(self: Node, verbose: bool = False, findPid: bool = True) -> str:
        nonlocal asked
        asked += 1
        if asked == command:
            traces.look()
            signal.raise_signal(signal.SIGINT)
        return unchanged(self, verbose, findPid)

    monkeypatch.setattr(Node, "waitOutput", interrupted)
    network = Network(switch_kind())
    with interruptible(), pytest.raises(Interrupted), network:
        pytest.fail("the network came up")
    assert traces.namespaces
    assert traces.left() == []
    assert interfaces() <= before


def test_a_demo_whose_switch_dies_reports_it_and_leaves_nothing(tmp_path: Path) -> None:
    program = SWITCHES[switch_kind()].program

    def kill_switch(pid: int, traces: Traces) -> None:
        del pid
        (switch,) = (process for process in traces.processes if executable(process) == program)
        os.kill(switch, signal.SIGKILL)

    code, output, traces = end_demo(tmp_path, "looking for a rate", kill_switch)
    assert code == 1, output
    assert f"{program} ended with exit code -9" in output
    assert "Traceback" not in output
    assert traces.left() == []


def executable(pid: int) -> str:
    try:
        return Path((Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")[0].decode()).name
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_the_prompt_answers_and_leaves_nothing() -> None:
    commands = "load 20 1\nbreak s9\nbreak s3\nmend s3\nload x\nstatus\nexit\n"
    lab = subprocess.run(
        [sys.executable, "-m", "topo.lab"],
        cwd=REPOSITORY,
        input=commands,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert lab.returncode == 0, lab.stderr
    assert "live page: http://127.0.0.1:" in lab.stdout
    assert "usage: break SERVER, one of s1, s2, s3" in lab.stdout
    assert "usage: load RATE SECONDS" in lab.stdout
    assert "web 10.0.0.100:80  mode production" in lab.stdout
    assert lab.stdout.endswith("everything the lab started is gone\n")
