"""Tests that the wheel's programs are found beside the running `sluice`, however `sluice` is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from sluice import programs

NAME = "sluice-agent"


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with `sluice` and the agent, as wheels install them, outside of a checkout and of PATH."""
    folder = tmp_path / "x y/venv/bin"
    folder.mkdir(parents=True)
    for name in ("sluice", NAME):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(programs, "_BUILT", tmp_path / "no checkout")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.argv", ["/elsewhere/sluice"])
    return folder


def test_beside_the_command_in_a_folder_with_a_space(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(bin_folder / "sluice"), "check"])
    assert programs.find(NAME) == bin_folder / NAME


def test_beside_the_command_by_a_relative_path(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bin_folder)
    monkeypatch.setattr("sys.argv", ["sluice"])
    assert programs.find(NAME) == bin_folder / NAME


def test_beside_what_a_link_leads_to(bin_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "sluice"
    link.symlink_to(bin_folder / "sluice")
    monkeypatch.setattr("sys.argv", [str(link)])
    assert programs.find(NAME) == bin_folder / NAME


def test_beside_python_when_the_module_is_run(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bin_folder / "python").symlink_to("/usr/bin/python3")
    monkeypatch.setattr("sys.argv", ["/venv/lib/sluice/__main__.py"])
    monkeypatch.setattr("sys.executable", str(bin_folder / "python"))
    assert programs.find(NAME) == bin_folder / NAME


def test_on_the_path(bin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(bin_folder))
    assert programs.find(NAME) == bin_folder / NAME


def test_what_cannot_be_run_is_not_found_and_the_remedy_is_named(
    bin_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(bin_folder / "sluice")])
    (bin_folder / NAME).chmod(0o644)
    assert programs.find(NAME) is None
    assert "install the wheel sluice-switch where `sluice` is" in programs.missing(NAME)
