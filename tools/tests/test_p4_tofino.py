"""The Tofino program's check: what counts as an error, and what is said where a tool is missing."""

import shutil
from pathlib import Path

import pytest

from tools import p4_resources, p4_tofino
from tools.p4 import P4Error

END = "main.p4(9): [--Werror=Target model error] error: package Switch: main package  match the expected model\n"


def test_the_refusal_behind_the_front_end_is_no_error() -> None:
    assert p4_tofino.front_end_errors(END) == []


def test_an_error_of_the_program_is_one() -> None:
    error = "pins.p4(7): [--Werror=not-found] error: slot_3: declaration not found"
    assert p4_tofino.front_end_errors(f"{error}\n") == [error]
    assert p4_tofino.front_end_errors(f"{error}\n{END}") == [error]


def test_a_front_end_that_did_not_end_is_told() -> None:
    with pytest.raises(P4Error, match="did not reach the end"):
        p4_tofino.front_end_errors("Compiler Bug\n")


def test_headers_that_are_not_there_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(p4_tofino.HEADERS_VARIABLE, str(tmp_path))
    with pytest.raises(P4Error, match=r"has no tna\.p4"):
        p4_tofino.headers()


def test_without_the_tools_nothing_is_checked_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(p4_tofino.HEADERS_VARIABLE, raising=False)
    p4_tofino.check()
    assert "not type-checked" in capsys.readouterr().out


def test_without_the_back_end_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(P4Error, match="ENABLE_TOFINO"):
        p4_tofino.compile_command(tmp_path)


def test_an_edited_artefact_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tofino"
    shutil.copytree(p4_tofino.ARTEFACT_FOLDER, folder)
    monkeypatch.setattr(p4_tofino, "ARTEFACT_FOLDER", folder)
    monkeypatch.setattr(p4_tofino, "MANIFEST", folder / "manifest.json")
    p4_tofino.check_artefacts()
    (folder / "bfrt.json").write_text("{}")
    with pytest.raises(P4Error, match=r"edited by hand, or missing: p4src/build/tofino/bfrt\.json"):
        p4_tofino.check_artefacts()


def test_the_last_round_of_placement_counts(tmp_path: Path) -> None:
    log = tmp_path / "pipe/logs/table_summary.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "Number of stages in table allocation: 40\n"
        "Critical path length through the table dependency graph: 31\n"
        "Number of stages in table allocation: 38\n"
        "  Number of stages for ingress table allocation: 38\n"
        "  Number of stages for egress table allocation: 15\n"
    )
    found = p4_resources.outcome(tmp_path, compiled=False)
    assert found == {"compiled": False, "stages": 38, "ingress_stages": 38, "egress_stages": 15, "critical_path": 31}


def test_a_compile_that_came_to_no_placement_says_nothing_of_it(tmp_path: Path) -> None:
    assert p4_resources.outcome(tmp_path, compiled=False) == {"compiled": False}
