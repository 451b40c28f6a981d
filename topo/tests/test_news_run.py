"""A run begins with the controller's first decision, however long an interval is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import pytest

from topo.errors import LabError
from topo.news.network import NewsLab
from topo.news.run import TRACE, first_decision

HEADER = "unix_s,ar_bps,offered_per_s,admitted_per_s,refused_per_s,alarm,limit_per_s,hot_spot,cause\n"


class Lab:
    """A controller that decides once, `decides_s` after its start; its clock passes only while it is waited for."""

    def __init__(self, directory: Path, decides_s: float) -> None:
        self.directory = directory
        self.now_s = 0.0
        self._decides_s = decides_s

    def sleep(self, seconds: float) -> None:
        self.now_s += 100 * seconds
        if self.now_s >= self._decides_s:
            (self.directory / TRACE).write_text(f"{HEADER}{self._decides_s},1,1,1,0,0,,,\n")

    def require_running(self) -> None:
        pass


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab(tmp_path, decides_s=64.0)
    monkeypatch.setattr(time, "time", lambda: made.now_s)
    monkeypatch.setattr(time, "sleep", made.sleep)
    return made


def test_the_first_decision_is_waited_for_a_whole_interval(lab: Lab) -> None:
    assert first_decision(cast(NewsLab, lab), period_s=64.0) == 64.0


def test_a_controller_that_does_not_decide_is_an_error(lab: Lab) -> None:
    with pytest.raises(LabError, match="has not decided anything in 38 s"):
        first_decision(cast(NewsLab, lab), period_s=8.0)
