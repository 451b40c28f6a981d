"""Test that `sluice replay` on a capture of the lab makes the decisions of the live controller, and draws them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from topo.labs.web import Lab
from topo.labs.webservers import PAGE
from topo.measure.capture import Recorder
from topo.plan.load import Load
from topo.plan.network import Balance
from topo.testbed.nodes import switch_kind
from topo.tests import needs

pytestmark = needs.ALONE

SECONDS = 12.0
LOAD_PER_S = 120.0
STEP = 0.1 / 3
"""Size of the first weight change in paper mode: Delta (0.1) times the equal share of three servers."""


def test_a_replayed_capture_decides_as_the_live_controller_did(tmp_path: Path) -> None:
    """Decisions from equal counts must be equal. A live reading may fall between a SYN and its SYN-ACK while the
    replay's reading does not. In the replay, paper mode may then move weight a period earlier or later than live, so
    ratios may differ by one step."""
    done, plot = replayed(tmp_path)
    comparison = re.search(
        r"(\d+) compared, .* ratios differ by at most ([\d.]+), SYNs of an interval by (\d+)(?:; .* from (.*))?$",
        done.stdout,
    )
    assert comparison is not None, done.stdout[-2000:] + done.stderr
    compared, difference, syns = int(comparison[1]), float(comparison[2]), int(comparison[3])
    assert compared >= SECONDS - 2, comparison[0]
    # A late reading includes SYNs of the next interval; a reading late by more than half a period would belong to
    # another interval.
    assert syns < LOAD_PER_S / 2, comparison[0]
    assert done.returncode == 0 or (difference < 1.01 * STEP and comparison[4].startswith("other counts: ")), (
        comparison[0]
    )
    assert plot.read_bytes().startswith(b"\x89PNG")


def replayed(directory: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Record a load in the lab, and replay the capture; return the result of `sluice replay`, and the file of its
    plot."""
    capture, plot = directory / "lab.pcap", directory / "replay.png"
    with Lab(switch_kind(), Balance("paper", 1.0, 5.0)) as lab:
        lab.break_server("s3")
        recorder = Recorder(lab.switch.pid, capture)
        lab.at_end(recorder.close)
        httperf = lab.start_load(Load(LOAD_PER_S * lab.switch.load_share, SECONDS), PAGE)
        httperf.result()
        lab.await_served()
        recorder.stop()
        command = [str(Path(sys.executable).parent / "sluice"), "replay", str(capture), "--plot", str(plot)]
        command += ["--config", str(lab.directory / "sluice.yaml"), "--trace", str(lab.controller.trace)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        moved = len(lab.controller.weight_changes())
    assert moved > 0, "the loaded server lost nothing: there was nothing to decide"
    return done, plot
