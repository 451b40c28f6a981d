"""Tests of the experiment on the difference in SYN losses between sluice's equal split and kernel DNAT."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence

from experiments import r_baseline
from experiments.experiment import Record
from experiments.r_baseline import BEHIND_HOP, EQUAL, IPTABLES
from experiments.tests.small import goal_of, report_text
from experiments.turns import turns_of
from experiments.variants import Variant

SLEEPS = 8


def runs(variant: Variant, connect_ms: Sequence[float], sleeps: Sequence[float]) -> list[Record]:
    made: list[Record] = []
    for number, (ms, each) in enumerate(zip(connect_ms, sleeps, strict=True), start=1):
        server = {"opened": 1500, "overflows": 9, "turns": each + 1, "sleeps": each, "waited_ms": 200.0}
        times = {"mean_ms": ms, "given_up": 3}
        result = {"connect": times, "transfer": times, "servers": {"s1": server, "s3": server}}
        made.append(Record(f"{variant.name} #{number}", {"variant": variant.name}, result, 0.0, 1.0, 0.0))
    return made


def test_a_hop_that_costs_as_much_explains_the_gap() -> None:
    plain = runs(IPTABLES, (200.0, 260.0, 230.0), (1.5, 1.6, 1.4))
    records = [
        *plain,
        *runs(BEHIND_HOP, (600.0, 700.0, 650.0), (2.3, 2.4, 2.2)),
        *runs(EQUAL, (640.0, 720.0, 690.0), (2.5,) * 3),
    ]
    text = report_text(r_baseline.EXPERIMENT, records)
    assert text.count("kernel DNAT") == 2 and "| 2.50 ± 0.00 |" in text
    report = r_baseline.report(records)
    assert goal_of(report, "are level in connect time").reached
    assert goal_of(report, f"alone: {EQUAL.title}").reached and goal_of(report, f"alone: {BEHIND_HOP.title}").reached
    cheap = [*plain, *runs(BEHIND_HOP, (210.0, 250.0, 230.0), (1.5, 1.6, 1.4)), *records[-3:]]
    report = r_baseline.report(cheap)
    assert not goal_of(report, "are level in connect time").reached
    assert not goal_of(report, f"alone: {BEHIND_HOP.title}").reached


def test_turns_and_sleeps_of_a_process_and_its_children_are_counted() -> None:
    script = f"for one in $(seq {SLEEPS}); do sleep 0.01; done; read line"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE) as shell:
        before = turns_of(shell.pid)
        deadline = time.monotonic() + 20
        while turns_of(shell.pid).since(before).sleeps < SLEEPS and time.monotonic() < deadline:
            time.sleep(0.01)
        seen = turns_of(shell.pid).since(before)
        assert seen.turns >= seen.sleeps >= SLEEPS
        assert seen.waited_s >= 0 and turns_of(os.getpid()).turns > 0
        shell.communicate(b"\n")
