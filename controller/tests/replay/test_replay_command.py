"""Tests of `sluice replay` on the command line: output, plots, comparisons, and inputs that the command refuses."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sluice
from recordings import configured, load, write
from sluice.cli.main import main
from sluice.replay.compare import TraceError
from sluice.replay.comparenews import intervals


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "c.pcap", load(6, lost=4))
    plot = tmp_path / "plot.svg"
    assert main(["replay", str(file), "--config", configured(tmp_path), "--plot", str(plot)]) == 0
    out = capsys.readouterr().out
    assert "s2 0.450 (S 10 A 6 R 0.667)" in out
    assert "moved 0.1 of server 2" in out
    assert "5 decisions" in out
    assert plot.read_text().count("<svg") == 1


@pytest.mark.parametrize("start", [[], ["--start", "1000.0"]])
def test_seconds_begin_with_the_first_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start: list[str]
) -> None:
    file, plot = write(tmp_path / "c.pcap", load(4, lost=0)), tmp_path / "plot.svg"
    assert main(["replay", str(file), "--config", configured(tmp_path), "--plot", str(plot), *start]) == 0
    assert re.findall(r"^ *([\d.]+) s  web", capsys.readouterr().out, re.MULTILINE) == ["1.00", "2.00", "3.00"]
    assert "s since 1970-01-01 00:16:40 UTC" in plot.read_text()


@pytest.mark.parametrize("plot", ["plot.foo", "plot", "nowhere/plot.svg"])
def test_where_a_plot_cannot_be_drawn_is_said_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], plot: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main(
            ["replay", str(tmp_path / "no.pcap"), "--config", str(tmp_path / "no.yaml"), "--plot", f"{tmp_path}/{plot}"]
        )
    assert end.value.code == 2
    said = "there is no directory" if "/" in plot else "does not end in .png or .svg or .pdf"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("start", ["nan", "inf", "-inf", "0", "999.99", "1006.01"])
def test_a_first_reading_out_of_the_capture_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], start: str
) -> None:
    file = write(tmp_path / "c.pcap", load(6, lost=0))
    assert main(["replay", str(file), "--config", configured(tmp_path), f"--start={start}"]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        f"sluice: {file}: --start {float(start)} is not within the capture, which is of 1000.000 to 1005.954\n",
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_output_ends_the_command_silently(tmp_path: Path, unbuffered: str) -> None:
    file = write(tmp_path / "c.pcap", load(6, lost=0))
    read, written = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "sluice", "replay", str(file), "--config", configured(tmp_path)],
            stdout=written,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env=os.environ
            | {"PYTHONPATH": str(Path(sluice.__file__).resolve().parents[1]), "PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(written)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_the_command_holds_a_capture_against_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, config = write(tmp_path / "c.pcap", load(8, lost=4)), configured(tmp_path)
    assert main(["replay", str(file), "--config", config, "--json", "--start", "1000"]) == 0
    live = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for record in live:
        record["time"] += 0.004  # the controller records a decision shortly after its reading
    trace = tmp_path / "trace.jsonl"
    trace.write_text("".join(json.dumps(record) + "\n" for record in live))
    assert main(["replay", str(file), "--config", config, "--trace", str(trace)]) == 0
    assert "the same decisions; 7 compared" in capsys.readouterr().out
    live[3]["servers"]["s1"]["ratio"] = 0.9
    trace.write_text("".join(json.dumps(record) + "\n" for record in live))
    assert main(["replay", str(file), "--config", config, "--trace", str(trace)]) == 1
    said = capsys.readouterr().out
    assert "OTHER DECISIONS" in said
    assert said.endswith("; the first, in line 4, from the same counts\n")
    live[3]["servers"]["s2"]["window"]["synack"] += 1  # a SYN-ACK that only the live reading counted
    trace.write_text("".join(json.dumps(record) + "\n" for record in live))
    assert main(["replay", str(file), "--config", config, "--trace", str(trace)]) == 1
    other = r"; the first, in line 4, from other counts: of s2 syn 40, synack 25, .*, here syn 40, synack 24,"
    assert re.search(other, capsys.readouterr().out)


def decided(tmp_path: Path, capture: Path) -> list[str]:
    """Replay a capture; return the printed decisions, one JSON line each."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["replay", str(capture), "--config", configured(tmp_path), "--json"]) == 0
    return out.getvalue().splitlines(keepends=True)


def test_a_trace_that_was_still_being_written_is_compared_to_its_last_whole_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, trace = write(tmp_path / "c.pcap", load(8, lost=4)), tmp_path / "trace.jsonl"
    trace.write_text("".join(decided(tmp_path, file))[:-9])
    assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == 0
    assert "the same decisions; 6 compared" in capsys.readouterr().out


def test_a_trace_without_a_server_of_the_configuration_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, trace = write(tmp_path / "c.pcap", load(4, lost=0)), tmp_path / "trace.jsonl"
    first, *others = decided(tmp_path, file)
    trace.write_text("".join([first, *(line.replace('"s2"', '"other"') for line in others)]))
    assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "trace, line 2: web lacks s2, which the configuration has" in err


@pytest.mark.parametrize("shift_s", [-3500.0, -4000.0, 4000.0])
def test_a_trace_begins_within_the_capture_or_an_hour_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], shift_s: float
) -> None:
    file, trace = write(tmp_path / "c.pcap", load(4, lost=0)), tmp_path / "trace.jsonl"
    lines = [json.loads(line) for line in decided(tmp_path, file)]
    trace.write_text("".join(json.dumps(record | {"time": record["time"] + shift_s}) + "\n" for record in lines))
    assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == (abs(shift_s) > 3600)
    said = f"the trace's first reading {1000 + shift_s} is not within the capture, which is of 1000.000 to 1003.954"
    assert (said in capsys.readouterr().err) is (abs(shift_s) > 3600)


def test_a_bad_trace_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, trace = write(tmp_path / "c.pcap", load(1, lost=0)), tmp_path / "trace.jsonl"
    trace.write_text('{"time": 1}\n')
    assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == 1
    assert "trace, line 1: not a decision" in capsys.readouterr().err
    trace.write_bytes(file.read_bytes())
    assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == 1
    assert f"{trace}: byte 0: not a trace; give the file of --trace-file" in capsys.readouterr().err
    line = '{"time": NaN, "service": "web", "period_s": 1, "servers": {}}\n'
    for text in (line, line.replace("NaN", '"noon"'), line.replace("{}", '{"s1": {"ratio": null}}'), "[]\n", "7\n"):
        trace.write_text(text)
        assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == 1
        assert "trace, line 1: not a decision" in capsys.readouterr().err
    trace.write_text("unix_s,ar_bps\n1.0,\n")
    assert main(["replay", str(file), "--config", configured(tmp_path), "--trace", str(trace)]) == 1
    assert "the configuration has no `news:`" in capsys.readouterr().err


def test_a_bad_trace_of_flash_crowd_control_is_named() -> None:
    with pytest.raises(TraceError, match=r"trace, line 2: not a decision .*offered_per_s"):
        intervals("unix_s,ar_bps\n1.0,2.0\n")
    with pytest.raises(TraceError, match=r"trace, line 2: not a decision .*unix_s nan"):
        intervals("unix_s,ar_bps,offered_per_s,admitted_per_s,alarm,limit_per_s\n,1,1,1,0,1\n")
    whole = "unix_s,ar_bps,offered_per_s,admitted_per_s,alarm,limit_per_s\n1.0,1,1,1,0,\n"
    assert len(intervals(whole)) == 1
    for torn in ("2.0,2\n", "2.0,2,3.0,3,3,3,0,\n"):  # a line that was cut off, alone and with a later line appended
        with pytest.raises(TraceError, match=r"trace, line 3: not a decision .*as many columns"):
            intervals(whole + torn)
    with pytest.raises(TraceError, match=r"it has no decisions"):
        intervals("unix_s,ar_bps\n1.0,2.0")
