"""Tests of Ohta & Andou's published algorithm in a closed loop with simulated servers."""

import math

from model import Pool
from sluice.balance import BalanceOptions, Balancer, Condition, Counts, Member, Mode

PAPER = BalanceOptions(mode=Mode.PAPER)


def test_defaults_are_the_papers() -> None:
    assert (PAPER.period_s, PAPER.window_s, PAPER.intervals, PAPER.delta) == (10.0, 200.0, 20, 0.1)


def test_the_loaded_servers_ratio_falls_and_connections_are_answered() -> None:
    """As in the paper's figure 6, one of three servers is degraded: its share of new connections falls."""
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=600, options=PAPER)
    start = pool.balancer.ratios[3]
    decision = pool.intervals(40)
    assert decision.ratios[3] < start / 2
    assert math.isclose(sum(decision.ratios.values()), 1.0)
    assert decision.ratios[1] > start
    assert decision.ratios[2] > start


def test_first_step_is_a_tenth_of_the_worst_ratio_to_the_others_equally() -> None:
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=600, options=PAPER)
    decision = pool.interval()
    assert math.isclose(decision.ratios[3], 0.3)
    assert math.isclose(decision.ratios[1], 0.35)
    assert decision.reason == "moved 0.1 of server 3"


def test_healthy_pool_is_left_alone() -> None:
    pool = Pool({1: 400, 2: 400}, offered=300, options=PAPER)
    before = pool.balancer.weights()
    assert pool.intervals(30).weights == before


def test_published_algorithm_leaves_a_mended_server_starved() -> None:
    """In paper mode the ratio of a server that has recovered from degradation does not rise again."""
    pool = Pool({1: 400, 2: 400, 3: 60}, offered=600, options=PAPER)
    pool.intervals(40)
    starved = pool.balancer.ratios[3]
    pool.capacity[3] = 400
    assert pool.intervals(60).ratios[3] <= starved


def test_window_forgets() -> None:
    pool = Pool({1: 400, 2: 100}, offered=300, options=BalanceOptions(mode=Mode.PAPER, window_s=40))
    assert pool.interval().windows[2].syn > 0
    pool.offered = 0
    pool.waiting = {1: 0, 2: 0}
    decision = pool.intervals(4)
    assert decision.windows[2] == Counts()
    assert decision.diagnosis.condition is Condition.IDLE


def test_single_server_keeps_its_share() -> None:
    decision = Pool({1: 100}, offered=300, options=PAPER).intervals(5)
    assert decision.ratios == {1: 1.0}
    assert decision.reason == "no worst server"


def test_draining_server_takes_no_part() -> None:
    members = [Member(1), Member(2), Member(3, draining=True)]
    pool = Pool({1: 400, 2: 60, 3: 0}, offered=300, options=PAPER, members=members)
    decision = pool.intervals(5)
    assert decision.ratios[3] == 0
    assert 3 not in decision.weights
    assert decision.ratios[2] < decision.ratios[1]


def test_first_reading_is_only_a_base_and_a_switch_restart_counts_from_zero() -> None:
    balancer = Balancer([Member(1), Member(2)], PAPER)
    assert balancer.observe(0, {1: Counts(syn=1000, synack=900), 2: Counts(syn=5)}) is None
    decision = balancer.observe(10, {1: Counts(syn=30, synack=30), 2: Counts(syn=2, synack=2)})
    assert decision is not None
    assert decision.differences[1].syn == 30


def test_ratios_found_in_a_switch_are_gone_on_from() -> None:
    balancer = Balancer([Member(1), Member(2)], PAPER)
    balancer.adopt({1: 0.75, 2: 0.25, 9: 0.1})
    assert balancer.weights() == {1: 192, 2: 64}


def test_changed_pool_keeps_the_proportions_of_those_that_stay() -> None:
    balancer = Balancer([Member(1), Member(2), Member(3)], PAPER, {1: 0.6, 2: 0.2, 3: 0.2})
    balancer.configure([Member(1), Member(2), Member(4)], PAPER, now_s=0)
    ratios = balancer.ratios
    assert math.isclose(ratios[1], 3 * ratios[2])
    assert math.isclose(ratios[4], 1 / 3)
    assert math.isclose(sum(ratios.values()), 1)
