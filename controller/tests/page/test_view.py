"""Tests of the page's view of a status: rates, rows, history and charts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pagestatus import server, service, status
from sluice.page import charts, view
from sluice.page.elements import requested_page
from sluice.page.history import MOST_SAMPLES, History
from sluice.page.rates import Rates, Sample
from sluice.page.reading import Reading


def samples(before: dict[str, Any], after: dict[str, Any], seconds: float = 2.0) -> tuple[Sample, Rates]:
    """Return the later of two statuses as a sample, and the rates between the two."""
    now = Sample(1000.0 + seconds, after)
    return now, Rates(now, Sample(1000.0, before))


def test_rates_are_per_second() -> None:
    before = status(service("web", server("s1", syn=100, synack=90), offered=100))
    now, rates = samples(before, status(service("web", server("s1", syn=140, synack=110), offered=150)))
    (row,) = view.services(now, rates)
    assert (row["syn_s"], row["failures_s"], row["in"]) == ("25", "10", "1 of 1")
    (row,) = view.servers(now.status["services"][0], rates)
    assert (row["syn_s"], row["failures_s"], row["syn"]) == ("20", "10", 140)


@pytest.mark.parametrize(
    "before",
    [
        status(service("web", server("s1", syn=500))),
        status(service("web", server("s2", syn=1))),
        status(service("mail", server("s1", syn=1))),
        {"role": "connecting", "switch": "a:1", "device_id": 1, "reprogrammed": 0},
    ],
    ids=["began again", "new server", "new service", "did not lead"],
)
def test_an_unknown_rate_is_none(before: dict[str, Any]) -> None:
    now, rates = samples(before, status(service("web", server("s1", syn=140))))
    (row,) = view.servers(now.status["services"][0], rates)
    assert row["syn_s"] == view.NONE
    assert view.services(now, rates)[0]["failures_s"] == view.NONE


def test_answers_to_earlier_requests_are_no_negative_failures() -> None:
    before = status(service("web", server("s1", syn=100, synack=80)))
    now, rates = samples(before, status(service("web", server("s1", syn=104, synack=90))))
    assert view.servers(now.status["services"][0], rates)[0]["failures_s"] == "0"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        ("inf", "inf"),
        (float("inf"), "inf"),
        (0, "0"),
        (0.25, "0.2"),
        (3.0, "3"),
        (1234.5, "1,234"),
        (12.34, "12.3"),
    ],
)
def test_quantities(value: float | str | None, shown: str) -> None:
    assert view.quantity(value) == shown


def test_who_is_out() -> None:
    sample = status(
        service("web", server("s1", state="draining"), server("s2"), server("s3", state="ejected")),
        neighbours_missing=["10.0.0.9"],
        retired=["10.0.0.7"],
    )
    assert view.out(sample) == [
        "web/s1 is draining",
        "web/s3 is ejected",
        "10.0.0.9 does not answer ARP",
        "10.0.0.7 is retired and still has connections",
    ]
    many = status(service("web", *(server(f"s{number}", state="ejected") for number in range(100))))
    assert view.out(many)[-1] == "and 88 more"


def test_an_agent_that_does_not_answer_is_out() -> None:
    sample = status(service("web", server("a1")) | {"content": {"agents": [{"name": "a1", "answers": False}]}})
    assert view.out(sample) == ["agent web/a1 does not answer"]


def test_drops_are_by_reason_the_most_frequent_first() -> None:
    now, rates = samples(status(drops={"no_route": 1}), status(drops={"no_route": 5, "ttl": 0, "limit": 20}))
    assert view.drops(now, rates) == [
        {"reason": "limit", "count": 20, "count_s": "10"},
        {"reason": "no_route", "count": 5, "count_s": "2"},
    ]


def test_the_chosen_service_or_the_first_one() -> None:
    sample = Sample(0.0, status(service("web"), service("mail")))
    for name, shown in (("mail", "mail"), ("gone", "web"), (None, "web")):
        details = view.service(sample, name)
        assert details is not None
        assert details["name"] == shown
    assert view.service(Sample(0.0, {"role": "standby"}), "web") is None


def test_events_are_found_by_words_and_kinds() -> None:
    past = [
        {"time": 1e9, "kind": "decision", "text": "web: s1 128 -> 100. All servers answer."},
        {"time": 1e9, "kind": "drain", "text": "web/s1 drains"},
        {"time": 1e9, "kind": "decision", "text": "mail: weights stay."},
    ]
    rows, total = view.events(past)
    assert ([row["text"] for row in rows], total) == ([event["text"] for event in reversed(past)], 3)
    assert [row["id"] for row in view.events(past, "WEB s1")[0]] == [1, 0]
    assert [row["id"] for row in view.events(past, "web", ["decision"])[0]] == [0]
    assert view.events(past, "", ["crowd"]) == ([], 0)
    assert ([row["id"] for row in view.events(past, "s", first=1, count=1)[0]], view.events(past, "s")[1]) == ([1], 3)


@pytest.mark.parametrize(
    ("asked", "page", "count"),
    [
        ({"page": 3, "rowsPerPage": 100, "sortBy": None}, 3, 100),
        ({"page": 2, "rowsPerPage": 0}, 2, 0),
        ({"page": 0, "rowsPerPage": 20}, 1, 20),
        ({"page": 1, "rowsPerPage": 7}, 1, 20),
        ({"page": "x", "rowsPerPage": 20}, 1, 20),
        ({"page": 1}, 1, 20),
        (None, 1, 20),
    ],
)
def test_a_browser_may_ask_for_any_page_of_events(asked: object, page: int, count: int) -> None:
    assert requested_page(asked) == (page, count)


def test_crowds() -> None:
    news: dict[str, Any] = {
        "mode": "production",
        "sentence": "A crowd.",
        "ar_bps": 131_000,
        "ar_average_bps": None,
        "flows": 12,
        "alarm": True,
        "hot_spots": ["web", "files"],
        "limits": [{"destination": "web", "limit_per_s": 12.5}],
        "destinations": [
            {"name": "web", "offered": 100, "admitted": 60, "refused": 40, "returning": 2},
            {"name": "rest", "offered": 1, "admitted": 1, "refused": 0, "returning": 0},
        ],
    }
    later = news | {
        "destinations": [news["destinations"][0] | {"offered": 140, "refused": 70}, news["destinations"][1]]
    }
    now, rates = samples(status() | {"news": news}, status() | {"news": later})
    web, rest = view.destinations(later, rates)
    assert (web["offered_s"], web["refused_s"], web["limit"], rest["limit"]) == ("20", "15", "12.5", "–")
    assert view.crowd(news) == (
        "mode production, AR 131 kbit/s, on average – kbit/s, 12 responses, alarm, hot spot web, hot spot files"
    )
    history = History()
    history.add(now, rates)
    assert history.crowd("offered", "refused", "limit", "ar") == [(1002.0, (20.0, 15.0, 12.5, 131.0))]


def test_history_keeps_the_last_and_has_gaps() -> None:
    history = History()
    for number in range(MOST_SAMPLES + 5):
        sample = Sample(number * 2.0, status(service("web", server("s1", ratio=0.25), server("s2", r="inf"))))
        history.add(sample, Rates(sample, None))
    history.gap(999.0)
    sample = Sample(1000.0, status(service("web", server("s2", ratio=0.5))))
    history.add(sample, Rates(sample, None))
    points = history.service("web", ("s1", "s2"), "ratio")
    assert len(points) == MOST_SAMPLES
    assert points[0][1] == (0.25, 1.0)
    assert points[-2:] == [(999.0, (None, None)), (1000.0, (None, 0.5))]
    assert history.service("web", ("s1", "s2"), "r")[0][1] == (0.0, None), "no chart shows infinity"
    assert history.service("web", ("s1",), "syn")[0][1] == (None,)


def test_a_chart_has_a_line_for_each_server() -> None:
    made = charts.lines("ratio", ["s1", "s2"], [(1.5, (0.25, None))])
    assert made["dataset"]["source"] == [[1500, 0.25, None]]
    assert [(series["name"], series["encode"]["y"]) for series in made["series"]] == [("s1", 1), ("s2", 2)]
    json.dumps(made, allow_nan=False)
    assert not charts.lines("", [str(number) for number in range(13)], [])["legend"]["show"]


def test_a_reading_is_made_into_rows_and_charts_once_for_all_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(name: str, of: Any) -> None:
        def counting(*arguments: object) -> Any:
            made.append(name)
            return of(*arguments)

        monkeypatch.setattr(view if name != "lines" else charts, name, counting)

    for name in ("services", "servers", "drops", "health", "head", "out"):
        counted(name, getattr(view, name))
    counted("lines", charts.lines)
    sample = Sample(0.0, status(service("web", server("s1")), service("mail", server("m1"))))
    history, rates = History(), Rates(sample, None)
    history.add(sample, rates)
    shown = Reading(sample, rates, history)
    for name in ("web", "mail", "web"):
        details = shown.service(name)
        assert details is not None
        assert (details["name"], shown.servers(details)[0]["name"], len(shown.charts(details))) == (
            name,
            {"web": "s1", "mail": "m1"}[name],
            5,
        )
        assert (len(shown.services), shown.drops, shown.out, len(shown.health) > 0) == (2, [], "", True)
        assert shown.head.startswith("switch 127.0.0.1:9559 device 1")
    assert sorted(made) == sorted(["services", "drops", "health", "head", "out", "servers", "servers", *["lines"] * 10])
