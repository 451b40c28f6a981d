"""Tests of the closed loop in virtual time: a link of 2 Mbit/s in a flash crowd, and with noise but no crowd."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from news.fluid import BYSTANDER, TARGET, Bottleneck
from sluice.balance import Counts
from sluice.news import Cause, News, NewsMode, NewsOptions, Observation, Requests

QUIET, PEAK, CAPACITY = 20.0, 110.0, 50.0
"""Usual load, peak load and capacity in requests/s; the capacity is 250 kB/s at a mean response of 5 kB."""
PAPER = NewsOptions(mode=NewsMode.PAPER)
T = PAPER.period_s


def crowd(onset: float, ramp: float, scale: float = 1.0) -> Callable[[float], float]:
    """Return a function from time to requests/s: QUIET, then a rise to PEAK in `ramp` s, as in the World Cup logs."""
    return lambda t: scale * (QUIET + (PEAK - QUIET) * min(1.0, max(0.0, (t - onset) / ramp)))


def ar(link: Bottleneck, start: float, end: float) -> float:
    """Return the mean AR (rate of the fastest responses) in bit/s between two times."""
    return float(np.mean([d.measurement.ar or 0.0 for d in link.decisions if start < d.time_s <= end]))


def alarms(link: Bottleneck) -> list[float]:
    return [d.time_s for d in link.decisions if d.detection.alarm]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.7])
def test_paper_mode_detects_within_the_papers_bound(seed: int, phase: float) -> None:
    """Chen & Heidemann detect a crowd within 88 s at T = 64 s, about 1.4 intervals, wherever in one it begins."""
    onset = (8 + phase) * T
    link = Bottleneck(News(PAPER), crowd(onset, 20), bystanders=3, seed=seed)
    link.run(11 * T)
    raised = alarms(link)
    assert raised
    assert 0 < raised[0] - onset <= 1.4 * T


def test_paper_mode_brings_ar_back_when_the_limit_starts_below_the_capacity() -> None:
    """The limit starts at the mean request rate of the interval in which the crowd is detected.

    The crowd begins 16 s before that interval ends, so this mean is below the capacity. In Chen & Heidemann's figure,
    likewise, the detection follows 20 s after the onset at T = 60 s.
    """
    onset = 8.75 * T
    link = Bottleneck(News(PAPER), crowd(onset, 5), bystanders=3)
    link.run(9 * T)
    assert link.decisions[-1].hot_spot == TARGET
    link.run(21 * T)
    free = Bottleneck(News(replace(PAPER, limit_min=1000, limit_max=1000)), crowd(onset, 5), bystanders=3)
    free.run(21 * T)
    usual = ar(link, 2 * T, 8 * T)
    assert ar(free, 11 * T, 21 * T) < 0.1 * usual
    assert ar(link, 11 * T, 21 * T) > 0.85 * usual
    assert link.counts[BYSTANDER].refused == 0
    assert link.counts[TARGET].refused > 0


def test_paper_mode_stays_above_the_capacity_when_the_limit_starts_there() -> None:
    """While the alarm stays set, Chen & Heidemann's scoreboard reduces and raises the limit in alternate intervals.

    In two intervals the limit thus falls by the square of the step: by 1 % with a step of 0.1. With a step of 0.3 it
    falls by 9 %, and so reaches the capacity during the crowd.
    """
    onset = 8 * T
    published, larger = (
        Bottleneck(News(replace(PAPER, step=step)), crowd(onset, 5), bystanders=3) for step in (0.1, 0.3)
    )
    for link in (published, larger):
        link.run(22 * T)
    limits = [[d.limit.rate for d in link.decisions if d.limit] for link in (published, larger)]
    assert limits[0][0] > 1.5 * CAPACITY
    pairs, odd = divmod(len(limits[0]) - 1, 2)  # a reduction, a raise, and so on: an odd number ends with a reduction
    assert limits[0][-1] == pytest.approx(limits[0][0] * 0.99**pairs * 0.9**odd)
    assert limits[0][-1] > 1.5 * CAPACITY
    assert limits[1][-1] < CAPACITY


def test_paper_mode_raises_no_alarm_from_poisson_noise_at_64_s() -> None:
    """Eighty minutes of thousands of requests per interval, on a link that is never full, raise no alarm."""
    for seed in range(2):
        link = Bottleneck(News(PAPER), lambda _: 40.0, capacity=1e9, seed=seed)
        link.run(75 * T)
        assert alarms(link) == []


def test_paper_mode_raises_false_alarms_from_noise_when_the_interval_is_tiny() -> None:
    """With 80 requests per interval, noise raises alarms (Chen & Heidemann, sections 7.4 and 8.4).

    A false alarm does harm: its limit refuses requests on an empty link. The limit also hides later alarms, because the
    detector requires that the admitted requests rise, and the limit caps these.
    """
    for seed in range(3):
        link = Bottleneck(News(replace(PAPER, period_s=2.0)), lambda _: 40.0, capacity=1e9, seed=seed)
        link.run(1200)
        assert alarms(link)
        assert link.counts[TARGET].refused > 0


@pytest.mark.parametrize("options", [PAPER, NewsOptions()])
def test_a_quarter_of_the_flows_measured_is_no_silence(options: NewsOptions) -> None:
    """With a dozen requests in a window, sometimes none of their responses is among the measured quarter of the flows.

    AR (the rate of the fastest responses) is then unknown, not zero. Production mode extends the window, so that more
    windows contain a measured response.
    """
    quarter = replace(options, flow_share=0.25)
    window_s = options.interval_s * options.window_intervals
    link = Bottleneck(News(quarter), lambda _: 12 / window_s, capacity=1e9)
    link.run(120 * window_s)
    unknown = [d.measurement.ar for d in link.decisions if d.measurement.flows == 0]
    assert (len(unknown) > 2) == (options is PAPER) and set(unknown) <= {None}


@pytest.mark.parametrize("options", [PAPER, NewsOptions()])
def test_a_crowd_is_found_and_limited_by_a_quarter_of_the_flows(options: NewsOptions) -> None:
    onset = 8.7 * T
    link = Bottleneck(News(replace(options, flow_share=0.25)), crowd(onset, 5), bystanders=3)
    link.run(16 * T)
    raised = alarms(link)
    assert raised
    assert 0 < raised[0] - onset <= 1.4 * T
    assert set(link.decisions[-1].limits) == {TARGET}
    assert ar(link, 11 * T, 16 * T) > 0.7 * ar(link, 2 * T, 8 * T)
    assert link.counts[BYSTANDER].refused == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_production_mode_keeps_the_bottleneck_nearly_full_and_unharmed(seed: int) -> None:
    """Loads and capacity are eight times those of Chen & Heidemann's testbed, so that a run of an eighth of the time
    has as many requests."""
    onset, scale = 200.0, 8.0
    link = Bottleneck(
        News(NewsOptions()), crowd(onset, 5, scale), capacity=scale * 250_000, bystanders=3 * scale, seed=seed
    )
    link.run(500)
    raised = alarms(link)
    assert raised
    assert 0 < raised[0] - onset <= 5
    assert link.utilisation(onset + 60) > 0.85
    assert ar(link, onset + 60, 500) > 0.7 * ar(link, 60, onset)
    assert link.counts[BYSTANDER].refused == 0


@pytest.mark.parametrize("bystanders", [0.5, 3.0])
def test_an_upload_elsewhere_does_not_draw_the_limit_away_from_the_crowd(bystanders: float) -> None:
    """The bystander receives most of the packets by an upload, and sometimes a few more requests than usual."""
    onset = 300.0
    link = Bottleneck(News(NewsOptions()), crowd(onset, 20), bystanders=bystanders, upload=4000)
    link.run(600)
    assert {target for decision in link.decisions for target in decision.limits} == {TARGET}
    assert ar(link, onset + 60, 600) > 0.7 * ar(link, 60, onset)
    assert link.counts[BYSTANDER].refused == 0


@pytest.mark.parametrize("change", ["restart in 4 s", "restart in 40 s", "mode"])
def test_a_restart_in_the_crowd_ends_no_protection(change: str) -> None:
    """A restarted controller keeps the limit for minutes, and lifts it when the crowd ends.

    The crowd does not enter the baseline by which the next crowd is detected. In the case "4 s", AR is still that of a
    full link when the controller restarts, so only a further decline could be noticed. In the case "mode", the mode
    changes from paper to production, without a restart. The limit is then below the capacity, because the crowd begins
    late in an interval.
    """
    onset, end, again, over = 127.0, 600.0, 720.0, 760.0
    first, second = crowd(onset, 5), crowd(again, 5)
    options = replace(PAPER, period_s=10.0) if change == "mode" else NewsOptions()
    link = Bottleneck(News(options), lambda t: first(t) if t < end else second(t), bystanders=3)
    link.run(onset + 2)
    while not (link.decisions[-1].limits and link.decisions[-1].detection.alarm):
        link.run(link.now + 1)
    link.run(link.now + (4 if "4 s" in change else 40))
    changed = link.now
    if change == "mode":
        link.news.configure(NewsOptions())
    else:
        link.restart()
    link.run(end)
    crowded = [d for d in link.decisions if d.time_s > changed]
    assert all(set(d.limits) == {TARGET} for d in crowded)
    assert all(d.verdict.cause is Cause.CROWD for d in crowded)
    assert not any(d.detection.ar_average for d in crowded), "nothing is learned of a crowd"
    least = ar(link, changed, changed + 60) if "4 s" in change else 0.7 * ar(link, 40, onset)
    assert ar(link, changed + 240, end) > least
    assert link.utilisation(changed) > 0.6
    link.run(again)
    assert not link.decisions[-1].limits
    usual = link.decisions[-1].detection.request_average
    assert usual == pytest.approx(QUIET + 3, rel=0.3)
    link.run(over)
    assert [time for time in alarms(link) if time > again]
    assert set(link.decisions[-1].limits) == {TARGET}
    assert link.counts[BYSTANDER].refused == 0


@pytest.mark.parametrize("after_s", [-1, 1, 40])
def test_a_restart_with_a_baseline_controls_like_one_that_never_stopped(after_s: float) -> None:
    """The controller restarts with its saved baseline: before the crowd, before the alarm, or under a limit."""
    onset, end = 200.0, 420.0
    never, stopped = (Bottleneck(News(NewsOptions()), crowd(onset, 5), bystanders=3) for _ in range(2))
    never.run(end)
    stopped.run(onset + after_s)
    before = stopped.decisions[-1].detection
    stopped.restart(keeps_baseline=True)
    stopped.run(end)
    assert alarms(stopped)[0] <= alarms(never)[0] + 2
    resumed = next(d for d in stopped.decisions if d.time_s > onset + after_s)
    assert resumed.detection.ar_average == pytest.approx(before.ar_average, rel=0.05)
    assert all(set(d.limits) == {TARGET} for d in stopped.decisions if d.time_s > alarms(never)[0] + 4)
    assert stopped.utilisation(onset + 60) > stopped_share(never, onset)
    assert ar(stopped, onset + 60, end) > 0.7 * ar(stopped, 60, onset)
    assert stopped.counts[BYSTANDER].refused == 0


def stopped_share(never: Bottleneck, onset: float) -> float:
    """Return the smallest share of the link that a run with a restart must use: 90 % of that without a restart."""
    return 0.9 * never.utilisation(onset + 60)


def test_static_mode_goes_on_from_no_limit_however_long_the_crowd() -> None:
    link = Bottleneck(News(NewsOptions()), crowd(120, 5), bystanders=3)
    link.run(160)
    assert link.decisions[-1].limits
    link.news.configure(NewsOptions(mode=NewsMode.STATIC, period_s=10))
    changed = link.now
    link.run(changed + 100)
    link.news.adopt(TARGET, 30.0)
    link.run(changed + 400)
    assert not any(d.limits for d in link.decisions if d.time_s > changed)


def test_a_limit_below_the_usual_load_that_is_found_in_the_switch_goes_too() -> None:
    """Without a baseline, the search raises the limit while responses stay fast, until the limit refuses no request."""
    link = Bottleneck(News(NewsOptions()), lambda _: QUIET, bystanders=3)
    link.news.adopt(TARGET, 0.8 * QUIET)
    link.restart()
    link.run(30)
    assert link.counts[TARGET].refused > 0
    link.run(300)
    assert not link.decisions[-1].limits
    assert link.decisions[-1].detection.request_average == pytest.approx(QUIET + 3, rel=0.3)
    assert alarms(link) == []


def test_production_mode_lifts_the_limit_after_the_crowd() -> None:
    onset, end = 120.0, 240.0
    up = crowd(onset, 5)
    link = Bottleneck(News(NewsOptions()), lambda t: up(t) if t < end else QUIET, bystanders=3)
    link.run(end)
    assert link.decisions[-1].limits
    link.run(end + 150)
    assert not link.decisions[-1].limits


@pytest.mark.parametrize("seed", [1, 2])
def test_production_mode_raises_no_alarm_without_congestion(seed: int) -> None:
    """The load is constant, rises slowly or jumps, on a link that is never full."""
    loads: list[Callable[[float], float]] = [lambda _: 40.0, lambda t: 20 + t / 9, crowd(600, 5)]
    for load in loads:
        link = Bottleneck(News(NewsOptions()), load, capacity=1e9, seed=seed)
        link.run(1200)
        assert alarms(link) == []


def test_only_slow_clients_raise_no_alarm_while_requests_are_not_up() -> None:
    """AR (the rate of the fastest responses) falls to a seventh, because the fast clients left.

    The detector's second condition, more requests than usual, does not hold.
    """
    random = np.random.default_rng(5)
    for options in (PAPER, NewsOptions()):
        news, requests = News(options), Requests()
        news.observe(Observation(0, np.zeros(0), {TARGET: requests}))
        for i in range(1, 80):
            rates = random.lognormal(11 if i < 40 else 9, 1, 400)
            many = int(random.poisson(40 * options.interval_s))
            requests += Requests(many, many)
            decision = news.observe(Observation(i * options.interval_s, rates, {TARGET: requests}, {1: Counts()}))
            assert decision is not None
            assert not decision.detection.alarm
