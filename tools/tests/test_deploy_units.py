"""Tests of deploy/systemd: systemd accepts the units, they are sandboxed, and the programs need only few
capabilities."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from fakesystemd import PATIENCE_S, Systemd, hanging

from topo.testbed.switches.embedded import BINARY

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
INSTALLED = "/opt/sluice/bin"
PROGRAMS = {"sluice": ROOT / ".venv/bin/sluice"} | {
    name: BINARY.with_name(name) for name in ("sluice-switch", "sluice-agent", "sluice-tofino")
}
EXPOSURE = 2.5
"""The highest exposure level that a unit may have in `systemd-analyze security`, from 0 (best) to 10; below 5 is OK."""
NOBODY = "65534"
WATCHDOG_S = 0.6

systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="apt-get install systemd")
built = pytest.mark.skipif(not BINARY.exists(), reason="the embedded switch is not built: `make setup` builds it")


def settings(unit: str) -> dict[str, str]:
    """Return the last value of each key of a unit."""
    text = (ROOT / "deploy/systemd" / unit).read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """Write copies of the units with the paths of the programs that this checkout has built, since systemd checks that
    the programs exist; the agent's unit is for eth0."""
    paths: list[Path] = []
    for unit in UNITS:
        paths.append(tmp_path / unit.name.replace("@", "@eth0"))
        text = unit.read_text()
        for name, program in PROGRAMS.items():
            text = re.sub(rf"{INSTALLED}/{name}(?= )", str(program), text)
        paths[-1].write_text(text)
    return paths


@systemd
@built
def test_systemd_takes_them(units: list[Path]) -> None:
    command = ["systemd-analyze", "verify", "--man=no", *units]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@systemd
def test_they_leave_little_open(units: list[Path]) -> None:
    for unit in units:
        command = ["systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={EXPOSURE * 10:.0f}"]
        done = subprocess.run([*command, unit], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.mark.skipif(shutil.which("systemd-sysusers") is None, reason="apt-get install systemd")
def test_their_user_is_made(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    command = ["systemd-sysusers", f"--root={tmp_path}", ROOT / "deploy/systemd/sluice.sysusers"]
    subprocess.run(command, check=True, capture_output=True)
    (line,) = (tmp_path / "etc/passwd").read_text().splitlines()
    assert line.startswith("sluice:x:") and line.endswith(":/nonexistent:/usr/sbin/nologin")
    assert {settings(unit.name)["User"] for unit in UNITS} == {"sluice"}


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that all users may read."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def in_namespace(public: Path, unit: str, options: str, before: str) -> list[str]:
    """Copy a unit's program to `public`; return a command that runs the copy in a new network namespace, on eth1.

    `before`: the command that starts the program, such as `timeout 3`; "": none.
    """
    words = settings(unit)["ExecStart"].replace("%I", "eth1").replace("$PORTS", options).replace("$AGENT", options)
    name = Path(words.split()[0]).name
    shutil.copy(PROGRAMS[name], public / name)
    links = "ip link set lo up && ip link add eth1 type veth peer name far && ip link set eth1 up"
    line = f"mount -t sysfs none /sys && {links} && exec {before} {words.replace(INSTALLED, str(public))}"
    return ["unshare", "--net", "--mount", "sh", "-c", line]


def started(public: Path, unit: str, capabilities: list[str], options: str) -> str:
    """Run a unit's program for three seconds as an unprivileged user with these capabilities; return its output."""
    caps = ",".join(["-all", *(f"+{capability.removeprefix('CAP_').lower()}" for capability in capabilities)])
    drop = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --no-new-privs"
    drop += f" --inh-caps={caps} --ambient-caps={caps} --bounding-set={caps}"
    command = in_namespace(public, unit, options, f"timeout 3 {drop}")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


PORT = "-i 1@eth1"
AGENT = "--address 10.0.3.31 --gateway 10.0.3.1 --control 127.0.0.1:9471"


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@built
@pytest.mark.parametrize(
    ("unit", "options", "serves"),
    [
        ("sluice-switch.service", PORT, "serving P4Runtime on 127.0.0.1:9559, device 1, ports 1@eth1"),
        ("sluice-agent@.service", AGENT, "sluice-agent: 10.0.3.31 on eth1"),
    ],
)
def test_capabilities_are_enough_in_place_of_root(public: Path, unit: str, options: str, serves: str) -> None:
    capabilities = settings(unit)["AmbientCapabilities"].split()
    assert capabilities == settings(unit)["CapabilityBoundingSet"].split()
    assert serves in started(public, unit, capabilities, options)
    assert serves not in started(public, unit, ["CAP_NET_ADMIN"], options), "else they are not needed"


@asynccontextmanager
async def supervised(command: list[str], systemd: Systemd, **more: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a program with the environment of a service that systemd has started."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=systemd.environment(WATCHDOG_S) | more,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        systemd.close()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@built
@pytest.mark.parametrize(
    ("unit", "options", "thread"),
    [("sluice-switch.service", PORT, "data-plane"), ("sluice-agent@.service", AGENT, "engine")],
)
async def test_systemd_hears_that_packets_are_handled(public: Path, unit: str, options: str, thread: str) -> None:
    assert (settings(unit)["Type"], "WatchdogSec" in settings(unit)) == ("notify", True)
    systemd = Systemd(str(public / "notify"))
    async with supervised(in_namespace(public, unit, options, ""), systemd) as process:
        assert await systemd.hears("READY=1") == ["READY=1"]
        assert process.stdout is not None
        assert (await process.stdout.readline()).startswith(b"sluice-"), "it serves"
        for _ in range(3):
            assert await systemd.hears("WATCHDOG=1") == ["WATCHDOG=1"]
        with hanging(process.pid, thread):
            while not await systemd.silent_for(2 * WATCHDOG_S):  # messages from before the hang may still arrive
                pass
        await systemd.hears("WATCHDOG=1")
        process.terminate()
        assert "STOPPING=1" in await systemd.hears("STOPPING=1")
        async with asyncio.timeout(PATIENCE_S):
            assert await process.wait() == 0


SWITCH = [str(BINARY), "--no-p4", "--", "--grpc-server-addr", "127.0.0.1:0"]


@built
async def test_an_abstract_socket_and_one_that_goes_away() -> None:
    name = f"@sluice-{os.getpid()}"
    systemd = Systemd(name)
    async with supervised(SWITCH, systemd) as process:
        await systemd.hears("WATCHDOG=1")
        process.send_signal(signal.SIGSTOP)
        while not await systemd.silent_for(2 * WATCHDOG_S):
            pass
        process.send_signal(signal.SIGCONT)
        await systemd.hears("WATCHDOG=1")
        systemd.close()
        await asyncio.sleep(2 * WATCHDOG_S)
        second = Systemd(name)
        await second.hears("WATCHDOG=1")
        second.close()


@built
@pytest.mark.parametrize(
    "more",
    [{"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "0"}],
    ids=["another's", "no number", "none"],
)
async def test_no_sign_of_life_where_none_is_wanted(tmp_path: Path, more: dict[str, str]) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    async with supervised(SWITCH, systemd, **more) as process:
        await systemd.hears("READY=1")
        assert await systemd.silent_for(3 * WATCHDOG_S)
        process.terminate()
        assert await systemd.hears("STOPPING=1") == ["STOPPING=1"]


@built
@pytest.mark.parametrize("name", ["/nowhere/notify", "@" + 200 * "x", "", "vsock:2:1"])
async def test_a_socket_that_is_none_disturbs_nothing(tmp_path: Path, name: str) -> None:
    systemd = Systemd(str(tmp_path / "notify"))
    async with supervised(SWITCH, systemd, NOTIFY_SOCKET=name) as process:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert b"serving P4Runtime" in await process.stdout.readline()
            await asyncio.sleep(WATCHDOG_S)
            process.terminate()
            assert await process.wait() == 0
