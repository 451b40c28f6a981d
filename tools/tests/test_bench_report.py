"""Tests of the form of the bench's result files, table and verdicts."""

import json
from pathlib import Path

from tools.bench.cases import BASE, WHO, Case, set_ups
from tools.bench.report import Measurements, details, ratio, result, table, verdicts, write

BASE_CASE = Case()


def measured() -> Measurements:
    """Return measurements of all forwarders, with additional cases for the embedded switch."""
    measurements = Measurements()
    for who, pps in zip(WHO, (500_000.0, 400_000.0, 20_000.0, 600_000.0), strict=True):
        measurements.pps[who, BASE_CASE] = [pps, pps * 1.1, pps * 0.9]
        measurements.p50[who, BASE_CASE], measurements.p99[who, BASE_CASE] = [10.04, 12.0, 11.0], [50.0, 60.0, 55.0]
        measurements.connections[who] = [1000.4]
    measurements.pps["embedded", Case(servers=1)] = [410_000.0]
    measurements.pps["embedded", Case(servers=1_000)] = [330_000.0]
    measurements.engine_pps, measurements.idle_cpu_percent, measurements.rss_mb = 2_100_000.4, 0.1, 40.0
    return measurements


def test_the_result_has_the_promised_form() -> None:
    assert set(result(measured())) == {"rows", "connections_per_s", "engine_pps", "idle_cpu_percent", "rss_mb"}
    row = result(measured())["rows"][1]
    assert row == {
        "who": "embedded",
        "frame": 64,
        "servers": 100,
        "connections": 1000,
        "entries": 0,
        "pps": 400_000,
        "latency_us": {"p50": 11.0, "p99": 55.0},
    }
    assert result(measured())["connections_per_s"] == dict.fromkeys(WHO, 1000)
    assert result(measured())["engine_pps"] == 2_100_000


def test_what_was_not_measured_is_null() -> None:
    measurements = Measurements()
    measurements.pps["embedded", BASE_CASE] = [0.0]
    assert result(measurements)["rows"][0]["latency_us"] is None
    assert result(measurements)["engine_pps"] is None
    assert "embedded" in table(measurements)
    assert not [line for line in verdicts(measurements) if "reached" in line]


def test_ratios_fall_back_to_the_frame_length() -> None:
    measurements = measured()
    assert ratio(measurements, "embedded", "copy-forward", Case(servers=1_000)) == 0.66
    assert ratio(measurements, "embedded", "bmv2", BASE_CASE) == 20.0
    assert ratio(measurements, "embedded", "bmv2", Case(frame=512)) is None


def test_the_table_has_a_line_for_each_row() -> None:
    lines = table(measured()).splitlines()
    assert lines[0].split()[:3] == ["forwarder", "frame", "servers"]
    assert lines[2].split() == ["embedded", "64", "100", "1,000", "0", "400,000", "0.80", "20.0", "11", "55"]


def test_verdicts_say_what_was_missed() -> None:
    said = verdicts(measured())
    assert "reached  embedded, times bmv2: 20.0 (at least 10.0)" in said
    assert "reached  embedded, of copy-forward: 0.80 (at least 0.80)" in said
    assert "MISSED   embedded, difference from 1 to 1,000 servers: 20% (at most 15%)" in said


def test_files_are_written_whole(tmp_path: Path) -> None:
    write(tmp_path / "bench", measured(), {"kernel": "6"})
    assert sorted(path.name for path in (tmp_path / "bench").iterdir()) == ["details.json", "switch.json"]
    assert json.loads((tmp_path / "bench/switch.json").read_text()) == result(measured())
    assert json.loads((tmp_path / "bench/details.json").read_text()) == details(measured(), {"kernel": "6"})


def test_everybody_is_measured_at_the_base() -> None:
    for who in WHO:
        for quick in (True, False):
            assert BASE.cases[0] in set_ups(who, quick=quick)[0].cases
    assert not any(set_up.large for set_up in set_ups("bmv2", quick=False))
    for set_up in set_ups("embedded", quick=False):
        assert [case.connections for case in set_up.cases] == sorted(case.connections for case in set_up.cases)
        assert len({case.servers for case in set_up.cases}) == 1
