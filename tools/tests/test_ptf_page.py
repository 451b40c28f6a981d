"""Tests of the results page of the packet tests, which is generated from recorded runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.exclusions import BY_DESIGN, TESTS
from harness.results import ABOUT, OUTCOMES

from tools.p4 import ROOT


def _run(folder: Path, *tests: tuple[str, str, str]) -> None:
    folder.mkdir(parents=True)
    (folder / ABOUT).write_text(json.dumps({"asked": "all", "commit": "0123abc", "day": "2026-11-28"}))
    lines = [{"test": name, "outcome": outcome, "seconds": 0.5, "reason": reason} for name, outcome, reason in tests]
    (folder / OUTCOMES).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_what_a_target_cannot_do_is_separate_from_what_failed_and_what_its_program_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "ptf-tests")
    page = pytest.importorskip("page")
    _run(tmp_path / "embedded", ("ports.OurMac", "passed", ""), ("intake.TruncatedTcp", "passed", ""))
    _run(
        tmp_path / "tofino",
        ("ports.OurMac", "failed", ""),
        ("intake.TruncatedTcp", "skipped", f"{BY_DESIGN}frames"),
        ("caps.Fits", "skipped", "this program has no table resources"),
    )
    text = page.page(list(page.read(tmp_path)))
    rows = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in text.splitlines() if line.startswith("|")}
    rows_by_name = {name: [cell.strip() for cell in cells] for name, cells in rows.items()}
    assert (rows_by_name["passed"], rows_by_name["failed"]) == (["2", "0"], ["0", "1"])
    assert (rows_by_name["by design"], rows_by_name["without the stage"]) == (["0", "1"], ["0", "1"])
    assert (rows_by_name["ports"], rows_by_name["caps"]) == (["1 of 1", "0 of 1"], ["-", "-"])
    assert "## Failed on Tofino's model\n\n- `ports.OurMac`\n" in text


def test_every_excluded_test_is_there() -> None:
    for target, exclusions in TESTS.items():
        for test in (test for exclusion in exclusions for test in exclusion.tests):
            module, _, name = test.partition(".")
            assert f"class {name}(" in (ROOT / f"ptf-tests/stages/{module}.py").read_text(), f"{target}: {test}"


def test_a_target_excludes_at_most_40_tests() -> None:
    assert all(sum(len(exclusion.tests) for exclusion in exclusions) <= 40 for exclusions in TESTS.values())
