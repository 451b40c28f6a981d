"""Tests of slowness: in production mode a slow server loses weight although it answers every SYN."""

from dataclasses import replace
from itertools import pairwise

import pytest
from sluice.balance import BalanceOptions, Balancer, Member, Mode, ProductionOptions
from sluice.balance.counts import Counts
from sluice.balance.slowness import READINGS, SAMPLE_TIMES, OpenSamples, Work, deviations, slow

OPTIONS = BalanceOptions(period_s=1.0, window_s=10.0)


def distinct(open_sum: int, begun: int) -> Work:
    """Return the work of a server none of whose connections was open in two samples."""
    return Work(open_sum, open_sum, begun)


def test_open_connections_over_new_ones_are_the_time_that_one_takes() -> None:
    assert Work(open_sum=20, anew=3, begun=40).time() == 0.5
    assert Work(open_sum=3, anew=3, begun=0).time() == 3


def test_a_slow_server_takes_several_times_as_long_as_the_others_together() -> None:
    work = {1: distinct(20, 400), 2: distinct(24, 400), 3: distinct(20, 20)}
    assert slow(work, factor=3.0, least_z=3.0) == {3: pytest.approx(1 / (45 / 800))}, "the others with one more"
    assert slow({**work, 3: distinct(20, 400)}, 3.0, 3.0) == {}
    assert slow({**work, 3: distinct(20, 150)}, 3.0, 3.0) == {}, "below the factor"
    assert slow({3: distinct(20, 20)}, 3.0, 3.0) == {}, "no other server to compare with"
    assert slow({1: distinct(0, 0), 3: distinct(20, 20)}, 3.0, 3.0) == {}, "the other one is idle"


def test_a_connection_in_several_samples_counts_once() -> None:
    work = {1: distinct(20, 400), 2: distinct(24, 400)}
    assert list(slow({**work, 3: Work(open_sum=6, anew=6, begun=20)}, 3.0, 3.0)) == [3]
    assert slow({**work, 3: Work(open_sum=6, anew=1, begun=20)}, 3.0, 3.0) == {}
    assert list(slow({**work, 3: Work(open_sum=600, anew=1, begun=20)}, 3.0, 3.0)) == [3], "one connection, but so long"
    assert list(slow({**work, 3: Work(90, 1, 20), 4: distinct(80, 20)}, 3.0, 3.0)) == [4], (
        "weak evidence hides no other"
    )


@pytest.mark.parametrize(("times", "enough"), [(2.0, 24), (4.0, 8), (20.0, 3), (1000.0, 1)])
def test_the_longer_connections_take_the_fewer_are_enough(times: float, enough: int) -> None:
    assert deviations(enough, times) >= 3.0 > deviations(enough - 1, times)
    assert deviations(enough, 1.0) == 0.0


def test_several_are_slow_at_once_and_none_hides_behind_another() -> None:
    work = {1: distinct(20, 400), 2: distinct(24, 400), 3: distinct(200, 200), 4: distinct(90, 20)}
    slow_servers = slow(work, 3.0, 3.0)
    assert list(slow_servers) == [4, 3]
    assert slow_servers[3] == slow({i: work[i] for i in (1, 2, 3)}, 3.0, 3.0)[3]
    assert list(slow({**work, 3: distinct(200, 2000)}, 3.0, 3.0)) == [4]


def test_where_hardly_a_connection_is_open_no_server_is_slow() -> None:
    assert slow({1: distinct(0, 9), 2: distinct(10, 1)}, 3.0, 3.0) == {2: 90.0}
    assert slow({1: distinct(0, 1), 2: distinct(5, 2)}, 3.0, 3.0) == {}


def test_rises_and_sums_are_of_the_readings_since_they_were_taken() -> None:
    samples = OpenSamples()
    for first, second in ((2, 0), (3, 1), (1, 0), (4, 0)):
        samples.add({1: first, 2: second})
    assert samples.take() == {1: (10, 2 + 1 + 3), 2: (1, 1)}
    samples.add({1: 5, 2: 0})
    assert samples.take() == {1: (5, 1), 2: (0, 0)}, "four of the five were open in the sample before"
    assert samples.take() == {}
    samples.add({1: 5})
    assert samples.take() == {1: (5, 5)}, "after a period without samples all count as different"


def test_samples_alias_with_no_whole_number_of_cycles_a_period() -> None:
    assert len(SAMPLE_TIMES) == READINGS - 1 and all(0 < fraction < 1 for fraction in SAMPLE_TIMES)
    assert list(SAMPLE_TIMES) == sorted(SAMPLE_TIMES)
    for times in range(1, 101):
        phases = sorted(fraction * times % 1 for fraction in (*SAMPLE_TIMES, 1.0))
        assert max(later - earlier for earlier, later in pairwise((*phases, phases[0] + 1))) < 0.55, times


class Answering:
    """Three simulated servers that answer every SYN, except the server `dead` of `alike`. Tests state the numbers of
    open connections; with `None`, none are sampled."""

    def __init__(self, options: BalanceOptions = OPTIONS) -> None:
        self.balancer = Balancer([Member(i, 1.0) for i in (1, 2, 3)], options)
        self.counts: dict[int, Counts] = {i: Counts() for i in (1, 2, 3, 4)}
        self.reasons: list[str] = []
        self.now = 0.0
        self.balancer.observe(0.0, self.counts)

    def intervals(self, number: int, open_now: dict[int, int] | None) -> dict[int, float]:
        for _ in range(number):
            self.now += 1.0
            more = {i: round(100 * ratio) for i, ratio in self.balancer.ratios.items()}
            if open_now is not None:
                self.balancer.sample_open(open_now)
                self.balancer.sample_open(dict.fromkeys(open_now, 0))
            self.count(more)
        return self.balancer.ratios

    def alike(self, number: int, *, dead: int | None = None) -> None:
        """Simulate `number` periods in which connections last 1/40 of a period.

        The server `dead` answers no SYN, and its 300 open connections never end.
        """
        for _ in range(number):
            self.now += 1.0
            more = {i: round(10_000 * ratio) for i, ratio in self.balancer.ratios.items()}
            for rising in (True, False):
                self.balancer.sample_open(
                    {i: 300 if i == dead else rising * round(syn / 20) for i, syn in more.items()}
                )
            self.count(more, dead)

    def count(self, more: dict[int, int], dead: int | None = None) -> None:
        for i, syn in more.items():
            self.counts[i] += Counts(syn, 0, 0, 0) if i == dead else Counts(syn, syn, 0, syn)
        decision = self.balancer.observe(self.now, self.counts)
        self.reasons += [decision.reason] if decision else []


def test_the_slow_server_loses_weight_and_gets_it_back() -> None:
    pool = Answering()
    slow = pool.intervals(20, {1: 1, 2: 1, 3: 30})
    assert slow[3] < 0.1 and abs(slow[1] - slow[2]) < 1e-9
    assert slow[3] >= OPTIONS.production.probe_floor / 3 - 1e-9, "it is still measured"
    back = pool.intervals(100, {1: 1, 2: 1, 3: 0})
    assert abs(back[3] - 1 / 3) < 0.01


def test_without_counts_of_open_connections_no_server_is_slow() -> None:
    assert abs(Answering().intervals(20, None)[3] - 1 / 3) < 1e-9


def test_samples_from_before_the_counts_ended_are_dropped() -> None:
    pool = Answering()
    pool.intervals(5, {1: 1, 2: 1, 3: 30})
    assert abs(pool.intervals(200, None)[3] - 1 / 3) < 0.01


def test_a_new_server_is_judged_by_its_own_time_in_the_pool() -> None:
    pool = Answering()
    pool.alike(15)
    pool.balancer.configure([Member(i) for i in (1, 2, 3, 4)], OPTIONS, pool.now)
    pool.alike(15)
    assert not any("takes long" in reason for reason in pool.reasons)


def test_a_server_that_answers_again_is_not_taken_for_slow() -> None:
    pool = Answering()
    pool.alike(15)
    pool.alike(4, dead=3)
    assert pool.balancer.ejected == {3}
    pool.alike(15)
    assert not any("takes long" in reason for reason in pool.reasons)


def test_a_server_that_is_drained_no_longer_is_not_taken_for_slow() -> None:
    pool = Answering()
    pool.alike(15)
    for draining in (True, False):
        pool.balancer.configure([Member(1), Member(2), Member(3, draining=draining)], OPTIONS, pool.now)
        for _ in range(5):
            pool.now += 1.0
            more = {i: round(10_000 * ratio) for i, ratio in pool.balancer.ratios.items()}
            pool.balancer.sample_open({i: round(syn / 20) + 200 * (i == 3) * draining for i, syn in more.items()})
            pool.count(more)
    assert not any("takes long" in reason for reason in pool.reasons)


def test_a_reload_keeps_the_samples_of_servers_that_stay() -> None:
    pool = Answering()
    pool.intervals(5, {1: 1, 2: 1, 3: 30})
    pool.balancer.configure([Member(i) for i in (1, 2, 3)], OPTIONS, pool.now)
    pool.intervals(1, {1: 1, 2: 1, 3: 0})
    assert "takes long" in pool.reasons[-1]


def test_it_can_be_disabled_and_paper_mode_has_none() -> None:
    for options in (replace(OPTIONS, production=ProductionOptions(slow_factor=0)), replace(OPTIONS, mode=Mode.PAPER)):
        assert abs(Answering(options).intervals(20, {1: 1, 2: 1, 3: 30})[3] - 1 / 3) < 1e-9


def test_all_slow_servers_give_in_the_same_period() -> None:
    balancer = Balancer([Member(i, 1.0) for i in range(1, 11)], OPTIONS)
    counts = {i: Counts() for i in balancer.members}
    balancer.observe(0.0, counts)
    counts = {i: Counts(100, 100, 0, 100) for i in balancer.members}
    balancer.sample_open({i: 60 if i <= 2 else 1 for i in balancer.members})
    decision = balancer.observe(1.0, counts)
    assert decision is not None
    assert decision.ratios[1] == decision.ratios[2] and abs(decision.ratios[1] - 0.09) < 1e-9
    assert decision.reason == "step: 0.100 of 1 (takes long), 0.100 of 2 (takes long)"


def test_a_slow_server_gives_delta_however_little_its_time_exceeds_the_factor() -> None:
    balancer = Balancer([Member(i, 1.0) for i in (1, 2, 3)], OPTIONS)
    balancer.observe(0.0, {i: Counts() for i in (1, 2, 3)})
    counts = {i: Counts(100, 100, 0, 100) for i in (1, 2, 3)}
    balancer.sample_open({1: 24, 2: 25, 3: 62})
    decision = balancer.observe(1.0, counts)
    assert decision is not None
    assert decision.work == {1: distinct(24, 100), 2: distinct(25, 100), 3: distinct(62, 100)}
    assert decision.reason == "step: 0.100 of 3 (takes long)", "2.48 times as long as 50 over 200, with a factor of 2"
