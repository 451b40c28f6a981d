"""Tests of several simultaneous crowds in virtual time: each has its own limit, other destinations have no limit."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sluice.addresses import from_packed
from sluice.features.crowd.status import as_json as news_status
from sluice.news import Cause, Decision
from sluice.switch.reconcile import Readback
from virtual import FAST_BPS, Run

BYSTANDER = "10.0.0.100"
SPOTS = [f"10.0.2.{number}" for number in range(71, 76)]
HOSTS = ", ".join(f"{{name: h{number}, address: {address}}}" for number, address in enumerate(SPOTS, 1))
PRODUCTION = f"{{mode: production, production: {{baseline_s: 20}}, hosts: [{HOSTS}]}}"
PAPER = f"{{mode: paper, period_s: 4, hosts: [{HOSTS}]}}"
USUAL, RISE, CAPACITY = 20.0, 1.1, 300.0
START = 60.0


def crowds(*begin_end_more: tuple[str, float, float, float]):
    """Return a function from the time to the requests/s of each destination, for crowds at some of them.

    A crowd is given as destination, begin and end in seconds, and the requests/s in addition to USUAL. From START the
    destinations without a crowd at the time receive a tenth more requests than usual.
    """

    def arrivals(now: float) -> dict[str, float]:
        rise = RISE if now >= START else 1.0
        rates = {BYSTANDER: 60.0 * rise} | dict.fromkeys(SPOTS, USUAL * rise)
        for address, begin, end, more in begin_end_more:
            if begin <= now < end:
                rates[address] = USUAL + more
        return rates

    return arrivals


def limited(decision: Decision) -> set[str]:
    """Return the addresses of the destinations that a decision limits."""
    return {str(from_packed(target)) for target in decision.limits if target is not None}


def spells(run: Run) -> Mapping[str, list[tuple[float, float]]]:
    """Return the periods (begin, end) in which a destination was limited, by destination."""
    periods: dict[str, list[tuple[float, float]]] = {}
    before = set[str]()
    for decision in run.decisions:
        now = limited(decision)
        for address in now - before:
            periods.setdefault(address, []).append((decision.time_s, decision.time_s))
        for address in now:
            periods[address][-1] = periods[address][-1][0], decision.time_s
        before = now
    return periods


@pytest.mark.parametrize(
    "sizes",
    [{SPOTS[0]: 400.0, SPOTS[1]: 200.0}, dict(zip(SPOTS, (640.0, 320.0, 160.0, 80.0, 60.0), strict=True))],
    ids=["two", "five"],
)
def test_crowds_that_begin_together_have_a_limit_each_and_bystanders_none(sizes: dict[str, float]) -> None:
    parts = [(address, START, 200.0, more) for address, more in sizes.items()]
    run = Run(PRODUCTION, crowds(*parts), CAPACITY).until(START + 60)
    assert set(spells(run)) == set(sizes)
    last = run.decisions[-1]
    assert limited(last) == set(sizes)
    numbers = {run.switch.crowd.numbers[from_packed(target)] for target in last.limits if target is not None}
    assert run.switch.crowd.limits.keys() == numbers == set(run.switch.crowd.general) == set(run.switch.crowd.returning)
    assert last.verdict.cause is Cause.CROWD
    assert all(f"{run.view.name(target)}: limit " in last.sentence for target in last.limits if target is not None)
    status = news_status(run.view)
    assert len(status["limits"]) == len(sizes) and set(status["hot_spots"]) == {
        run.view.name(target) for target in last.limits if target is not None
    }


def test_a_crowd_inside_another_begins_and_ends_without_it() -> None:
    outer, inner = SPOTS[0], SPOTS[1]
    run = Run(PRODUCTION, crowds((outer, START, 260.0, 400.0), (inner, 110.0, 170.0, 300.0)), CAPACITY).until(320.0)
    periods = spells(run)
    assert set(periods) == {outer, inner}
    ((began, ended),) = periods[inner]
    assert 110 < began <= 125 and 170 < ended < 200
    assert periods[outer][0][0] <= START + 10
    assert any(begin <= began and ended <= end and end >= 255 for begin, end in periods[outer]), "the inner one's end"
    assert not run.decisions[-1].limits, "both are over"


def test_the_end_of_the_larger_crowd_does_not_free_the_smaller() -> None:
    large, small = SPOTS[2], SPOTS[4]
    run = Run(PRODUCTION, crowds((large, START, 120.0, 600.0), (small, START, 240.0, 300.0)), CAPACITY).until(240.0)
    periods = spells(run)
    assert set(periods) == {large, small}
    assert periods[large][-1][1] < 150
    assert periods[small][-1][1] > 238


def test_a_crowd_that_is_over_is_freed_while_another_keeps_responses_slow() -> None:
    """The crowd at `outer` still congests the link when the crowd at `inner` ends.

    Slow responses have reduced the limit of `inner` below its usual rate of requests; the limit is lifted nevertheless.
    """
    outer, inner = SPOTS[0], SPOTS[1]
    both = crowds((outer, START, 260.0, 400.0), (inner, 80.0, 180.0, 300.0))
    run = Run(PRODUCTION, both, CAPACITY, response=lambda now: FAST_BPS * (0.6 if now >= START else 1.0)).until(250.0)
    periods = spells(run)
    assert set(periods) == {outer, inner}
    assert 180 < periods[inner][-1][1] < 205
    assert periods[outer][-1][1] > 248


def test_a_limit_below_what_is_usual_does_not_outlive_its_crowd_by_chance() -> None:
    """Slow responses reduce the limit below the usual rate of requests.

    After the crowd, usual traffic in some seconds exceeds its mean by more than a tenth; the limit ends nevertheless.
    """
    spot = SPOTS[0]
    slow = START, 180.0
    run = Run(
        PRODUCTION,
        crowds((spot, *slow, 400.0)),
        CAPACITY,
        response=lambda now: FAST_BPS * (0.6 if slow[0] <= now < slow[1] else 1.0),
    ).until(230.0)
    ((_, ended),) = spells(run)[spot]
    assert slow[1] < ended < slow[1] + 25


def test_a_sole_limit_does_not_outlive_its_crowd_by_what_others_are_asked_for() -> None:
    """The only limit ends within 25 s after its crowd, although two conditions could keep it.

    Requests to all other destinations stay a fifth above usual, and slow responses have reduced the limit below the
    destination's usual rate of requests.
    """
    spot, slow = SPOTS[0], (START, 180.0)

    def arrivals(now: float) -> dict[str, float]:
        others = 1.2 if now >= START else 1.0
        rates = {BYSTANDER: 160.0 * others} | dict.fromkeys(SPOTS, USUAL * others)
        return rates | {spot: USUAL + (400.0 if slow[0] <= now < slow[1] else 0.0)}

    def response(now: float) -> float:
        return FAST_BPS * (0.6 if slow[0] <= now < slow[1] else 1.0)

    run = Run(PRODUCTION, arrivals, 900.0, response=response).until(230.0)
    assert limited(run.decisions[-1]) == set()
    assert slow[1] < spells(run)[spot][-1][1] < slow[1] + 25


def test_published_control_limits_the_one_with_the_highest_count() -> None:
    run = Run(PAPER, crowds((SPOTS[0], START, 200.0, 400.0), (SPOTS[1], START, 200.0, 200.0)), CAPACITY).until(160.0)
    assert max(len(decision.limits) for decision in run.decisions) == 1
    assert limited(run.decisions[-1]) == {SPOTS[0]}


@pytest.mark.parametrize("mode", ["production", "paper"])
def test_another_controller_goes_on_from_every_limit_it_finds(mode: str) -> None:
    """A starting controller adopts the two limits that are in the switch; in paper mode it keeps only one of them."""
    both = [(SPOTS[0], START, 200.0, 400.0), (SPOTS[1], START, 200.0, 300.0)]
    run = Run(PRODUCTION, crowds(*both), CAPACITY).until(START + 30)
    left = run.switch.crowd
    address = {number: destination for destination, number in left.numbers.items()}
    readback = Readback(
        entries={},
        meters=run.switch.readback.meters,
        destinations=dict(left.numbers),
        limits={address[number]: rate for number, rate in left.limits.items()},
    )
    view = Run(PRODUCTION.replace("production", mode, 1), crowds()).view
    view.adopt(readback)
    wanted = view.wanted()
    assert len(left.limits) == 2
    if mode == "paper":
        ((number, limit),) = wanted.limits.items()
        assert limit == pytest.approx(left.limits[number], rel=0.01)
        return
    assert wanted.limits == pytest.approx(left.limits, rel=0.01)
    assert (wanted.general, wanted.returning) == (left.general, left.returning)
