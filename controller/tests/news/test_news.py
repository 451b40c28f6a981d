"""Tests of the facade `News` on sequences of observations whose decisions are calculated by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sluice.addresses import IPV4_BITS, Packed, packed
from sluice.balance import Counts
from sluice.news import Cause, Decision, News, NewsMode, NewsOptions, Observation, ObservationError, Requests

HOT, OTHER, HOST = (packed(0x0A000000 + number, IPV4_BITS) for number in (1, 2, 3))
PAPER = NewsOptions(mode=NewsMode.PAPER, step=0.1, sample_min=10, limit_max=1000)


class Driver:
    """A News, and what it observes: the time and the cumulative counts of requests to each destination."""

    def __init__(self, options: NewsOptions, destinations: tuple[Packed, ...] = (HOT, OTHER)) -> None:
        self.news = News(options)
        self.time = 0.0
        self.counts = {destination: Requests() for destination in destinations}
        assert self.news.observe(Observation(0.0, np.zeros(0), dict(self.counts))) is None

    def interval(
        self, ar: float, admitted: float, *, other: float = 0, refused: float = 0, samples: tuple[Packed, ...] = ()
    ) -> Decision:
        """Observe one interval with 20 responses of the rate `ar` in bit/s; return the decision.

        `admitted` and `refused` are the requests/s to HOT, and `other` are those to OTHER. `samples` are the
        destinations of the sampled packets.
        """
        seconds = self.news.options.interval_s
        self.time += seconds
        yes, no = round(admitted * seconds), round(refused * seconds)
        self.counts[HOT] += Requests(yes + no, yes, no)
        self.counts[OTHER] += Requests(round(other * seconds), round(other * seconds), 0)
        decision = self.news.observe(Observation(self.time, np.full(20, ar), dict(self.counts), samples=samples))
        assert decision is not None
        return decision


def test_a_crowd_by_the_papers_rules() -> None:
    d = Driver(PAPER)
    quiet = d.interval(100_000, 40, other=10)
    assert quiet.limits == {}
    assert quiet.sample_share == 0
    assert quiet.sentence == "Normal: 50.0 requests/s, fast responses at 100.0 kbit/s."

    onset = d.interval(50_000, 110, other=10)  # alarm 0 -> 1, the hot spot is not yet known
    assert onset.detection.alarm
    assert onset.limits == {}
    assert onset.sample_share == PAPER.sample_share
    assert not onset.freeze
    unknown = "Flash crowd at an unknown destination: not limited yet, 120.0/s admitted in all"
    assert onset.sentence == f"{unknown}."

    assert d.news.sampled(d.time + 0.5, [HOT] * 5) is None  # not enough samples
    named = d.news.sampled(d.time + 1, [HOT] * 7 + [OTHER])
    assert named is not None
    assert named.hot_spot == HOT
    assert named.changed
    assert {target: limit.rate for target, limit in named.limits.items()} == {HOT: 110}  # without the requests to OTHER
    assert named.limit is not None
    assert named.limit.burst == 27.5
    assert named.target == Requests(110 * 64, 110 * 64)
    assert named.sentence == "Flash crowd at 10.0.0.1: limit 110.0/s, 110.0/s admitted, 0.0/s refused."
    assert d.news.sampled(d.time + 2, [HOT] * 20) is None

    down = d.interval(60_000, 100, other=10, refused=60)  # alarm 1 -> 1: the scores are equal, so the limit is reduced
    assert down.limit is not None
    assert down.limit.rate == pytest.approx(99)
    up = d.interval(60_000, 99, other=10, refused=60)  # alarm 1 -> 1: the reduction is penalised, the limit is raised
    assert up.limit is not None
    assert up.limit.rate == pytest.approx(108.9)
    assert (up.up_score, up.down_score) == (0, -1)
    over = d.interval(130_000, 100, other=10, refused=60)  # alarm 1 -> 0: the raise is credited, the limit stays
    assert not over.detection.alarm
    assert (over.up_score, over.down_score) == (1, -1)
    assert not over.changed
    assert over.sample_share == 0
    assert over.verdict.cause is Cause.CROWD  # the limit still refuses requests
    assert over.sentence == "Flash crowd at 10.0.0.1: limit 108.9/s, 100.0/s admitted, 60.0/s refused."
    calm = d.interval(130_000, 40, other=10)
    assert calm.verdict.cause is Cause.NORMAL
    assert calm.sentence.endswith("limit 108.9/s kept at 10.0.0.1.")


def test_samples_that_come_with_the_alarm_name_the_hot_spot_at_once() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40, samples=(OTHER,) * 50)  # samples from before the alarm do not count
    onset = d.interval(50_000, 110, samples=(HOT,) * 20)
    assert onset.hot_spot == HOT
    assert onset.changed


def test_few_samples_do_at_the_end_of_the_next_interval_and_the_lead_may_change() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40, other=30)
    d.interval(50_000, 110, other=30, samples=(OTHER,))
    first = d.interval(50_000, 110, other=30, samples=(OTHER,))
    assert first.hot_spot == OTHER
    assert {target: limit.rate for target, limit in first.limits.items()} == {OTHER: 30}
    then = d.interval(50_000, 110, other=30, samples=(HOT,) * 9)
    assert {target: limit.rate for target, limit in then.limits.items()} == {HOT: 110}


def test_without_identification_everyone_shares_one_limit() -> None:
    d = Driver(replace(PAPER, identify=False))
    d.interval(100_000, 40, other=10)
    onset = d.interval(50_000, 110, other=10)
    assert {target: limit.rate for target, limit in onset.limits.items()} == {None: 120}
    assert onset.sample_share == 0
    assert "at every destination" in onset.sentence


def test_an_uncounted_hot_spot_is_named_first_and_limited_from_its_own_rate() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40)
    d.interval(50_000, 60)
    named = d.news.sampled(d.time + 1, [HOST] * 20, {HOST: Requests(1000, 1000)})
    assert named is not None
    assert named.hot_spot == HOST
    assert named.limits == {}
    assert named.sentence == "Flash crowd at 10.0.0.3: not limited yet, 60.0/s admitted in all."
    started = d.news.sampled(d.time + 3, [HOST], {HOST: Requests(1180, 1180)})
    assert started is not None
    assert {target: limit.rate for target, limit in started.limits.items()} == {HOST: 90}
    assert started.sentence == "Flash crowd at 10.0.0.3: limit 90.0/s, 90.0/s admitted, 0.0/s refused."
    assert (started.target_is, started.target, started.target_s) == (HOST, Requests(180, 180), 2)


def test_the_next_crowd_starts_from_what_is_admitted_then() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40)
    d.interval(50_000, 110, samples=(HOT,) * 20)
    d.interval(130_000, 100)
    d.interval(130_000, 30)
    again = d.interval(50_000, 80, samples=(HOT,) * 20)
    assert again.limit is not None
    assert again.limit.rate == 80


def test_no_response_at_all_under_load_is_an_ar_of_nought() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40)
    d.time += 64
    d.counts[HOT] += Requests(6400, 6400)
    silent = d.news.observe(Observation(d.time, np.zeros(0), dict(d.counts)))
    assert silent is not None
    assert silent.measurement.ar == 0
    assert silent.detection.alarm


def test_silence_counts_by_the_requests_whose_responses_are_measured() -> None:
    """If no response is measured, AR is 0 where at least 10 were expected; where fewer were, AR is unknown.

    The switch measures a share 1/2^n of the flows: a quarter for the configured 0.3. So 36 requests let 9 measured
    responses be expected, and 44 requests 11.
    """
    options = replace(PAPER, flow_share=0.3, period_s=1.0)
    for admitted, ar in [(36, None), (44, 0)]:
        news = News(options)
        news.observe(Observation(0.0, np.zeros(0), {HOT: Requests()}))
        silent = news.observe(Observation(1.0, np.zeros(0), {HOT: Requests(admitted, admitted)}))
        assert silent is not None
        assert silent.measurement.ar == ar


def test_production_limits_then_lifts_and_never_touches_the_bystander() -> None:
    options = NewsOptions(sample_min=10, limit_max=10_000)
    d = Driver(options)
    for _ in range(60):
        d.interval(100_000, 40, other=10)
    onset = [d.interval(30_000, 200, other=10, samples=(HOT,) * 20) for _ in range(4)][-1]
    assert onset.hot_spot == HOT
    assert onset.limit is not None
    assert onset.limit.rate < 200
    limited = [d.interval(95_000, onset.limit.rate, other=10, refused=100) for _ in range(30)]
    assert all(set(decision.limits) == {HOT} for decision in limited)
    assert limited[-1].limit is not None
    assert limited[-1].limit.rate > onset.limit.rate  # the regulator tries a higher limit
    assert limited[-1].detection.ar_average == pytest.approx(100_000)
    over = [d.interval(100_000, 40, other=10) for _ in range(20)]
    assert over[-1].limits == {}
    assert sum(decision.changed for decision in over) == 1
    assert over[-1].hot_spot is None
    assert not over[-1].freeze


def test_production_does_not_name_a_destination_whose_requests_are_not_up() -> None:
    d = Driver(NewsOptions(sample_min=10))
    for _ in range(60):
        d.interval(100_000, 40, other=10)
    samples = (OTHER,) * 90 + (HOT,) * 10  # most packets belong to an upload to the bystander
    onset = [d.interval(30_000, 200, other=10, samples=samples) for _ in range(4)][-1]
    assert onset.hot_spot == HOT


def unlisted(requests_per_s: int, *, early: bool) -> list[Decision]:
    """Return decisions in a crowd at HOT, while HOST receives 90 % of the packets and `requests_per_s` requests/s.

    HOST is no configured destination, so its requests are counted only while it is the hot spot. If `early`, readings
    between the observations report samples of HOST, in addition to those at the observations.
    """
    d = Driver(NewsOptions(sample_min=10))
    for _ in range(60):
        d.interval(100_000, 40, other=10)
    made, cumulative = list[Decision](), 5000
    for _ in range(30):
        if d.news.decision is not None and d.news.decision.hot_spot == HOST:
            d.counts.setdefault(HOST, Requests(cumulative, cumulative))
        elif HOST not in (d.news.limits or {}):
            d.counts.pop(HOST, None)
        for fraction in (0.3, 0.6) if early else ():
            more = cumulative + round(fraction * requests_per_s)
            decision = d.news.sampled(d.time + fraction, [HOST] * 27 + [HOT] * 3, {HOST: Requests(more, more)})
            made += [decision] if decision else []
        cumulative += requests_per_s
        if HOST in d.counts:
            d.counts[HOST] = Requests(cumulative, cumulative)
        made.append(d.interval(30_000, 200, other=10, samples=(HOST,) * 90 + (HOT,) * 10))
    return made


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("requests_per_s", [0, 1, 4])
def test_an_unlisted_destination_that_few_ask_is_no_hot_spot(requests_per_s: int, early: bool) -> None:
    """HOST receives most packets, for example by an upload, but few requests.

    Usual are 50 requests/s in total, and HOST receives fewer than a tenth of them, so it causes no crowd.
    """
    made = unlisted(requests_per_s, early=early)
    assert made[-1].hot_spot == HOT
    assert set(made[-1].limits) == {HOT}
    assert all(set(decision.limits) <= {HOT} for decision in made)
    assert sum(decision.hot_spot == HOST for decision in made) <= 6, "while it is not counted yet"


@pytest.mark.parametrize("early", [False, True])
def test_an_unlisted_destination_that_many_ask_is_a_hot_spot_beside_the_other(early: bool) -> None:
    made = unlisted(300, early=early)
    assert made[-1].hot_spot == HOST
    assert set(made[-1].limits) == {HOST, HOT}


def test_a_limit_found_in_the_switch_goes_on_and_is_not_written_again() -> None:
    for options in (PAPER, NewsOptions()):
        d = Driver(options)
        d.news.adopt(HOT, 70)
        decision = d.interval(100_000, 60, refused=30)
        assert not decision.changed
        assert decision.hot_spot == HOT
        assert decision.limit is not None
        assert decision.limit.rate == 70


def test_options_change_while_it_runs() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40)
    d.interval(50_000, 110, samples=(HOT,) * 20)
    d.news.configure(replace(PAPER, limit_max=50))
    bounded = d.interval(92_000, 50)
    assert bounded.changed
    assert bounded.limit is not None
    assert bounded.limit.rate <= 50
    d.news.configure(NewsOptions())
    assert d.news.decision is None, "the other mode has decided nothing yet"
    other = d.interval(92_000, 45, refused=10)
    assert other.limit is not None
    assert other.limit.rate == bounded.limit.rate


@pytest.mark.parametrize("options", [PAPER, NewsOptions(sample_min=10)])
@pytest.mark.parametrize("identify", [True, False])
def test_a_limit_is_not_kept_for_others_than_it_was_made_for(options: NewsOptions, identify: bool) -> None:
    d = Driver(replace(options, identify=identify))
    for _ in range(20):
        d.interval(100_000, 40, other=10)
    crowd = [d.interval(30_000, 200, other=10, samples=(HOT,) * 20) for _ in range(4)][-1]
    assert set(crowd.limits) == {HOT if identify else None}
    d.news.configure(replace(options, identify=not identify))
    assert d.news.limits == {}
    assert d.news.decision is None, "what was said of the limit is no longer so"
    again = [d.interval(30_000, 200, other=10, samples=(HOT,) * 20) for _ in range(2)][-1]
    assert set(again.limits) == {None if identify else HOT}, "the alarm is still set"


@pytest.mark.parametrize("mode", [NewsMode.PAPER, NewsMode.PRODUCTION])
def test_mode_and_aim_changed_at_once_keep_no_limit(mode: NewsMode) -> None:
    d = Driver(replace(PAPER, mode=mode))
    d.news.adopt(HOT, 70)
    other = NewsMode.PAPER if mode is NewsMode.PRODUCTION else NewsMode.PRODUCTION
    d.news.configure(replace(PAPER, mode=other, identify=False))
    assert d.news.limits == {}


def test_a_restarted_switch_is_a_new_beginning_with_the_same_averages() -> None:
    d = Driver(PAPER)
    d.interval(100_000, 40)
    d.counts[HOT] = Requests()
    d.time += 64
    assert d.news.observe(Observation(d.time, np.full(5, 100_000.0), dict(d.counts))) is None
    after = d.interval(100_000, 40)
    assert after.detection.request_average == 40
    d.news.rebase()
    d.time += 64
    assert d.news.observe(Observation(d.time, np.full(5, 100_000.0), dict(d.counts))) is None


def test_sick_server_by_name() -> None:
    news = News(NewsOptions(), server_name=lambda server: f"web{server}")
    news.observe(Observation(0, np.zeros(0), {}, ledger={1: Counts(), 2: Counts()}))
    ledger = {1: Counts(syn=100, synack=100, completed=100), 2: Counts(syn=100, synack=50, completed=50)}
    decision = news.observe(Observation(1, np.full(9, 1e5), {}, ledger=ledger))
    assert decision is not None
    assert decision.sentence == "Sick server: web2 leaves connection requests unanswered; there is no crowd."
    assert not decision.freeze


@pytest.mark.parametrize("time", [0.0, -1.0, math.nan])
def test_time_must_increase(time: float) -> None:
    news = News(PAPER)
    news.observe(Observation(0.0, np.zeros(0), {}))
    with pytest.raises(ObservationError, match="times must increase"):
        news.observe(Observation(time, np.zeros(0), {}))


@pytest.mark.parametrize("options", [PAPER, NewsOptions(sample_min=10)])
def test_an_observation_that_is_refused_changes_nothing(options: NewsOptions) -> None:
    counted = {HOT: Requests(9000, 9000)}, {1: Counts(syn=90)}, [HOT]
    refused = [
        Observation(1e4, np.full(20, 1e5), *counted, np.ones(3, np.uint64)),
        Observation(1e4, np.array([-1.0]), *counted),
        Observation(-1.0, np.full(20, 1e5), *counted),
    ]
    spared, tried = Driver(options), Driver(options)
    for ar, admitted in [(100_000, 40)] * 30 + [(30_000, 200)] * 6:
        for wrong in refused:
            with pytest.raises(ObservationError):
                tried.news.observe(wrong)
        samples = (HOT,) * 20
        assert tried.interval(ar, admitted, samples=samples) == spared.interval(ar, admitted, samples=samples)
    assert tried.news.limits


def test_the_trace_row_is_flat_and_complete() -> None:
    row = Driver(PAPER).interval(100_000, 40).row()
    assert row["ar_bps"] == 100_000
    assert math.isnan(float(row["ar_average_bps"]))
    assert all(isinstance(value, int | float | str) for value in row.values())


SIX = [packed(number, IPV4_BITS) for number in range(6)]
RATES = st.lists(st.floats(0, 1e10), max_size=12)
STEPS = st.lists(
    st.tuples(RATES, st.integers(0, 10**5), st.integers(0, 10**5), st.lists(st.sampled_from(SIX), max_size=80)),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from(list(NewsMode)), st.booleans())
def test_whatever_is_observed_the_limit_stays_in_bounds_and_is_all_there_is(
    steps: list[tuple[list[float], int, int, list[Packed]]], mode: NewsMode, identify: bool
) -> None:
    """A decision sets at most one limit, and the limit is within its bounds.

    The limit applies to a destination, or to all destinations if `identify` is false.
    """
    options = NewsOptions(mode=mode, identify=identify, limit_min=3, limit_max=500, sample_min=5)
    news, counts, written = News(options), Requests(), {}
    news.observe(Observation(0, np.zeros(0), {SIX[1]: counts, SIX[2]: counts}))
    for time, (rates, admitted, refused, samples) in enumerate(steps, 1):
        counts += Requests(admitted + refused, admitted, refused)
        decision = news.observe(
            Observation(time, np.array(rates, dtype=float), {SIX[1]: counts, SIX[2]: counts}, {}, samples)
        )
        assert decision is not None
        assert len(decision.limits) <= 1
        for target, limit in decision.limits.items():
            assert 3 <= limit.rate <= 500
            assert limit.burst >= 1
            assert target in (SIX if identify else (None,))
        assert decision.changed == (decision.limits != written)
        assert decision.sentence.endswith(".")
        written = decision.limits


def test_static_mode_watches_and_limits_nothing() -> None:
    options = NewsOptions(mode=NewsMode.STATIC, period_s=10, sample_min=1)
    news = News(options)
    news.adopt(HOT, 5.0)
    count, decisions = Requests(), list[Decision]()
    for i in range(12):
        rate, ar = (40, 1000.0) if i < 8 else (200, 100.0)
        count += Requests(rate, rate, 0)
        decision = news.observe(Observation(10.0 * i, np.full(10, ar), {HOT: count}, samples=[HOT] * 100))
        decisions += [decision] if decision else []
    assert any(d.detection.alarm for d in decisions)
    assert decisions[-1].hot_spot == HOT
    assert not any(d.limits for d in decisions)
    assert decisions[-1].sentence == "Flash crowd at 10.0.0.1: limited as configured only, 20.0/s admitted."
