"""Tests of the changes that invalidate stored runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from topo.labs.crowds import run as runs
from topo.labs.crowds.run import META, Run, is_done
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, Settings
from topo.results import digest, results_directory


def test_names_and_contents_count(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    first.write_text("x = 1\n")
    second.write_text("x = 1\n")
    alone, other = digest(tmp_path, [first]), digest(tmp_path, [second])
    assert alone != other
    assert digest(tmp_path, [first, second]) == digest(tmp_path, [second, first])
    first.write_text("x = 2\n")
    assert digest(tmp_path, [first]) != alone


def test_a_run_of_other_programs_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_with = "one"

    def version(kind: str) -> str:
        return f"{kind} {made_with}"

    monkeypatch.setattr(runs, "version", version)
    run = Run(NETWORK, HOT_SPOT, Settings())
    (tmp_path / META).write_text(json.dumps(run.identity("embedded")))
    assert is_done(run, "embedded", tmp_path)
    assert not is_done(dataclasses.replace(run, static_per_s=1.0), "embedded", tmp_path)
    made_with = "another"
    assert not is_done(run, "embedded", tmp_path)


def test_each_switch_has_its_own_results() -> None:
    assert results_directory("news", "embedded").name == "news"
    assert results_directory("news", "bmv2").name == "news-bmv2"
