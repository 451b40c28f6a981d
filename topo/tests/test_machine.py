"""Tests of the lab's use of the machine: cgroups of both versions, processes, and error messages for missing
requirements."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from topo.lab import parse_load
from topo.testbed import REPOSITORY, cgroups, nodes, prerequisites
from topo.testbed.errors import SetupError
from topo.testbed.interrupts import SIGNALS, Interrupted, interruptible, undisturbed
from topo.testbed.namespaces import listening, socket_in
from topo.testbed.nodes import Bmv2Switch, SluiceSwitch, switch_kind
from topo.testbed.processes import Process, await_true
from topo.tests import needs

V1 = """\
sysfs /sys sysfs rw 0 0
cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
"""
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"
LATE = f"""\
#!/bin/sh
# setpriv on a busy machine: its turn comes when its parent, which the sixth argument names, has gone.
while grep -q "^PPid:[[:space:]]*$6$" /proc/$$/status; do sleep 0.02; done
exec {shutil.which("setpriv")} "$@"
"""


def test_the_controllers_are_found_on_both_versions() -> None:
    cpu, memory = (cgroups.Hierarchy(Path("/sys/fs/cgroup") / name, 1) for name in ("cpu,cpuacct", "memory"))
    assert cgroups.find_hierarchies(V1) == cgroups.Hierarchies(cpu, memory)
    without = "".join(line for line in V1.splitlines(keepends=True) if "memory" not in line)
    assert cgroups.find_hierarchies(without) == cgroups.Hierarchies(cpu, None)
    unified = cgroups.Hierarchy(Path("/sys/fs/cgroup"), 2)
    assert cgroups.find_hierarchies(V2) == cgroups.Hierarchies(unified, unified)
    with pytest.raises(SetupError, match="mount cgroup2"):
        cgroups.find_hierarchies("sysfs /sys sysfs rw 0 0\n")


def test_version_two_limits_are_written_as_quota_and_period(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("memory pids")
    place = cgroups.Hierarchy(tmp_path, 2)
    group = cgroups.Group(cgroups.Hierarchies(place, place), "s1", 0.08)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    (procs,) = group.procs
    assert (procs.parent / "cpu.max").read_text() == "8000 100000"
    assert not (procs.parent / "memory.max").exists()


def test_version_two_has_memory_and_cpu_in_one_group(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("pids")
    place = cgroups.Hierarchy(tmp_path, 2)
    (procs,) = cgroups.Group(cgroups.Hierarchies(place, place), "s1", 0.08, memory_bytes=46 << 20).procs
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (procs.parent / "memory.max").read_text() == "48234496"


def test_a_memory_limit_without_the_controller_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"memory of s2.*cgroup_enable=memory"):
        cgroups.Group(cgroups.Hierarchies(cgroups.Hierarchy(tmp_path, 1), None), "s2", 0.08, memory_bytes=1 << 20)
    assert not list(tmp_path.iterdir())


@needs.ROOT
def test_a_group_takes_its_processes_with_it() -> None:
    group = cgroups.Group(cgroups.mounted(), "test", 0.5, memory_bytes=64 << 20)
    log = Path("/dev/null")
    process = Process("sleep", ["sleep", "60"], log=log, cgroup_procs=group.procs)
    try:
        for procs in group.procs:
            await_true("joined", lambda procs=procs: str(process.pid) in procs.read_text().split(), 5)
        assert 0 < group.memory_bytes() <= 64 << 20
        group.remove()
        assert not any(procs.parent.exists() for procs in group.procs)
        assert process.wait(5) == -signal.SIGKILL
    finally:
        process.stop()
        group.remove()


def test_servers_have_the_last_processor_and_all_else_the_others() -> None:
    assert cgroups.shared_out({0, 1}) == cgroups.Cores(frozenset({1}), frozenset({0}))
    assert cgroups.shared_out({2, 5, 7}) == cgroups.Cores(frozenset({7}), frozenset({2, 5}))
    assert cgroups.shared_out({3}) == cgroups.Cores(frozenset({3}), frozenset({3}))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="there is one processor only")
def test_all_processors_are_shared_again_at_the_end(tmp_path: Path) -> None:
    def of_a_process(*there: int) -> str:
        process = Process("nproc", ["nproc"], log=tmp_path / "log", cores=there)
        assert process.wait(5) == 0
        return process.output().strip()

    before = os.sched_getaffinity(0)
    with pytest.raises(SetupError, match="in between"), cgroups.parted() as parts:
        assert os.sched_getaffinity(0) == parts.others == before - parts.servers
        assert of_a_process() == str(len(before) - 1)
        assert of_a_process(*before) == str(len(before))
        raise SetupError("in between")
    assert os.sched_getaffinity(0) == before
    with cgroups.together() as parts:
        assert parts.servers == parts.others == os.sched_getaffinity(0) == before


def test_a_process_is_awaited_by_its_output_and_stopped_with_its_children(tmp_path: Path) -> None:
    script = 'echo starting; (trap "" TERM; exec sleep 60) & echo "ready $!"; wait'
    process = Process("shell", ["sh", "-c", script], log=tmp_path / "log")
    line = process.await_output("ready", 5)
    child = int(line.split()[1])
    process.stop(timeout_s=1)
    await_true("the child is gone", lambda: not Path(f"/proc/{child}").exists(), 5)
    process.stop()


def test_a_process_ends_with_a_parent_that_was_killed_at_once(tmp_path: Path) -> None:
    (tmp_path / "setpriv").write_text(LATE)
    (tmp_path / "setpriv").chmod(0o755)
    start = f"Process('late', ['sleep', '600'], log=Path({str(tmp_path / 'log')!r})).pid"
    program = f"from topo.testbed.processes import *; print({start}, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, check=False
    )
    child = int(done.stdout)
    line = Path(f"/proc/{child}/cmdline")
    try:
        await_true("the child has ended", lambda: not (line.exists() and line.read_bytes()), 60)
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def test_a_process_that_ends_early_is_reported_with_its_log(tmp_path: Path) -> None:
    process = Process("shell", ["sh", "-c", "echo no such port; exit 3"], log=tmp_path / "log")
    with pytest.raises(SetupError, match=r"exit code 3.*\n.*no such port"):
        process.await_output("ready", 5)


def test_a_listening_port_is_seen_without_connecting_to_it() -> None:
    with socket_in(os.getpid(), 2, 1) as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not listening(os.getpid(), port)
        server.listen()
        assert listening(os.getpid(), port)


def test_a_namespace_that_is_not_there_is_named() -> None:
    with pytest.raises(SetupError, match="process 4194305"):
        socket_in(4194305, 2, 1)


def test_the_first_signal_unwinds_and_the_second_does_not_disturb() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted, match="SIGTERM"), interruptible():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_is_missing_is_one_line_with_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setitem(prerequisites.PACKAGE_OF, "no-such-program", "its-package")
    with pytest.raises(SetupError, match=r"^not installed: its-package; get them by: apt-get install its-package$"):
        prerequisites.require_prerequisites()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="sudo"):
        prerequisites.require_prerequisites()


def refused(program: str, **environment: str) -> str:
    """Run a program with environment variables under which it refuses to start; return its error message."""
    inherited = {name: value for name, value in os.environ.items() if name != "SDE_INSTALL"}
    done = subprocess.run(
        [sys.executable, "-m", program],
        cwd=REPOSITORY,
        env=inherited | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    return done.stderr


def test_without_mininet_the_remedy_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mininet").mkdir()
    (tmp_path / "mininet/__init__.py").write_text("raise ImportError('none here')\n")
    remedy = "sluice lab: Mininet cannot be imported (none here): apt-get install mininet\n"
    assert refused("topo.demo", PYTHONPATH=str(tmp_path)) == remedy


def test_every_package_the_lab_asks_for_is_installed_by_make() -> None:
    listed = (REPOSITORY / "topo" / "packages.txt").read_text().split()
    assert set(prerequisites.PACKAGE_OF.values()) <= set(listed)


def test_the_switch_is_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWITCH", raising=False)
    assert switch_kind() == "embedded"
    monkeypatch.setenv("SWITCH", "ovs")
    with pytest.raises(SetupError, match="embedded, bmv2"):
        switch_kind()


def test_a_missing_switch_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SLUICE_SWITCH", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="cargo build"):
        SluiceSwitch.executable()
    with pytest.raises(SetupError, match="simple_switch_grpc is not on PATH"):
        Bmv2Switch.executable()


@pytest.mark.parametrize("program", ["demo", "lab"])
def test_without_tofinos_model_one_line_names_what_is_missing(program: str, tmp_path: Path) -> None:
    assert refused(f"topo.{program}", SWITCH="tofino") == (
        f"sluice {program}: SWITCH=tofino: $SDE_INSTALL is not set; name an installation of open-p4studio, whose bin/ "
        "has tofino-model and bf_switchd (docs/guide/tofino.md)\n"
    )
    assert refused(f"topo.{program}", SWITCH="tofino", SDE_INSTALL=str(tmp_path)) == (
        f"sluice {program}: SWITCH=tofino: {tmp_path}/bin, of $SDE_INSTALL, has no tofino-model and no bf_switchd\n"
    )


@pytest.mark.parametrize("line", ["", "100", "a b", "0 10", "100 -1", "1 2 3"])
def test_a_load_that_makes_no_sense_is_answered_with_the_usage(line: str) -> None:
    with pytest.raises(SetupError, match="load"):
        parse_load(line)


def test_a_machine_without_namespaces_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "mnexec"
    fake.write_text("#!/bin/sh\necho 'mount: Invalid argument' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(SetupError, match=r"no network namespace can be made here .*Invalid argument"):
        prerequisites.require_prerequisites()


def test_signals_are_as_before_after_a_cleaning_up() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with undisturbed():
        assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * len(SIGNALS)
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        (
            "net.ipv4.tcp_syn_retries = 5\nnet.ipv4.tcp_syn_linear_timeouts = 4\n",
            (5, 4),
            "SYNs retransmitted after 1 s, 4 times steadily, then doubling",
        ),
        ("net.ipv4.tcp_syn_retries = 6\n", (6, 0), "SYNs retransmitted after 1 s, doubling"),
    ],
)
def test_syn_timers_are_read_where_the_host_is(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[int, int], said: str
) -> None:
    asked: list[int] = []

    def run_in(pid: int, argv: list[str]) -> str:
        asked.append(pid)
        assert argv == ["sysctl", "-e", "net.ipv4.tcp_syn_retries", "net.ipv4.tcp_syn_linear_timeouts"]
        return text

    monkeypatch.setattr(nodes, "run_in", run_in)
    assert nodes.syn_sysctls(17) == expected
    assert nodes.syn_retransmission(18) == said
    assert asked == [17, 18]


@pytest.mark.parametrize("target", ["demo", "lab", "ptf"])
def test_make_names_what_tofinos_model_lacks_before_set_up(target: str) -> None:
    ours = {"SDE_INSTALL", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    command = ["make", "--no-print-directory", "--dry-run", target]
    done = subprocess.run(
        command, cwd=REPOSITORY, env={**environment, "SWITCH": "tofino"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert "SWITCH=tofino needs $SDE_INSTALL" in done.stderr and done.stderr.count("\n") == 1
