"""Configurations: what is taken, and the exact words of every complaint (golden files beside the examples)."""

from __future__ import annotations

from pathlib import Path

import pytest
from configs import web
from sluice.balance import Mode
from sluice.configload import ConfigError, load, parse

GOLDEN = Path(__file__).resolve().parent / "golden"


@pytest.mark.parametrize("name", ["broken", "inconsistent", "duplicate", "torn"])
def test_complaints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To accept changed words, write them into the .txt file."""
    monkeypatch.chdir(GOLDEN)
    with pytest.raises(ConfigError) as caught:
        load(f"{name}.yaml")
    assert str(caught.value) == (GOLDEN / f"{name}.txt").read_text().rstrip("\n")


def test_defaults_are_the_papers_parameters() -> None:
    text = web().replace("  balance: {mode: paper, period_s: 0.1, window_s: 1.0}\n", "")
    balance = parse(text).services[0].balance
    assert (balance.mode, balance.period_s, balance.window_s, balance.delta) == (Mode.PRODUCTION, 10, 200, 0.1)


def test_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml:0: No such file or directory; give the file with --config"):
        load("nowhere.yaml")


@pytest.mark.parametrize("text", ["", "- 1", "just words", "interfaces: 3", "services: {a: b}"])
def test_nonsense_is_a_complaint_rather_than_a_crash(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(text)


def test_two_ports_may_share_a_subnet() -> None:
    text = (
        web().replace("address: 10.0.2.1/24", "address: 10.0.1.1/24").replace("address: 10.0.2.2", "address: 10.0.1.2")
    )
    assert len(parse(text).interfaces) == 3
