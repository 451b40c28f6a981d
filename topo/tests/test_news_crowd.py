"""Tests of a short flash crowd in the lab: the controller detects and limits the crowd, and bystanders are not
harmed."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from topo.labs.crowds.network import TRACE
from topo.labs.crowds.run import BULK_FILE, CAPTURE, Run, is_done, make_run, read_records, switch_packets
from topo.plan.crowd.measures import figures
from topo.plan.crowd.network import TARGET
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NONE, PRODUCTION, Settings
from topo.plan.outcomes import Ending
from topo.testbed.controller import CONFIGURATION
from topo.testbed.nodes import KERNEL, switch_kind
from topo.tests import needs

pytestmark = needs.LONG

SETTINGS = replace(
    Settings(),
    period_s=32.0,
    before=4,
    after=3,
    quiet_per_s=10.0,
    crowd_per_s=60.0,
    ramp_s=20.0,
    link_bit_per_s=1e6,
    bulk_bit_per_s=160e3,
    web_per_s=2.0,
)
"""Settings with half the rates and half the link of Chen & Heidemann's experiments, light enough for a busy machine."""


def test_a_crowd_is_noticed_and_limited_and_connections_stay(tmp_path: Path) -> None:
    run = Run(NETWORK, PRODUCTION, NETWORK.settle(SETTINGS))
    directory = tmp_path / "run"
    make_run(run, switch_kind(), directory, lambda left: None)
    assert is_done(run, switch_kind(), directory)
    assert not is_done(replace(run, static_per_s=1.0), switch_kind(), directory)
    records = read_records(directory)

    passed = switch_packets(directory)
    assert passed is not None and passed["received"] > 0
    assert (passed["lost_before"], passed["lost_after"]) == (0, 0), "but for what the bottleneck dropped"
    assert figures(records, records.window()).switch_packets_per_s > 0
    assert records.alarm_s() is not None
    limited = [row for row in records.rows if row.limit_per_s > 0 and row.time_s > records.onset_s]
    assert limited
    assert sum(row.refused_per_s for row in limited) > 0
    # The bulk transfer's connection, established before the crowd, is still open afterwards and transfers data.
    assert (directory / BULK_FILE).read_text().splitlines()[-1].split(",")[2] == "1"
    assert sum(size for moment, size in records.bulk if moment > records.onset_s + records.period_s) > 0
    # Some clients were refused, others were served, and no connection was broken.
    target = [outcome for outcome in records.outcomes if outcome.server == TARGET and outcome.due_s > records.onset_s]
    assert any(outcome.ending is Ending.FINISHED for outcome in target)
    assert any(outcome.retries for outcome in target)
    assert not any(outcome.ending in (Ending.BROKEN, Ending.REFUSED) for outcome in target)


def test_without_the_switch_the_kernel_carries_the_crowd_and_refuses_no_request(tmp_path: Path) -> None:
    run = Run(NETWORK, NONE, NETWORK.settle(replace(SETTINGS, before=1, after=2)))
    directory = tmp_path / "run"
    make_run(run, KERNEL, directory, lambda left: None)
    assert is_done(run, KERNEL, directory) and not is_done(run, switch_kind(), directory)
    records = read_records(directory)
    assert records.rows == [] and switch_packets(directory) is None
    quiet = figures(records, records.quiet())
    assert quiet.admitted_per_s > 0 and quiet.bystander_goodput_kbps > 0 and quiet.finished_per_s > 0
    assert math.isnan(quiet.ar_kbps) and math.isnan(quiet.bystander_refused)
    assert figures(records, records.window()).bottleneck_used > quiet.bottleneck_used


@pytest.mark.calm
def test_a_replayed_crowd_decides_as_the_live_controller_did(tmp_path: Path) -> None:
    """The replay of a capture makes the decisions of the live controller (published NEWS). A capture contains neither
    the sampled packets nor the remembered clients, but these do not affect the compared decisions."""
    run = Run(NETWORK, HOT_SPOT, NETWORK.settle(SETTINGS))
    directory = tmp_path / "run"
    make_run(run, switch_kind(), directory, lambda left: None, capture=True)
    config = yaml.safe_load((directory / CONFIGURATION).read_text())
    assert config["news"]["mode"] == "paper"
    command = [str(Path(sys.executable).parent / "sluice"), "replay", str(directory / CAPTURE)]
    command += ["--config", str(directory / CONFIGURATION), "--trace", str(directory / TRACE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert "the same decisions" in done.stdout
    assert any(row.limit_per_s > 0 for row in read_records(directory).rows), "there was nothing to decide"
