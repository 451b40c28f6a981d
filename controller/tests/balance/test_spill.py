"""Tests of full servers: their new connections go to other servers, and are refused when all servers are full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.balance import (
    BalanceOptions,
    Balancer,
    Counts,
    Member,
    Mode,
    ProductionOptions,
    full_servers,
    refuses,
    weight_sum,
)
from sluice.balance.spill import released

CAPS = {1: 16, 2: 16}
OPEN = st.integers(0, 40)


@pytest.mark.parametrize(("cap", "at"), [(1, 0), (2, 1), (7, 6), (8, 7), (16, 14), (1000, 875)])
def test_an_eighth_of_the_cap_is_to_be_free_again_and_one_connection_at_least(cap: int, at: int) -> None:
    assert released(cap) == at


def test_a_server_is_full_at_its_cap_until_an_eighth_is_free() -> None:
    full = frozenset[int]()
    seen: list[bool] = []
    for number in (15, 16, 15, 14, 15, 17):
        full = full_servers(CAPS, {1: number, 2: 0}, full, {1, 2})
        seen.append(1 in full)
    assert seen == [False, True, True, False, False, True]


def test_where_no_other_has_room_a_server_below_its_cap_takes_connections() -> None:
    full = full_servers(CAPS, {1: 16, 2: 16}, (), {1, 2})
    assert full == {1, 2} and refuses(full, {1, 2})
    full = full_servers(CAPS, {1: 15, 2: 16}, full, {1, 2})
    assert full == {2} and not refuses(full, {1, 2})


def test_a_server_without_a_cap_is_never_full_and_nothing_is_refused() -> None:
    full = full_servers({1: 1}, {1: 9}, (), {1, 2})
    assert full == {1} and not refuses(full, {1, 2})


def test_a_server_that_takes_nothing_is_no_room() -> None:
    """Server 2 is below its cap, but drains or does not answer, so its free capacity does not count."""
    full = full_servers(CAPS, {1: 16, 2: 0}, (), {1})
    assert refuses(full, {1})
    assert not refuses(full, ()), "no server takes connections, which is not for their caps"


@given(
    st.dictionaries(st.integers(1, 6), st.integers(1, 32), min_size=1),
    st.lists(
        st.tuples(st.fixed_dictionaries(dict.fromkeys(range(1, 7), OPEN)), st.sets(st.integers(1, 6))), min_size=1
    ),
)
def test_full_servers_at_every_poll(caps: dict[int, int], looks: list[tuple[dict[int, int], set[int]]]) -> None:
    full = frozenset[int]()
    for open_now, taking in looks:
        before, full = full, full_servers(caps, open_now, full, taking)
        at_cap = {server for server, cap in caps.items() if open_now[server] >= cap}
        assert at_cap <= full <= caps.keys(), "a server at its cap is full"
        assert all(open_now[i] > released(caps[i]) for i in full), "no server starves"
        assert full - at_cap <= before, "no server becomes full below its cap"
        assert refuses(full, taking) == (bool(taking) and taking <= at_cap), "refused only when all are at their cap"


@given(
    st.dictionaries(st.integers(1, 20), st.floats(0.0, 1.0), min_size=2).filter(
        lambda ratios: sum(ratios.values()) > 0
    ),
    st.sets(st.integers(1, 20)),
    st.sampled_from(Mode),
)
def test_weights_leave_the_full_out_and_keep_their_sum(ratios: dict[int, float], full: set[int], mode: Mode) -> None:
    balancer = Balancer([Member(i) for i in ratios], BalanceOptions(mode=mode), ratios)
    weights = balancer.weights(full)
    assert sum(weights.values()) == weight_sum(len(ratios)), "even draws count places in the whole pool's sum"
    if ratios.keys() - full:
        assert not full & weights.keys(), "though no other server may have a ratio"
        assert mode is not Mode.PRODUCTION or weights.keys() == ratios.keys() - full
    else:
        assert weights == balancer.weights()
    assert balancer.ratios == Balancer([Member(i) for i in ratios], BalanceOptions(mode=mode), ratios).ratios


@pytest.mark.parametrize("full", [(), (1,)])
def test_a_server_is_not_slow_for_being_full(full: tuple[int, ...]) -> None:
    """Server 1 has many open connections and few new ones, so by Little's law its connections last long.

    Server 1 loses weight because it is slow, but not if its cap is the cause (`full`).
    """
    options = BalanceOptions(Mode.PRODUCTION, 1.0, 4.0, production=ProductionOptions(slow_start_s=0))
    balancer = Balancer([Member(1), Member(2)], options)
    counts = {1: Counts(), 2: Counts()}
    for second in range(10):
        for reading in range(8):
            balancer.sample_open({1: 60 + reading % 4, 2: 5 + reading % 4})
        balancer.observe(float(second), counts, full=full)
        more = {1: Counts(syn=2, synack=2, completed=2), 2: Counts(syn=100, synack=100, completed=100)}
        counts = {i: counts[i] + more[i] for i in counts}
    assert (balancer.ratios[1] < 0.45) is (not full)
