"""Checks that Ctrl-C during a bench leaves no processes or interfaces behind, and that earlier results remain."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "target/release/examples/packet_load"
SETTINGS = [Path("/proc/sys/net/netfilter/nf_conntrack_max"), Path("/sys/module/nf_conntrack/parameters/hashsize")]


def marked(mark: str) -> dict[int, str]:
    """Return the command lines, by pid, of the processes with the mark in their environment, which children inherit.

    Command lines alone would not identify them: tests that run at the same time start the same programs.
    """
    commands: dict[int, str] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                line = (place / "cmdline").read_bytes().replace(b"\0", b" ")
                commands[int(place.name)] = line.decode(errors="replace")
        except OSError:
            continue
    return commands


def processes_of(mark: str) -> list[str]:
    """Return the command lines of the processes that have the mark."""
    return list(marked(mark).values())


def interfaces() -> set[str]:
    """Return the bench's network interfaces in this namespace: ends of links that have not been moved yet."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    return names & {f"{end}-eth{port}" for end in ("load", "sw") for port in (1, 2)}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.skipif(not EXAMPLE.exists(), reason="needs `make bench` to have built the load generator")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind(number: signal.Signals, tmp_path: Path) -> None:
    before = {path: path.read_text() for path in SETTINGS if path.exists()}
    mark = f"STARTED_BY={tmp_path}"
    environment = {**os.environ, "STARTED_BY": str(tmp_path)}
    links = interfaces()
    command = [sys.executable, "-m", "tools.bench", "--quick", "--who", "copy-forward", "--output", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        assert "packets/s" in said[1]
        assert len(processes_of(mark)) > 1
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "everything it started is gone" in errors
    assert not list(tmp_path.iterdir()), "a part of the figures would take the place of all of them"
    assert processes_of(mark) == []
    assert interfaces() == links
    assert {path: path.read_text() for path in SETTINGS if path.exists()} == before
