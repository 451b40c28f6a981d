"""Crowd, flood, sick server or normal, and what it means for R's weights."""

from sluice.balance import BalanceOptions, Counts
from sluice.news import Cause, Verdict
from sluice.news.verdict import judge

FINE = Counts(syn=100, synack=100, completed=99)
LOSSY = Counts(syn=100, synack=60, completed=59)
DROWNED = Counts(syn=300, synack=60, completed=58)
SPOOFED = Counts(syn=500, synack=490, completed=100)


def verdict(ledger: dict[int, Counts], *, crowd: bool = False, slower: bool = False) -> Verdict:
    return judge(ledger, BalanceOptions(), crowd=crowd, slower=slower)


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


def test_a_stray_loss_is_no_sickness() -> None:
    assert verdict({1: FINE, 2: Counts(syn=40, synack=38, completed=38)}).cause is Cause.NORMAL


def test_an_answered_flood_is_known_by_its_missing_acks_whatever_else_is_seen() -> None:
    for crowd in (False, True):
        assert verdict({1: SPOOFED, 2: SPOOFED}, crowd=crowd) == Verdict(Cause.FLOOD, freeze=True)


def test_unanswered_everywhere_is_a_flood_when_responses_are_as_fast_as_ever() -> None:
    assert verdict({1: DROWNED, 2: DROWNED}) == Verdict(Cause.FLOOD, freeze=True)
    slow = verdict({1: DROWNED, 2: DROWNED}, slower=True)
    assert slow == Verdict(Cause.SICK, (1, 2), freeze=True)
