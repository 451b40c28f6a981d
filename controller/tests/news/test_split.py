"""Tests of retry-aware admission: the split of a limit, alone and in a closed loop with meters and known clients."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx
from sluice.news import Limit, NewsMode, NewsOptions, Requests, Split, Splitter, whole
from sluice.news.limit import bucket
from sluice.news.split import rates, widest

OPTIONS = NewsOptions(mode=NewsMode.PRODUCTION)
PAPER = NewsOptions(mode=NewsMode.PAPER)


def test_without_a_memory_there_is_one_bucket() -> None:
    assert Splitter().split(Limit(40, 10), PAPER) == whole(Limit(40, 10)) == Split(40, 40, 10)


@pytest.mark.parametrize(
    ("returning", "anybody", "second"),
    [(0, 100, 5), (20, 80, 30), (40, 60, 50), (500, 50, 50)],
)
def test_strangers_get_what_returning_clients_leave(returning: float, anybody: float, second: float) -> None:
    assert rates(100, returning, 0.5) == (approx(anybody), approx(second))


@given(limit=st.floats(1, 1e5), returning=st.floats(0, 1e7), share=st.floats(0.01, 0.99))
def test_sum_is_near_the_limit_and_neither_is_shut_out(limit: float, returning: float, share: float) -> None:
    """The two buckets' rates add up to at most `widest(share)` times the limit, and neither rate is 0.

    The bucket for all clients keeps at least the part 1 - `share` of the limit; the second has at most `share` of it.
    """
    anybody, second = rates(limit, returning, share)
    assert limit * (1 - share) <= anybody * (1 + 1e-9)
    assert 0 < second <= limit * share * (1 + 1e-9)
    assert anybody + second <= limit * widest(share) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("share", "returning", "most"), [(0.5, 36, 1.14), (0.9, 68, 1.22), (0.05, 0, 1.05), (0.02, 0, 1.02)]
)
def test_the_bound_of_the_sum_is_reached(share: float, returning: float, most: float) -> None:
    assert widest(share) == approx(most)
    assert sum(rates(100, returning, share)) == approx(100 * most)


@given(st.lists(st.tuples(st.floats(0.1, 1e6), st.integers(0, 5000), st.integers(0, 5000)), max_size=30))
def test_whatever_comes_both_buckets_stay_below_the_bound_of_limit_max(steps: list[tuple[float, int, int]]) -> None:
    options = NewsOptions(mode=NewsMode.PRODUCTION, limit_max=1000)
    splitter = Splitter()
    for rate, admitted, returning in steps:
        splitter.count(Requests(admitted, admitted, 0, returning), 1.0)
        at = splitter.split(bucket(rate, options), options)
        assert at.returning_rate is not None
        assert at.rate + at.returning_rate <= at.limit * widest(0.5) * (1 + 1e-9)
        assert at.rate + at.returning_rate <= 1140 * (1 + 1e-9)


def test_near_enough_is_not_rewritten() -> None:
    splitter = Splitter()
    first = splitter.split(bucket(100, OPTIONS), OPTIONS)
    splitter.count(Requests(400, 103, 297, 3), 1.0)
    assert splitter.split(bucket(100, OPTIONS), OPTIONS) is first
    assert splitter.split(bucket(101, OPTIONS), OPTIONS) is not first


@dataclass
class Bucket:
    """A token bucket in virtual time, as in a meter of the switch."""

    tokens: float = 0.0

    def take(self, rate: float, burst: float, seconds: float) -> bool:
        self.tokens = min(self.tokens + rate * seconds, burst)
        passed = self.tokens >= 1
        self.tokens -= passed
        return passed


@dataclass
class Site:
    """A crowd whose SYNs pass the switch's two token buckets.

    Each visitor needs several connections, and repeats a refused SYN once a second.
    """

    arrivals: float
    connections: int
    split: Split
    patience: int = 6
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))
    waiting: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    """Waiting visitors: number of the visitor, connections that are still needed, attempts that are left."""
    known: dict[int, float] = field(default_factory=dict[int, float])
    """Time in seconds at which the switch last remembered each known visitor, who may use the second bucket."""
    visitors: int = 0
    complete: int = 0
    anybody: Bucket = field(default_factory=Bucket)
    second: Bucket = field(default_factory=Bucket)
    now: float = 0.0
    second_at: float = 0.0

    def tick(self) -> Requests:
        """Simulate one second; return the requests of that second."""
        fresh = int(self.random.poisson(self.arrivals))
        self.waiting += [(self.visitors + i, self.connections, self.patience) for i in range(fresh)]
        self.visitors += fresh
        counts, after = Requests(), list[tuple[int, int, int]]()
        for index in self.random.permutation(len(self.waiting)):
            who, wanted, attempts = self.waiting[index]
            passed, returning = self._meter(who, 1.0 / len(self.waiting))
            counts += Requests(1, int(passed), int(not passed), int(returning))
            if passed and wanted == 1:
                self.complete += 1
            elif passed:
                after.append((who, wanted - 1, self.patience))
            elif attempts > 1:
                after.append((who, wanted, attempts - 1))
        self.waiting = after
        return counts

    def _meter(self, who: int, seconds: float) -> tuple[bool, bool]:
        at, self.now = self.split, self.now + seconds
        if self.anybody.take(at.rate, at.burst, seconds):
            self.known[who] = self.now
            return True, False
        if who not in self.known or at.returning_rate is None or at.returning_burst is None:
            return False, False
        since, self.second_at = self.now - self.second_at, self.now
        passed = self.second.take(at.returning_rate, at.returning_burst, since)
        return passed, passed


def crowd(connections: int, options: NewsOptions, seconds: int = 120) -> tuple[Site, float, int]:
    """Run a crowd under a limit of 100 connections/s.

    Return the site, the connections admitted per second in the second half, and the number of writes of the buckets.
    """
    limit = bucket(100, options)
    splitter, written, admitted = Splitter(), 0, 0
    site = Site(100.0, connections, splitter.split(limit, options))
    for second in range(seconds):
        counts = site.tick()
        admitted += counts.admitted if second >= seconds // 2 else 0
        splitter.count(counts, 1.0)
        fresh = splitter.split(limit, options)
        written += fresh != site.split
        site.split = fresh
    return site, admitted / (seconds - seconds // 2), written


@pytest.mark.parametrize("connections", [2, 5, 20])
def test_limit_holds_and_more_visits_become_whole(connections: int) -> None:
    lottery, by_chance, _ = crowd(connections, PAPER)
    site, rate, written = crowd(connections, OPTIONS)
    assert by_chance == approx(100, rel=0.1)
    assert rate == approx(100, rel=0.15)
    assert site.complete >= lottery.complete
    assert written < 60
