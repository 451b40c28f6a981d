"""Tests of recovery, which raises a server's ratio slowly, up to the share at which the server last lost SYNs.

A server whose ratio exceeds that share returns to it at once.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from model import Pool
from pytest import approx
from sluice.balance import BalanceOptions
from sluice.balance.recovery import MEMORY, Ceilings

OPTIONS = BalanceOptions(period_s=1.0, window_s=10.0)
FAIR = {1: 0.5, 2: 0.25, 3: 0.25}


def test_recovery_stays_below_a_share_that_cost_losses_for_twice_as_long_each_time() -> None:
    ceilings = Ceilings()
    for length in (MEMORY * 10, 2 * MEMORY * 10):
        ceilings.lost(3, 0.1, 10)
        for _ in range(length):
            assert ceilings.below(FAIR) == {1: approx(0.6), 2: approx(0.3), 3: approx(0.1)}
            assert ceilings.carried == {}
            ceilings.pass_period()
        assert ceilings.below(FAIR) == FAIR and ceilings.carried == {3: 0.1}
    ceilings.forget([3])
    assert ceilings.carried == {}


def test_a_server_that_carries_its_share_for_as_long_as_it_did_not_is_trusted_again() -> None:
    ceilings = Ceilings()
    ceilings.lost(3, 0.1, 10)
    for _ in range(2 * MEMORY * 10):
        ceilings.pass_period()
    assert ceilings.carried == {}


@given(st.dictionaries(st.sampled_from([1, 2, 3]), st.floats(0.01, 1)))
def test_what_recovery_leads_to_sums_to_one(shares: dict[int, float]) -> None:
    ceilings = Ceilings()
    for server, share in shares.items():
        ceilings.lost(server, share, 10)
    assert sum(ceilings.below(FAIR).values()) == approx(1.0)


@settings(max_examples=6, deadline=None)
@given(st.integers(20, 80), st.integers(3, 6))
def test_a_weak_server_loses_ever_less_often(able: int, servers: int) -> None:
    """The intervals between steps that take weight from the weak server never become shorter.

    The first steps, during which the server's ratio falls, are excepted.
    """
    pool = Pool(dict.fromkeys(range(1, servers), 1000) | {servers: able}, offered=100 * servers, options=OPTIONS)
    gave: list[int] = []
    for period in range(1200):
        if pool.interval().reason.startswith("step"):
            gave.append(period)
    pauses = [later - earlier for earlier, later in pairwise(gave) if later - earlier > MEMORY * 10]
    assert pauses == sorted(pauses) and len(pauses) <= 4
    assert pool.balancer.ratios[servers] < 1 / servers
