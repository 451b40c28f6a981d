"""The Tofino program's check: what counts as an error, and what is said where a tool is missing."""

from pathlib import Path

import pytest

from tools import p4_tofino
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
