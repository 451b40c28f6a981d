"""Who takes long loses weight in production mode, though it answers every SYN."""

from dataclasses import replace

import pytest
from sluice.balance import BalanceOptions, Balancer, Member, Mode, ProductionOptions
from sluice.balance.counts import Counts
from sluice.balance.slowness import Work, slow

OPTIONS = BalanceOptions(period_s=1.0, window_s=10.0)


def test_open_connections_over_new_ones_are_the_time_that_one_takes() -> None:
    assert Work(open_sum=20, begun=40).time() == 0.5
    assert Work(open_sum=3, begun=0).time() == 3


def test_who_is_slow_takes_several_times_as_long_as_those_who_are_not_together() -> None:
    work = {1: Work(20, 400), 2: Work(24, 400), 3: Work(20, 20)}
    assert slow(work, factor=3.0, least_open=5) == {3: pytest.approx(1 / (45 / 800))}, "the others with one more"
    assert slow({**work, 3: Work(3, 20)}, 3.0, 5) == {}, "too few were met open to tell"
    assert slow({**work, 3: Work(20, 400)}, 3.0, 5) == {}
    assert slow({**work, 3: Work(20, 150)}, 3.0, 5) == {}, "not so many times as long"
    assert slow({3: Work(20, 20)}, 3.0, 5) == {}, "nobody to compare with"
    assert slow({1: Work(0, 0), 3: Work(20, 20)}, 3.0, 5) == {}, "nobody else works"


def test_several_are_slow_at_once_and_none_hides_behind_another() -> None:
    work = {1: Work(20, 400), 2: Work(24, 400), 3: Work(200, 200), 4: Work(90, 20)}
    found = slow(work, 3.0, 5)
    assert list(found) == [4, 3]
    assert found[3] == slow({i: work[i] for i in (1, 2, 3)}, 3.0, 5)[3]
    assert list(slow({**work, 3: Work(200, 2000)}, 3.0, 5)) == [4]


def test_where_hardly_a_connection_is_met_open_nobody_is_slow() -> None:
    assert slow({1: Work(0, 9), 2: Work(10, 1)}, 3.0, 5) == {2: 90.0}
    assert slow({1: Work(0, 1), 2: Work(5, 2)}, 3.0, 5) == {}


class Answering:
    """Three servers that answer every SYN; s3 keeps its connections open."""

    def __init__(self, options: BalanceOptions = OPTIONS) -> None:
        self.balancer = Balancer([Member(i, 1.0) for i in (1, 2, 3)], options)
        self.counts: dict[int, Counts] = {i: Counts() for i in (1, 2, 3)}
        self.now = 0.0
        self.balancer.observe(0.0, self.counts)

    def intervals(self, number: int, open_now: dict[int, int] | None) -> dict[int, float]:
        for _ in range(number):
            self.now += 1.0
            more = {i: round(100 * ratio) for i, ratio in self.balancer.ratios.items()}
            self.counts = {i: c + Counts(more[i], more[i], 0, more[i]) for i, c in self.counts.items()}
            self.balancer.observe(self.now, self.counts, open_now=open_now)
        return self.balancer.ratios


def test_the_slow_server_loses_weight_and_gets_it_back() -> None:
    pool = Answering()
    slow = pool.intervals(20, {1: 1, 2: 1, 3: 30})
    assert slow[3] < 0.1 and abs(slow[1] - slow[2]) < 1e-9
    assert slow[3] >= OPTIONS.production.probe_floor / 3 - 1e-9, "it is still measured"
    back = pool.intervals(100, {1: 1, 2: 1, 3: 0})
    assert abs(back[3] - 1 / 3) < 0.01


def test_without_counts_of_open_connections_nobody_is_slow() -> None:
    assert abs(Answering().intervals(20, None)[3] - 1 / 3) < 1e-9


def test_what_was_seen_before_the_counts_went_away_is_forgotten() -> None:
    pool = Answering()
    pool.intervals(5, {1: 1, 2: 1, 3: 30})
    assert abs(pool.intervals(200, None)[3] - 1 / 3) < 0.01


def test_it_can_be_left_out_and_paper_mode_knows_nothing_of_it() -> None:
    for options in (replace(OPTIONS, production=ProductionOptions(slow_factor=0)), replace(OPTIONS, mode=Mode.PAPER)):
        assert abs(Answering(options).intervals(20, {1: 1, 2: 1, 3: 30})[3] - 1 / 3) < 1e-9


def test_all_slow_servers_give_in_the_same_period() -> None:
    balancer = Balancer([Member(i, 1.0) for i in range(1, 11)], OPTIONS)
    counts = {i: Counts() for i in balancer.members}
    balancer.observe(0.0, counts)
    counts = {i: Counts(100, 100, 0, 100) for i in balancer.members}
    decision = balancer.observe(1.0, counts, open_now={i: 60 if i <= 2 else 1 for i in balancer.members})
    assert decision is not None
    assert decision.ratios[1] == decision.ratios[2] and abs(decision.ratios[1] - 0.09) < 1e-9
    assert decision.reason == "step: 0.100 of 1 (takes long), 0.100 of 2 (takes long)"


def test_who_takes_little_more_than_the_factor_gives_little() -> None:
    balancer = Balancer([Member(i, 1.0) for i in (1, 2, 3)], OPTIONS)
    balancer.observe(0.0, {i: Counts() for i in (1, 2, 3)})
    counts = {i: Counts(100, 100, 0, 100) for i in (1, 2, 3)}
    decision = balancer.observe(1.0, counts, open_now={1: 24, 2: 25, 3: 62})
    assert decision is not None
    assert decision.reason == "step: 0.024 of 3 (takes long)", "2.48 times as long as 50 over 200, with a factor of 2"
