"""Checks that a bench run skips failing set-ups, and that it stops at its time limit."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from tools.bench import __main__ as run_module
from tools.bench.cases import SetUp
from tools.bench.measure import Times
from tools.bench.report import Measurements
from topo.testbed.errors import SetupError


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the run independent of the programs on this machine, and leave the kernel's tables unchanged."""
    monkeypatch.setattr(run_module, "require_prerequisites", lambda: None)
    monkeypatch.setattr(run_module, "roomy_conntrack", nullcontext)


def test_a_set_up_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(who: str, set_up: SetUp, times: Times, measurements: Measurements, say: Callable[[str], None]) -> None:
        del times, say
        if who == "bmv2":
            raise SetupError("it has died")
        for case in set_up.cases:
            measurements.pps.setdefault((who, case), []).append(1.0)

    monkeypatch.setattr(run_module, "measure", measure)
    monkeypatch.setattr(run_module, "forwarders", list)
    monkeypatch.setattr(run_module, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["bench", "--quick", "--rounds", "2", "--who", "bmv2", "copy-forward"])
    assert run_module.main() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bench-quick"], "a full bench keeps its results"
    rows = json.loads((tmp_path / "bench-quick/switch.json").read_text())["rows"]
    assert {row["who"] for row in rows} == {"copy-forward"}
    written = json.loads((tmp_path / "bench-quick/details.json").read_text())
    assert written["failures"] == ["bmv2, 100 servers: it has died"] * 2
    assert "FAILED   bmv2, 100 servers: it has died" in written["verdicts"]


def test_no_round_begins_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0

    def measure(*arguments: object) -> None:
        nonlocal clock
        del arguments
        clock += run_module.LIMIT_S * 0.4

    monkeypatch.setattr(run_module, "measure", measure)
    monkeypatch.setattr(run_module.time, "monotonic", lambda: clock)
    lines: list[str] = []
    monkeypatch.setattr("builtins.print", lambda line, **_: lines.append(line))  # pyright: ignore[reportUnknownLambdaType]
    run_module.run(["copy-forward"], 3, quick=True)
    assert "no time for another round: these are the figures of 2" in lines[-1]
