"""Tests of recording a lab (`topo.lab.record`), with fakes in place of the lab and of the packet socket."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from topo import lab as prompt
from topo.labs.web import Lab


@dataclass
class FakeLab:
    """A fake lab with the parts that a recording needs."""

    directory: Path
    ends: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    switch: Any = field(default_factory=lambda: SimpleNamespace(pid=42))

    @property
    def controller(self) -> Any:
        return SimpleNamespace(trace=self.directory / "trace.jsonl")

    def at_end(self, callback: Callable[[], object]) -> None:
        self.ends.append(callback)


class FakeRecorder:
    """A fake recorder that logs its calls."""

    asked: list[object] = []  # noqa: RUF012 - read by the test, set anew by it

    def __init__(self, pid: int, file: Path) -> None:
        self.asked.append((pid, file))

    def stop(self) -> None:
        self.asked.append("stop")

    def close(self) -> None:
        self.asked.append("close")


def test_a_recording_leaves_all_that_a_replay_takes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "lab"
    directory.mkdir()
    lab, capture = FakeLab(directory), tmp_path / "x.pcap"
    monkeypatch.setattr(FakeRecorder, "asked", [])
    monkeypatch.setattr(prompt, "Recorder", FakeRecorder)
    prompt.record(cast("Lab", lab), capture)
    assert FakeRecorder.asked == [(42, capture)], "it begins at once and goes on to the end"
    (directory / "sluice.yaml").write_text("services:\n")
    (directory / "trace.jsonl").write_text("{}\n")
    (end,) = lab.ends
    end()
    assert FakeRecorder.asked[1:] == ["stop", "close"]
    assert (tmp_path / "x.yaml").read_text() == "services:\n" and (tmp_path / "x.jsonl").read_text() == "{}\n"
    program, *arguments = capsys.readouterr().out.split()
    assert Path(program) == Path(sys.executable).with_name("sluice"), "wherever PATH leads"
    assert arguments == ["replay", f"{capture}", "--config", f"{tmp_path}/x.yaml", "--trace", f"{tmp_path}/x.jsonl"]
    (directory / "trace.jsonl").unlink()
    with pytest.raises(FileNotFoundError):
        end()
    assert FakeRecorder.asked[-1] == "close", "the reader's thread ends whatever is missing"


def test_the_file_of_a_recording_is_checked_before_anything_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert prompt.parse_options(["--record", f"{tmp_path}/x.pcap"]).record == tmp_path / "x.pcap"
    assert prompt.parse_options([]).record is None
    for file, complaint in (("x.yaml", "does not end in .pcap"), (f"{tmp_path}/none/x.pcap", "there is no directory")):
        with pytest.raises(SystemExit):
            prompt.parse_options(["--record", file])
        assert complaint in capsys.readouterr().err
