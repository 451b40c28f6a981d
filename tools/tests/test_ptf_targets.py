"""The packet tests' harness apart from packets: port maps, and its session with a Tofino under Stratum."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import tofinoprogram
from finsy import P4TableEntry
from harness import entries, plan, portmap
from harness.client import Client
from sluice.names import Table
from sluice.switch import pipeline
from stratumswitch import StratumSwitch

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


@pytest.fixture
def stratum() -> Generator[StratumSwitch]:
    """A switch on a thread of its own, for a session that blocks."""
    loop, fake = asyncio.new_event_loop(), StratumSwitch()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def do(step: Callable[[], object]) -> None:
        asyncio.run_coroutine_threadsafe(step(), loop).result(30)  # type: ignore[arg-type]

    do(fake.start)
    yield fake
    do(fake.stop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_one_shot_groups_become_groups_of_members(stratum: StratumSwitch, tmp_path: Path) -> None:
    program = pipeline.load(tofinoprogram.write(tmp_path / "tofino"))
    client = Client(stratum.address, 1, program, 1)
    client.push_pipeline()
    client.write([(+entries.ratios(plan.WEB, {plan.S1: 3, plan.S2: 1})).encode_update(program.schema)])
    assert stratum.weights(plan.WEB.id) == {1: 3, 2: 1}
    client.close()
    again = Client(stratum.address, 1, program, 2)
    again.resume()
    (found,) = again.find([P4TableEntry(Table.CHOOSE)])
    members = found.table_entry.action.action_profile_action_set.action_profile_actions
    assert sorted(member.weight for member in members) == [1, 3]
    again.write([(~entries.ratios(plan.WEB, {plan.S2: 2})).encode_update(program.schema)])
    assert stratum.weights(plan.WEB.id) == {2: 2}
    assert stratum.surplus() == (0, 0)
    again.close()


def test_listing_the_tests_replaces_no_device() -> None:
    """ptf replaces the file that it logs to."""
    command = [sys.executable, str(ROOT / "ptf-tests/run.py"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert listed.returncode == 0, listed.stderr
    assert "intake.WrongVersion" in listed.stdout + listed.stderr
    assert Path(os.devnull).is_char_device()
