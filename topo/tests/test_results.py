"""Tests of the demo's results: content of summary.json, failing of each check, drawing of the picture."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from topo.demo import __main__ as demo
from topo.demo.phases import Phase, Sample
from topo.demo.plot import draw
from topo.demo.summary import Results, checks, summary, table
from topo.labs.crowds import __main__ as news
from topo.labs.crowds import series
from topo.measure.counts import Counts, Observation, PacketCounts, read_status
from topo.measure.downloads import Download
from topo.measure.handshakes import ConnectTimes
from topo.measure.httperf import HttperfResult
from topo.plan.load import Load
from topo.plan.network import SERVER_NAMES
from topo.testbed.controller import weight_changes
from topo.testbed.errors import SetupError


def observation(time: float, ratios: Mapping[str, float], syn: int, lost: int) -> Observation:
    counts = {name: Counts(syn, syn, 0, syn, 0) for name in SERVER_NAMES}
    counts["s3"] = Counts(syn + lost, syn, lost // 50, syn, 0)
    return Observation(time, ratios, dict.fromkeys(SERVER_NAMES, 0.0), counts, {}, 0, {}, 0)


def phase(name: str, start: float, last_ratio: float, seconds: list[float]) -> Phase:
    other = (1 - last_ratio) / 2
    equal = dict.fromkeys(SERVER_NAMES, 1 / 3)
    times = ConnectTimes(len(seconds) + 1, seconds)
    samples = [
        Sample(observation(start, equal, 0, 0), ConnectTimes(0, [])),
        Sample(observation(start + 5, {"s1": other, "s2": other, "s3": last_ratio}, 100, 50), times),
        Sample(observation(start + 12, equal, 200, 60), times),
    ]
    mean_ms = 1000 * sum(seconds) / len(seconds)
    httperf = HttperfResult(len(seconds) + 1, len(seconds), 10.0, mean_ms, 1, 0, 0, 0)
    return Phase(name, Load(30, 10), start, start + 11, httperf, times, samples)


@pytest.fixture
def results() -> Results:
    return Results(
        switch="embedded",
        equal=phase("equal", 1000.0, 1 / 3, [0.0] * 60 + [1.0] * 40),
        r=phase("r", 1020.0, 0.1, [0.0] * 95 + [1.0] * 5),
        kernel=ConnectTimes(100, [0.0] * 80 + [1.0] * 20),
        loaded="s3",
        changes=[1022.0, 1023.0],
        downloads=[Download(1019.0, 1031.0, "")],
        packets=PacketCounts(received=10, sent=9, forwarded=9, dropped=1, punted=0),
        drops={"ttl_exceeded": 1},
    )


def test_a_good_run_passes_every_check(results: Results) -> None:
    assert all(checks(results).values())


def test_the_summary_is_as_promised(results: Results) -> None:
    content = json.loads(json.dumps(summary(results)))
    assert list(content) == [
        "switch",
        "phases",
        "kernel_dnat",
        "mean_connect_time_by_r_as_part_of",
        "ratios_final",
        "weight_changes",
        "broken_connections",
        "drops",
        "checks",
    ]
    assert content["phases"]["equal"] == {
        "offered_per_s": 10.1,
        "connections": 101,
        "failed": 1,
        "connect_ms": {"mean": 400.0, "median": 0.0, "p99": 1000.0},
        "per_server": {
            "s1": {"syn": 200, "synack": 200, "synack_again": 0, "completed": 200, "r": 0.0},
            "s2": {"syn": 200, "synack": 200, "synack_again": 0, "completed": 200, "r": 0.0},
            "s3": {"syn": 260, "synack": 200, "synack_again": 1, "completed": 200, "r": 0.3},
        },
    }
    assert content["kernel_dnat"] == {"connections": 100, "connect_ms": {"mean": 200.0, "median": 0.0, "p99": 1000.0}}
    assert content["mean_connect_time_by_r_as_part_of"] == {"equal_split": 0.125, "kernel_dnat": 0.25}
    assert "12% of that by the equal split, 25% of that by kernel DNAT's equal split" in table(results)
    assert content["ratios_final"] == {"s1": 0.45, "s2": 0.45, "s3": 0.1}, "the ratios at the end of the load"
    assert (content["weight_changes"], content["broken_connections"]) == (2, 0)


def test_each_check_fails_for_its_own_reason(results: Results) -> None:
    reset = replace(results.r, httperf=replace(results.r.httperf, resets=1))
    slow = phase("r", 1020.0, 0.1, [0.0] * 80 + [1.0] * 20)
    bad = {
        "equal_split_above_100_ms": replace(
            results, equal=phase("equal", 1000.0, 1 / 3, [0.0] * 95 + [1.0] * 5), r=phase("r", 1020.0, 0.1, [0.0])
        ),
        "connect_time_at_most_a_quarter": replace(results, r=slow),
        "loaded_ratio_at_least_halved": replace(results, r=phase("r", 1020.0, 0.17, [0.0] * 95 + [1.0] * 5)),
        "downloads_span_every_change": replace(results, changes=[1022.0, 1032.0]),
        "no_connection_broken": replace(results, r=reset),
        "switch_lost_nothing": replace(results, packets=replace(results.packets, sent=8)),
        "capture_agrees_with_httperf": replace(
            results, r=replace(results.r, httperf=replace(results.r.httperf, connect_ms=60.0))
        ),
    }
    for name, case in bad.items():
        assert [failed for failed, holds in checks(case).items() if not holds] == [name]
    nothing_changed = checks(replace(results, changes=[]))
    assert not nothing_changed["weights_changed"]


def test_a_broken_download_is_counted(results: Results) -> None:
    broken = replace(results, downloads=[*results.downloads, Download(1019.0, 1025.0, "3 of 10 bytes, reset")])
    assert summary(broken)["broken_connections"] == 1
    assert "long downloads whole: 1 of 2; broken connections: 1" in table(broken)


def test_the_picture_is_drawn_as_png_and_svg(results: Results, tmp_path: Path) -> None:
    files = [tmp_path / "demo.png", tmp_path / "demo.svg"]
    draw((results.equal, results.r), "s3", files)
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert b"R decides" in files[1].read_bytes() or b"<svg" in files[1].read_bytes()


def test_weight_changes_are_read_from_the_trace() -> None:
    decisions = [("web", 1.0, 0), ("web", 2.0, 1), ("other", 2.5, 9), ("web", 3.0, 1), ("web", 4.0, 2)]
    lines = [json.dumps({"service": name, "time": time, "weight_changes": n}) for name, time, n in decisions]
    assert weight_changes(lines) == [2.0, 4.0]


def test_a_controller_without_its_switch_is_an_error(results: Results) -> None:
    with pytest.raises(SetupError, match="it is standby"):
        read_status({"role": "standby"}, 0.0)


def full_disk(*arguments: object, **more: object) -> NoReturn:
    """Raise the error of a write on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", ["demo", "news", "phases"])
def test_a_full_disk_is_an_error_with_the_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    monkeypatch.setattr(demo, "run_demo", full_disk)
    monkeypatch.setattr(news, "make_run", full_disk)
    monkeypatch.setattr(series, "make_if_missing", full_disk)

    def never(*run: object) -> bool:
        del run
        return False

    monkeypatch.setattr(news, "is_done", never)
    place = ["--output", str(tmp_path)]
    ends = {
        "demo": lambda: demo.main(place),
        "news": lambda: news.main(place),
        "phases": lambda: series.main(["phases", *place]),
    }
    assert ends[what]() == 1
    said = f"sluice {what}: {tmp_path}: No space left on device: mend that and run it again"
    assert said in capsys.readouterr().err
