"""Tests of the verdicts crowd, flood, sick server and normal, and of their effect on the weights by R."""

from collections.abc import Mapping

from sluice.balance import BalanceOptions, Counts
from sluice.news import Cause, Verdict
from sluice.news.evidence import examine
from sluice.news.verdict import judge

FINE = Counts(syn=100, synack=100, completed=99)
LOSSY = Counts(syn=100, synack=60, completed=59)
DROWNED = Counts(syn=300, synack=60, completed=58)
SECONDS = 4.0
SPOOFED = Counts(syn=500, synack=490, completed=100)


def verdict(
    ledger: dict[int, Counts],
    *,
    crowd: bool = False,
    slower: bool = False,
    busier: bool = False,
    usual: float | None = None,
    ejected: frozenset[int] = frozenset(),
    ratios: Mapping[int, float] | None = None,
) -> Verdict:
    """Return the verdict on a window of SECONDS with these counts by server.

    `crowd`, `slower` and `busier`: an alarm is set or a limit binds, responses are degraded, requests are above usual.
    `usual` is in completed handshakes/s; `ratios` are the servers' ratios in each of the window's four intervals.
    """
    options = BalanceOptions()
    evidence = examine(ledger, options, usual, SECONDS, ejected=ejected, ratios=[ratios or {}] * 4)
    return judge(ledger, options, evidence, crowd=crowd, slower=slower, busier=busier)


def test_normal() -> None:
    assert verdict({1: FINE, 2: FINE}) == Verdict(Cause.NORMAL)
    assert verdict({}) == Verdict(Cause.NORMAL)


def test_a_network_limited_crowd_freezes_the_weights() -> None:
    assert verdict({1: FINE, 2: FINE}, crowd=True, slower=True) == Verdict(Cause.CROWD, freeze=True)


def test_a_crowd_that_drowns_every_server_alike_freezes_the_weights() -> None:
    assert verdict({1: DROWNED, 2: DROWNED}, crowd=True, slower=True) == Verdict(Cause.CROWD, freeze=True)


def test_a_crowd_over_a_pool_with_a_weak_server_leaves_r_free() -> None:
    assert verdict({1: FINE, 2: FINE, 3: LOSSY}, crowd=True, slower=True) == Verdict(Cause.CROWD, (3,), freeze=False)


def test_a_sick_server_without_a_crowd_is_rs_business() -> None:
    assert verdict({1: FINE, 2: FINE, 3: LOSSY}) == Verdict(Cause.SICK, (3,), freeze=False)


def test_while_more_is_asked_for_only_a_far_worse_server_is_relieved() -> None:
    weak = Counts(syn=300, synack=45, completed=43)
    assert verdict({1: DROWNED, 2: DROWNED, 3: weak}) == Verdict(Cause.FLOOD, freeze=True)
    fewer, more = Counts(syn=100, synack=80, completed=79), Counts(syn=100, synack=60, completed=59)
    assert verdict({1: fewer, 2: more}) == Verdict(Cause.SICK, (2,))
    assert verdict({1: fewer, 2: more}, busier=True) == Verdict(Cause.SICK, (2,), freeze=True)
    assert verdict({1: FINE, 2: more}, busier=True) == Verdict(Cause.SICK, (2,))


def test_a_stray_loss_is_no_sickness() -> None:
    assert verdict({1: FINE, 2: Counts(syn=40, synack=38, completed=38)}).cause is Cause.NORMAL


def test_an_answered_flood_is_known_by_its_missing_acks_whatever_else_is_seen() -> None:
    for crowd in (False, True):
        assert verdict({1: SPOOFED, 2: SPOOFED}, crowd=crowd) == Verdict(Cause.FLOOD, freeze=True)


def test_unanswered_everywhere_is_a_flood_when_responses_are_as_fast_as_ever() -> None:
    assert verdict({1: DROWNED, 2: DROWNED}) == Verdict(Cause.FLOOD, freeze=True)
    slow = verdict({1: DROWNED, 2: DROWNED}, slower=True)
    assert slow == Verdict(Cause.SICK, (1, 2), freeze=True)


def test_drowned_unevenly_in_a_crowd_is_chance_and_a_dead_server_is_not() -> None:
    fuller = Counts(syn=300, synack=40, completed=38)
    assert verdict({1: DROWNED, 2: fuller}) == Verdict(Cause.FLOOD, freeze=True)
    assert verdict({1: DROWNED, 2: fuller}, crowd=True, slower=True) == Verdict(Cause.CROWD, freeze=True)
    dead = Counts(syn=300)
    assert verdict({1: DROWNED, 2: dead}, crowd=True, slower=True) == Verdict(Cause.CROWD, (2,), freeze=False)


def test_a_queue_that_is_full_before_the_others_is_no_weak_server() -> None:
    """A server whose queue is full is weak only if, in proportion to its ratio, it answers at most 0.8 times as
    many SYNs as the other server."""
    full, idle = Counts(syn=300, synack=60, completed=58), Counts(syn=62, synack=62, completed=60)
    frozen, free = Verdict(Cause.CROWD, freeze=True), Verdict(Cause.CROWD, (1,), freeze=False)
    assert verdict({1: full, 2: idle}, crowd=True) == frozen
    large = Counts(syn=400, synack=130, completed=128)
    assert verdict({1: large, 2: idle}, crowd=True, ratios={1: 0.67, 2: 0.33}) == frozen
    assert verdict({1: full, 2: idle}, crowd=True, ratios={1: 0.67, 2: 0.33}) == free, "half of what it is given"
    weak = Counts(syn=300, synack=30, completed=28)
    assert verdict({1: weak, 2: idle}, crowd=True) == free
    assert verdict({1: weak, 2: idle}, crowd=True, ratios={1: 0.33, 2: 0.67}) == frozen, "relieved of what it cannot do"


def test_servers_that_complete_less_than_usual_serve_no_crowd() -> None:
    silent = {1: Counts(syn=2000), 2: Counts(syn=2000)}
    assert verdict(silent, crowd=True, slower=True) == Verdict(Cause.CROWD, freeze=True), "nobody knows what is usual"
    assert verdict(silent, crowd=True, slower=True, usual=50.0) == Verdict(Cause.FLOOD, freeze=True)
    # The usual clients alone send this many SYNs when they receive no answer, so the servers are down.
    assert verdict(silent, crowd=True, slower=True, usual=500.0) == Verdict(Cause.SICK, (1, 2), freeze=True)
    # Few handshakes complete because a limit admits few SYNs, so the cause is a crowd.
    limited = {1: FINE, 2: FINE}
    assert verdict(limited, crowd=True, slower=True, usual=500.0) == Verdict(Cause.CROWD, freeze=True)


def test_an_ejected_server_is_sick_however_few_syns_it_still_gets() -> None:
    ledger = {1: FINE, 2: FINE, 3: Counts(syn=2)}
    assert verdict(ledger) == Verdict(Cause.NORMAL)
    assert verdict(ledger, ejected=frozenset({3, 9})) == Verdict(Cause.SICK, (3,))
    assert verdict(ledger, crowd=True, ejected=frozenset({3})) == Verdict(Cause.CROWD, (3,))
