"""Tests of a World Cup 98 log as the load of the target: the requests that clients replay, and the errors for unusable
logs."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path

import pytest

from topo.labs.crowds.__main__ import main, parse_options
from topo.plan.crowd.network import CROWD
from topo.plan.crowd.scenarios import NETWORK, SLOW_CLIENTS, Settings
from topo.plan.crowd.traffic import target_requests, write_logs
from topo.plan.requests import LogFormatError, read_log
from topo.plan.worldcup import Record, write_records

SETTINGS = replace(Settings(), k=4.0, period_s=10.0, before=2, after=2, onset_phase=0.0, log_onset_s=50.0)
"""Settings of a crowd 20 s after the beginning of a load of 40 s: seconds 30 to 70 of the log."""
EPOCH = 894_000_000


def write(path: Path, seconds: int) -> Settings:
    """Write a log with one request per second, and return settings that use it. Each request has another client, and a
    size in bytes that equals the number of its second."""
    write_records(path, (Record(EPOCH + second, 6 * second + 1, 0, second) for second in range(seconds)))
    return replace(SETTINGS, log=str(path))


def test_clients_replay_the_logs_window_compressed(tmp_path: Path) -> None:
    settings = write(tmp_path / "wc", 100)
    logs = write_logs(tmp_path, target_requests(NETWORK, settings), iter(()), settings.k)
    replayed = {host.name: list(read_log(logs[host.name])) for host in CROWD}
    requests = replayed.pop("c2")
    assert not any(replayed.values()), "the host of every sixth client"
    # The first two requests fall into SILENCE_S at the beginning and are omitted.
    assert [(request.time_s, request.client, request.size) for request in requests] == [
        (pytest.approx((second - 30) / 4), second, second) for second in range(32, 70)
    ]


def test_one_region_of_a_log_is_taken(tmp_path: Path) -> None:
    records = (Record(EPOCH + number // 2, number, 0, number, server=32 * (number % 2)) for number in range(200))
    write_records(tmp_path / "wc", records)
    sizes = [
        request.size % 2
        for request in target_requests(NETWORK, replace(SETTINGS, log=str(tmp_path / "wc"), log_region=1))
    ]
    assert sizes == [1] * 40
    with pytest.raises(LogFormatError, match=r"has no requests.*or --region"):
        list(target_requests(NETWORK, replace(SETTINGS, log=str(tmp_path / "wc"), log_region=2)))


def test_a_gzipped_log_is_the_same(tmp_path: Path) -> None:
    plain = write(tmp_path / "wc", 100)
    (tmp_path / "wc.gz").write_bytes(gzip.compress((tmp_path / "wc").read_bytes(), mtime=0))
    zipped = replace(plain, log=str(tmp_path / "wc.gz"))
    assert list(target_requests(NETWORK, zipped)) == list(target_requests(NETWORK, plain)) != []


def test_slow_clients_are_slow_with_a_log_too(tmp_path: Path) -> None:
    requests = list(target_requests(SLOW_CLIENTS, write(tmp_path / "wc", 100)))
    assert [request.client_bytes_per_s for request in requests] == [0] * 20 + [7000] * 20


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none", None, "No such file .*; give --log another file"),
        ("empty", b"", "has no requests, .*: give a longer log"),
        ("cut", bytes(30), "byte 20: the last record is cut off.*; give --log another file"),
        ("not.gz", b"no gzip", "Not a gzipped file.*; give --log another file"),
        ("cut.gz", gzip.compress(bytes(400), mtime=0)[:-12], "ended before.*; give --log another file"),
    ],
)
def test_a_log_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None, says: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LogFormatError, match=re.escape(str(path)) + ": .*" + says):
        list(target_requests(NETWORK, replace(SETTINGS, log=str(path))))


def test_a_log_that_does_not_last_is_named_with_its_length(tmp_path: Path) -> None:
    settings = write(tmp_path / "wc", 60)
    with pytest.raises(
        LogFormatError, match="wc: ends after 59 s, and the load is from 30 to 70 s of it: give a longer log"
    ):
        list(target_requests(NETWORK, settings))
    with pytest.raises(
        LogFormatError, match="wc: a crowd 10 s after its beginning is too early: the load has 20 s before"
    ):
        list(target_requests(NETWORK, replace(settings, log_onset_s=10.0)))


def test_the_command_refuses_a_missing_log_before_it_builds_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topo.labs.crowds.__main__.switch_kind", lambda: "embedded")
    arguments = ["--scenario", NETWORK.name, "--output", str(tmp_path / "out"), "--log", str(tmp_path / "none")]
    assert main(arguments) == 1
    assert f"{tmp_path / 'none'}: no World Cup 98 log can be read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_log_is_for_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse_options(["--scenario", NETWORK.name, "--log", "wc.gz"])
    assert (options.log, options.onset) == (Path("wc.gz"), 1000.0)
    with pytest.raises(SystemExit):
        parse_options(["--log", "wc.gz"])
    assert "--log is for one run: give a --scenario" in capsys.readouterr().err
