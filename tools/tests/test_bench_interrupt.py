"""Ctrl-C in the middle of a bench leaves nothing behind, and the results of an earlier one alone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "switch/target/release/examples/packet_load"
SETTINGS = [Path("/proc/sys/net/netfilter/nf_conntrack_max"), Path("/sys/module/nf_conntrack/parameters/hashsize")]


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that work for the bench of this checkout."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "sluice-bench-" in line or str(folder / "switch/target/release") in line:
            found.append(line)
    return found


def interfaces() -> set[str]:
    """Network interfaces that a bench makes and this namespace has: ends of links before they are moved."""
    names = {path.name for path in Path("/sys/class/net").iterdir()}
    return names & {f"{end}-eth{port}" for end in ("load", "sw") for port in (1, 2)}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
@pytest.mark.skipif(not EXAMPLE.exists(), reason="needs `make bench` to have built the load generator")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_behind(number: signal.Signals, tmp_path: Path) -> None:
    before = {path: path.read_text() for path in SETTINGS if path.exists()}
    others = processes_in(ROOT)
    links = interfaces()
    command = [sys.executable, "-m", "tools.bench", "--quick", "--who", "copy-forward", "--output", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [process.stdout.readline(), process.stdout.readline()]
        assert "packets/s" in said[1]
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "everything it started is gone" in errors
    assert not list(tmp_path.iterdir()), "a part of the figures would take the place of all of them"
    assert sorted(processes_in(ROOT)) == sorted(others)
    assert interfaces() == links
    assert {path: path.read_text() for path in SETTINGS if path.exists()} == before
