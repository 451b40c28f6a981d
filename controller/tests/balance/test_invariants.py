"""Invariants of the balancer in production mode, checked on random histories of counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from sluice.balance import BalanceOptions, Balancer, Counts, Decision, Member
from sluice.balance.confidence import standing_out, unanswered
from sluice.balance.silence import SYNS_A_CONNECTION
from sluice.balance.slowness import Work, slow

OPTIONS = BalanceOptions(window_s=40)
FLOOR, ENOUGH = OPTIONS.production.probe_floor, OPTIONS.production.silent_connections


@st.composite
def answered(draw: st.DrawFn, most: int = 1000) -> Counts:
    """Draw a server's counts in an interval in which some SYNs are answered and some handshakes are completed."""
    syn = draw(st.integers(0, most))
    synack = draw(st.integers(0, syn))
    return Counts(syn, synack, 0, draw(st.integers(0, synack)), draw(st.integers(0, syn)))


@st.composite
def dead(draw: st.DrawFn) -> Counts:
    """Draw the counts of a dead server in an interval: no SYN is answered, but the host may reset connections."""
    syn = draw(st.integers(0, 300))
    return Counts(syn, reset=draw(st.integers(0, syn)))


HISTORIES = st.integers(2, 5).flatmap(
    lambda servers: st.lists(
        st.tuples(st.lists(answered() | dead(), min_size=servers, max_size=servers), st.booleans()), max_size=12
    )
)
"""Random histories; an interval contains each server's counts, and whether flash-crowd control freezes the ratios."""


def decisions(history: Sequence[tuple[Sequence[Counts], bool]], options: BalanceOptions = OPTIONS) -> list[Decision]:
    """Return the balancer's decisions on a history; a server's configured capacity equals its number."""
    servers = range(1, len(history[0][0]) + 1) if history else range(1, 3)
    balancer = Balancer([Member(server, server) for server in servers], options)
    counts = dict.fromkeys(servers, Counts())
    balancer.observe(0.0, counts)
    made: list[Decision] = []
    for number, (interval, hold) in enumerate(history, 1):
        counts = {server: counts[server] + more for server, more in zip(servers, interval, strict=True)}
        decision = balancer.observe(number * options.period_s, counts, hold=hold)
        assert decision is not None
        made.append(decision)
    return made


@settings(max_examples=300, deadline=None)
@given(HISTORIES)
def test_a_silent_server_has_its_probe_floor_under_every_verdict(history: list[tuple[list[Counts], bool]]) -> None:
    since: dict[int, list[Counts]] = {}
    for (interval, _), decision in zip(history, decisions(history), strict=True):
        for server, counts in enumerate(interval, 1):
            since[server] = [] if counts.synack else [*since.get(server, []), counts]
        for server, intervals in since.items():
            whole = sum(intervals, Counts())
            refused = min(whole.reset, whole.syn)
            if refused + (whole.syn - refused) / SYNS_A_CONNECTION < ENOUGH:
                continue
            fair = server / sum(range(1, len(since) + 1))
            assert server in decision.ejected
            if len(decision.ejected) == len(since):
                assert decision.ratios[server] == approx(fair), "with every server silent, capacities split the pool"
            else:
                assert decision.ratios[server] <= FLOOR * fair + 1e-9


def test_a_server_that_dies_in_an_answered_flood_or_while_weights_are_held_gets_its_floor() -> None:
    flood, dead = Counts(1000, 1000, 0, 200), Counts(1000)
    for healthy, hold in ((flood, False), (flood, True), (Counts(1000, 1000, 0, 1000), True)):
        last = decisions([([healthy, healthy, healthy], hold), ([healthy, healthy, dead], hold)])[-1]
        assert last.ratios[3] == approx(FLOOR / 2) and last.ejected == {3}
        assert last.ratios[2] == approx(2 * last.ratios[1]), "the others keep their proportions"


def test_beside_servers_that_all_start_slowly_a_silent_one_has_no_more_than_its_floor() -> None:
    healthy, dead = Counts(300, 300, 0, 300), Counts(300)
    one_after_another = [[dead if server == turn else healthy for server in range(3)] for turn in range(3)]
    last = decisions([(interval, False) for interval in one_after_another])[-1]
    assert last.ejected == {3} and last.ratios[3] == approx(FLOOR / 2)
    assert last.ratios[1] > last.ratios[2] / 2, "it returned earlier"


@settings(max_examples=200, deadline=None)
@given(HISTORIES, st.integers(1, 4))
def test_clients_round_trips_decide_nothing(history: list[tuple[list[Counts], bool]], copies: int) -> None:
    """A distant client sends copies of each SYN, and each copy is answered: the decisions stay the same.

    Such a client's round trip exceeds its retransmission timer.
    """
    far = [
        ([c + Counts(syn=copies * c.synack, synack_again=copies * c.synack) for c in interval], hold)
        for interval, hold in history
    ]
    for near, other in zip(decisions(history), decisions(far), strict=True):
        assert (near.ratios, near.ejected, near.diagnosis) == (other.ratios, other.ejected, other.diagnosis)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.integers(1, 9), answered(), min_size=2, max_size=6), answered())
def test_a_server_hides_none_that_does_as_badly_or_less_so(windows: dict[int, Counts], more: Counts) -> None:
    def standing(ledger: dict[int, Counts]) -> dict[int, float]:
        return standing_out(ledger, least_z=3.0, min_syn=10)

    before, after = standing(windows), standing({**windows, 99: more})
    for server, counts in windows.items():
        if unanswered(counts) <= unanswered(more):
            assert before.get(server) == after.get(server)


def test_an_uncertain_small_server_hides_no_certain_one() -> None:
    windows = {1: Counts(10, 7), 2: Counts(1000, 850), 3: Counts(1000, 1000)}
    assert 2 in standing_out(windows, least_z=3.0, min_syn=10)


def test_a_few_connections_that_stay_open_hide_no_slow_server() -> None:
    fast, slow_one = Work(10, 10, 400), Work(400, 400, 400)
    assert list(slow({1: fast, 2: fast, 3: slow_one}, 2.0, 3.0)) == [3]
    assert list(slow({1: fast, 2: fast, 3: slow_one, 4: Work(80_000, 0, 20)}, 2.0, 3.0)) == [3]


CLIENT = st.lists(st.integers(1, SYNS_A_CONNECTION), max_size=ENOUGH - 1)
"""A client: the number of SYNs of each of its connections. It has fewer connections than ENOUGH."""


@given(CLIENT, st.lists(st.integers(0, ENOUGH * SYNS_A_CONNECTION), min_size=1, max_size=6))
def test_fewer_connections_than_the_threshold_eject_no_server(syns: list[int], cuts: list[int]) -> None:
    """No server is ejected if fewer connections than ENOUGH send SYNs, all of them to server 3, which answers none.

    The SYNs and their retransmissions are spread over arbitrary intervals.
    """
    bounds = sorted({0, *(min(cut, sum(syns)) for cut in cuts), sum(syns)})
    parts = [later - earlier for earlier, later in pairwise(bounds)]
    for decision in decisions([([Counts(), Counts(), Counts(syn)], False) for syn in parts]):
        assert decision.ejected == frozenset()


@given(st.integers(ENOUGH, 100))
def test_as_many_connections_as_the_threshold_eject_it_however_they_fail(number: int) -> None:
    for failed in (Counts(syn=number, reset=number), Counts(syn=number * SYNS_A_CONNECTION)):
        assert decisions([([Counts(), Counts(), failed], False)])[-1].ejected == {3}


def test_ejections_read_back_stay_until_the_servers_answer() -> None:
    balancer = Balancer([Member(1), Member(2), Member(3)], OPTIONS)
    balancer.eject([3, 7])
    balancer.observe(0.0, dict.fromkeys((1, 2, 3), Counts()))
    assert balancer.ejected == {3}
    idle = balancer.observe(10.0, dict.fromkeys((1, 2, 3), Counts()))
    assert idle is not None and idle.ejected == {3} and idle.ratios[3] == approx(FLOOR / 3)
    answers = balancer.observe(20.0, {1: Counts(), 2: Counts(), 3: Counts(1, 1, 0, 1)})
    assert answers is not None and answers.ejected == frozenset()
    assert answers.ratios[3] < 0.1, "it starts slowly"
