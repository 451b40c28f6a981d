"""Tests of the experiment on closing idle connections: the stored figures of a run, and the goals."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments.eatbt_fig3 import DEFAULT, EXPERIMENT, PLAIN, SHORT, VARIANTS, Variant, points, summary
from experiments.experiment import Record, Report
from experiments.tests.small import goal_of, report_text

SECONDS = 10.0


def record(variant: Variant, users: int, pages: int, page_s: float, **more: Any) -> Record:
    """Return a record of a variant's run with known figures; `more` replaces figures by name."""
    none = dict.fromkeys(("asked", "closed", "taken_back", "raced", "lapsed"), 0) if variant.idle else {}
    result = {"ended": 100, "raced": 1, "races_expected": 1.0, "lost": 0, "closings": none}
    parameters = {"variant": variant.name, "users": users, "seconds": SECONDS, "seed": 1}
    return Record(
        f"{variant.name}{users}", parameters, {**result, "pages": pages, "page_s": page_s, **more}, 0, 1, None
    )


def runs(**closed: Any) -> list[Record]:
    """Return runs that reach every goal; `closed` replaces figures of the run in which the switch closes connections
    and the number of users is largest."""
    most: dict[str, Any] = {"pages": 200, "page_s": 0.2, **closed}
    return [
        record(PLAIN, 40, 100, 3.0),
        record(SHORT, 40, 200, 0.2),
        record(DEFAULT, 10, 10, 0.2),
        record(DEFAULT, 40, most.pop("pages"), most.pop("page_s"), **most),
    ]


@pytest.mark.parametrize(
    ("words", "closed", "reached"),
    [
        ("beyond workers", {}, True),
        ("beyond workers", {"pages": 124}, False),
        ("a tenth", {"page_s": 0.31}, False),
        ("KeepAliveTimeout 1", {"pages": 195}, False),
        ("at most 1.1", {"page_s": 0.23}, False),
        ("no page lost", {"lost": 1}, False),
        ("races", {"raced": 2}, True),
        ("races", {"raced": 3}, False),
    ],
)
def test_a_goal_is_reached_or_not(words: str, closed: dict[str, Any], reached: bool) -> None:
    assert goal_of(Report([], EXPERIMENT.report(runs(**closed)).goals[:6]), words).reached is reached


def test_what_was_not_measured_is_not_judged() -> None:
    assert [goal.reached for goal in EXPERIMENT.report([]).goals] == [None] * 12
    EXPERIMENT.draw([], Figure())


def test_a_run_is_reported_and_drawn() -> None:
    text = report_text(EXPERIMENT, runs())
    assert f"| {DEFAULT.name} | 1.0 (200) | 20.0 (200) |" in text
    assert f"| {VARIANTS[-1].name} | - | - |" in text


def test_races_are_expected_by_each_connections_distance() -> None:
    seen = {
        "page_s": [3.0, 1.0],
        "pages": 1,
        "unfinished": 1,
        "lost": [],
        "connections": 4,
        "found_closed": {"near": 9},
        "raced": {"near": 1, "far": 2},
        "connect_s": {"near": 0.03, "far": 0.1},
        "connected": {"near": 3, "far": 1},
    }
    record_summary = summary(seen)
    assert (record_summary["ended"], record_summary["raced"], record_summary["page_s"], record_summary["p99_s"]) == (
        12,
        3,
        2.0,
        3.0,
    )
    assert record_summary["races_expected"] == pytest.approx((10 * 0.01 + 2 * 0.1) / 3)


def test_the_quick_form_takes_less_than_ten_minutes() -> None:
    built_s = 10 * len(VARIANTS)
    assert sum(point.seconds for point in points(True)) + built_s < 600
