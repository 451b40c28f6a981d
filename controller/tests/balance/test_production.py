"""Tests of what production mode adds to the published algorithm: confidence, recovery, ejection, slow start."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model import Pool
from sluice.balance import BalanceOptions, Balancer, Condition, Decision, Member, ProductionOptions
from sluice.balance.confidence import deviation, standing_out
from sluice.balance.counts import Counts

PRODUCTION = BalanceOptions(window_s=40)


def test_worst_server_loses_traffic() -> None:
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=600, options=PRODUCTION)
    assert pool.intervals(40).ratios[3] < 1 / 6


def test_differences_within_chance_move_nothing() -> None:
    z = deviation(Counts(syn=100, synack=97), Counts(syn=100, synack=99))
    assert 0 < z < PRODUCTION.production.confidence_z


def test_all_that_lose_more_than_the_rest_stand_out_each_against_those_that_do_not() -> None:
    windows = {i: Counts(syn=100, synack=99) for i in range(1, 9)} | {9: Counts(150, 100), 10: Counts(180, 100)}
    standing = standing_out(windows, least_z=3.0, min_syn=10)
    assert list(standing) == [10, 9]
    alone = standing_out({i: windows[i] for i in windows if i != 10}, least_z=3.0, min_syn=10)
    assert standing[9] == alone[9], "it is not compared with the other server that stands out"
    assert standing_out({10: windows[10]}, least_z=3.0, min_syn=10) == {}
    few = {**windows, 10: Counts(syn=9, synack=0)}
    assert list(standing_out(few, least_z=3.0, min_syn=10)) == [9], "too few SYNs are no evidence"


def test_every_loaded_server_of_a_large_pool_gives_in_the_same_period() -> None:
    pool = Pool({i: 60 if i <= 5 else 400 for i in range(1, 51)}, offered=7500, options=PRODUCTION)
    pool.intervals(2)
    ratios = pool.interval().ratios
    assert max(ratios[i] for i in range(1, 6)) < 0.02 < min(ratios[i] for i in range(6, 51))


def test_losses_are_acted_on_once() -> None:
    balancer = Balancer([Member(i) for i in (1, 2, 3)], PRODUCTION)
    counts = {i: Counts() for i in (1, 2, 3)}

    def interval(lost: int) -> Decision:
        for i in counts:
            counts[i] += Counts(syn=100, synack=100 - (lost if i == 3 else 0), completed=100 - (lost if i == 3 else 0))
        decision = balancer.observe(0.0, counts)
        assert decision is not None
        return decision

    balancer.observe(0.0, counts)
    burst = interval(60)
    assert burst.ratios[3] < 1 / 3
    assert burst.r[3] == 1.5, "R is of the window, whatever was acted on"
    after = interval(0)
    assert after.ratios == burst.ratios and after.r[3] is not None and after.r[3] > PRODUCTION.production.quiet_r
    assert interval(60).ratios[3] < after.ratios[3], "new losses move it"


def test_mended_server_comes_back() -> None:
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=500, options=PRODUCTION)
    starved = pool.intervals(40).ratios[3]
    pool.capacity[3] = 400
    pool.waiting[3] = 0
    assert starved < 0.2
    assert math.isclose(pool.intervals(200).ratios[3], 1 / 3, abs_tol=0.01)


def test_starved_server_is_still_measured() -> None:
    pool = Pool({1: 400, 2: 400, 3: 1}, offered=600, options=PRODUCTION)
    decision = pool.intervals(200)
    assert decision.ratios[3] >= 0.05 / 3 - 1e-9
    assert decision.weights[3] >= 1


def test_silent_server_is_ejected_at_once_and_returns_slowly() -> None:
    options = replace(PRODUCTION, production=ProductionOptions(slow_start_s=100))
    pool = Pool({1: 400, 2: 400, 3: 400}, offered=300, options=options)
    pool.intervals(3)
    pool.capacity[3] = 0
    decision = pool.interval()
    assert decision.diagnosis.condition is Condition.SILENT
    assert decision.ejected == {3}
    assert math.isclose(decision.ratios[3], 0.05 / 3)
    pool.capacity[3] = 400
    back = pool.interval()
    assert back.ejected == frozenset()
    assert back.ratios[3] < 0.05
    ten_s_later = pool.interval()
    assert ten_s_later.ratios[3] <= 0.1 / 3 + 1e-9
    assert math.isclose(pool.intervals(100).ratios[3], 1 / 3, abs_tol=0.02)


def test_most_servers_silent_leaves_the_load_to_the_others() -> None:
    decision = Pool({1: 0, 2: 0, 3: 400}, offered=300, options=PRODUCTION).intervals(3)
    assert decision.ejected == {1, 2}
    assert decision.ratios == pytest.approx({1: 0.05 / 3, 2: 0.05 / 3, 3: 1 - 0.1 / 3})


def test_with_every_server_silent_capacities_split_the_pool() -> None:
    members = [Member(1, 1.0), Member(2, 1.0), Member(3, 2.0)]
    pool = Pool({1: 400, 2: 400, 3: 400}, offered=300, options=PRODUCTION, members=members)
    pool.intervals(3)
    pool.capacity = {1: 0, 2: 0, 3: 0}
    silent = pool.interval()
    assert (silent.diagnosis.condition, silent.diagnosis.servers) == (Condition.SILENT, (1, 2, 3))
    assert silent.diagnosis.sentence({1: "a"}, acted_on=True) == (
        "a, server 2, server 3 answer nothing; pending connections choose again."
    )
    assert silent.ejected == {1, 2, 3}
    assert silent.ratios == {1: 0.25, 2: 0.25, 3: 0.5}
    pool.capacity[3] = 1000
    assert pool.interval().ratios == pytest.approx({1: 0.0125, 2: 0.0125, 3: 0.975}), "the first to answer serves"
    pool.capacity |= {1: 1000, 2: 1000}
    assert pool.interval().ratios[1] < 0.15, "the others start slowly"
    assert pool.intervals(6).ratios == pytest.approx({1: 0.25, 2: 0.25, 3: 0.5})


def test_an_answered_flood_is_reported_and_moves_nothing() -> None:
    pool = Pool({1: 4000, 2: 4000, 3: 4000}, offered=300, options=PRODUCTION)
    before = pool.intervals(5).weights
    pool.completing, pool.offered = 0.02, 3000
    decision = pool.intervals(11)
    assert decision.diagnosis.condition is Condition.FLOOD
    assert decision.weights == before
    assert decision.diagnosis.sentence({}, acted_on=True) == (
        "The servers answer but hardly any handshake completes: a SYN flood."
    )


def test_losses_on_every_server_at_once_are_reported_and_the_worse_give() -> None:
    pool = Pool({1: 100, 2: 50, 3: 110}, offered=900, options=PRODUCTION)
    decision = pool.intervals(3)
    assert decision.diagnosis.condition is Condition.OVERLOAD
    assert decision.ratios[2] < 1 / 3 < decision.ratios[3]


def test_an_overload_of_the_servers_that_answer_leaves_a_silent_one_at_its_floor() -> None:
    pool = Pool({1: 100, 2: 100, 3: 0}, offered=900, options=PRODUCTION)
    decision = pool.intervals(3)
    assert decision.diagnosis.condition is Condition.OVERLOAD
    assert decision.ejected == {3} and decision.ratios[3] == pytest.approx(0.05 / 3)


def with_a_new_server(offered: int, able: int) -> Pool:
    pool = Pool({1: 400, 2: 400}, offered=offered, options=PRODUCTION)
    pool.intervals(3)
    pool.capacity[3] = able
    pool.counts[3], pool.waiting[3] = Counts(), 0
    pool.balancer.configure([Member(1), Member(2), Member(3)], PRODUCTION, pool.now)
    return pool


def test_new_server_ramps_up() -> None:
    pool = with_a_new_server(offered=300, able=400)
    assert pool.balancer.ratios[3] < 0.02
    shares = [pool.interval().ratios[3] for _ in range(8)]
    assert shares == pytest.approx([min(1.0, number / 6) / 3 for number in range(1, 9)]), "60 s, 10 s a period"


def test_new_server_that_loses_keeps_what_it_carries() -> None:
    pool = with_a_new_server(offered=600, able=60)
    decisions = [pool.interval() for _ in range(5)]
    assert ["of 3 (z" in decision.reason for decision in decisions] == [False, False, True, True, True]
    pool.capacity[3] = 400
    assert pool.intervals(3).ratios[3] < 0.1, "its slow start was over with the first step; now it recovers"


def test_a_server_that_answers_again_is_judged_by_what_follows() -> None:
    pool = Pool({1: 400, 2: 400, 3: 400}, offered=300, options=PRODUCTION)
    pool.intervals(3)
    pool.capacity |= {2: 0, 3: 0}
    silent = pool.intervals(2)
    assert silent.ejected == {2, 3}
    assert silent.windows[3].syn > silent.windows[3].synack > 0, "the window of a silent server keeps its sums"
    pool.capacity |= {2: 400, 3: 400}
    back = pool.interval()
    assert back.windows[2] == back.windows[3] == Counts()
    assert "step" not in pool.interval().reason


def test_where_all_lose_or_take_long_those_that_lose_give() -> None:
    balancer = Balancer([Member(1), Member(2)], PRODUCTION)
    counts = {1: Counts(), 2: Counts()}
    balancer.observe(0.0, counts)
    for lost, reason in ((150, "step: 0.100 of 1 (z 13.3)"), (0, "step: 0.100 of 2 (takes long)")):
        counts = {1: counts[1] + Counts(500, 500 - lost, 0, 500), 2: counts[2] + Counts(500, 500, 0, 500)}
        for _ in range(8):
            balancer.sample_open({1: 1, 2: 600})
            balancer.sample_open({1: 0, 2: 0})
        decision = balancer.observe(PRODUCTION.period_s, counts)
        assert decision is not None and decision.reason == reason
        if lost:
            assert decision.ratios[1] == pytest.approx(0.45)


def test_capacities_are_what_recovery_leads_back_to() -> None:
    members = [Member(1, 1.0), Member(2, 3.0)]
    pool = Pool({1: 400, 2: 400}, offered=100, options=PRODUCTION, members=members)
    pool.balancer.adopt({1: 0.9, 2: 0.1})
    assert math.isclose(pool.intervals(200).ratios[2], 0.75, abs_tol=0.01)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.integers(1, 9), st.integers(0, 500), min_size=1, max_size=6),
    st.integers(0, 1500),
    st.floats(0, 1),
    st.sampled_from(["paper", "production", "fixed"]),
)
def test_ratios_sum_to_one_and_groups_are_never_empty(
    capacity: dict[int, int], offered: int, completing: float, mode: str
) -> None:
    options = BalanceOptions(mode=type(PRODUCTION.mode)(mode), window_s=40)
    pool = Pool(capacity, offered=offered, options=options, completing=completing)
    for _ in range(12):
        decision = pool.interval()
        assert math.isclose(sum(decision.ratios.values()), 1.0)
        assert all(0 <= ratio <= 1 for ratio in decision.ratios.values())
        assert sum(decision.weights.values()) == 256


def test_held_ratios_stay_whatever_is_counted() -> None:
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=600, options=PRODUCTION)
    before = pool.intervals(2).ratios
    counts = {i: Counts(syn=10_000 * i, synack=10) for i in pool.capacity}
    decision = pool.balancer.observe(1e6, counts, hold=True)
    assert decision is not None
    assert (decision.ratios, decision.ejected) == (before, frozenset())
    assert decision.windows[3].syn > 10_000, "what is counted meanwhile stays in the window"
