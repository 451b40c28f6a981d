"""Tests of those parts of the packet tests' harness that need no packets: port maps, and the list of tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import portmap

from tools.p4 import ROOT


def test_a_port_map_is_in_its_own_order(tmp_path: Path) -> None:
    path = tmp_path / "ports.txt"
    path.write_text("# a box\n136 eth2\n128 eth1   # clients\n\n137 eth3\n138 eth4\n139 eth5\n")
    assert portmap.read(path) == [(136, "eth2"), (128, "eth1"), (137, "eth3"), (138, "eth4"), (139, "eth5")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("eth1 1\n", "line 1: 'eth1 1' is not a port number and an interface"),
        ("1 eth1\n1 eth2\n", "line 2: port 1 or eth2 is there twice"),
        ("1 eth1\n2 eth1\n", "line 2: port 2 or eth1 is there twice"),
        ("1 eth1\n", "the tests need 5 ports, and 1 are there"),
    ],
)
def test_what_is_no_port_map_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "ports.txt"
    path.write_text(text)
    with pytest.raises(portmap.PortMapError, match=said):
        portmap.read(path)


def test_listing_the_tests_replaces_no_device() -> None:
    """ptf replaces its log file by a new one, so it would replace /dev/null if `--list` logged to this device."""
    command = [sys.executable, str(ROOT / "ptf-tests/run.py"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert listed.returncode == 0, listed.stderr
    assert "intake.WrongVersion" in listed.stdout + listed.stderr
    assert Path(os.devnull).is_char_device()
