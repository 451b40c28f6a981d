"""What a run makes of set-ups that fail, and of time that runs out."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from tools.bench import __main__ as run_module
from tools.bench.cases import SetUp
from tools.bench.measure import Times
from tools.bench.report import Found
from topo.errors import LabError


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results go; the kernel's tables are left as they are."""
    monkeypatch.setattr(run_module, "RESULTS", tmp_path)
    monkeypatch.setattr(run_module, "roomy_conntrack", nullcontext)
    return tmp_path


def test_a_set_up_that_fails_does_not_stop_the_others(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(who: str, set_up: SetUp, times: Times, found: Found, say: Callable[[str], None]) -> None:
        del times, say
        if who == "bmv2":
            raise LabError("it has died")
        for case in set_up.cases:
            found.pps.setdefault((who, case), []).append(1.0)

    monkeypatch.setattr(run_module, "measure", measure)
    found = run_module.run(["bmv2", "copy-forward"], 2, quick=True)
    assert found.failures == ["bmv2, 100 servers: it has died"] * 2
    assert {who for who, _ in found.pps} == {"copy-forward"}
    written = json.loads((results / "details.json").read_text())
    assert written["failures"] == found.failures
    assert "FAILED   bmv2, 100 servers: it has died" in written["verdicts"]


def test_no_round_begins_that_would_end_too_late(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert (results / "switch.json").exists()
