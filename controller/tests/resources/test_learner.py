"""Tests of learning a server's limit of open connections from the SYNs that the server leaves unanswered."""

from __future__ import annotations

import pytest
from sluice.balance import Counts
from sluice.resources.learner import Learner


def learn(learner: Learner, *readings: tuple[int, int, int], begin_s: float = 0.0) -> float | None:
    """Observe readings a second apart; return the learned limit.

    A reading contains the open connections, and the SYNs and SYN-ACKs since the last reading.
    """
    total = Counts(syn=(1 << 32) - 50, synack=(1 << 32) - 50)
    learner.observe(begin_s, 0, total)
    for second, (connections, syn, synack) in enumerate(readings, 1):
        total = Counts((total.syn + syn) % (1 << 32), (total.synack + synack) % (1 << 32))
        learner.observe(begin_s + second, connections, total)
    return learner.limit


def test_nothing_is_known_while_nothing_is_refused() -> None:
    assert learn(Learner(), (500, 100, 100), (900, 100, 98)) is None


def test_chance_losses_teach_nothing() -> None:
    assert learn(Learner(), (500, 2, 0), (500, 100, 91)) is None


def test_what_was_open_when_it_refused_is_the_limit() -> None:
    assert learn(Learner(), (170, 100, 100), (180, 40, 20)) == 160


def test_the_least_counts_and_a_server_that_takes_more_has_grown() -> None:
    assert learn(Learner(), (180, 40, 20), (170, 30, 20), (500, 90, 20)) == 160
    assert learn(Learner(), (180, 40, 20), (200, 20, 20)) == 200


def test_silence_is_no_limit() -> None:
    """A server that is down for ten seconds sets no limit, and a limit that was learned before stays.

    The server stops and starts in the middle of a second, so the first and the last reading count some answers.
    """
    off = [(300, 50, 25), *[(300, 50, 0)] * 9, (310, 50, 25)]
    assert learn(Learner(), (900, 50, 50), *off, (320, 50, 50)) is None
    assert learn(Learner(), (1000, 90, 60), *off) == 970
    assert learn(Learner(), *[(300, 2, 0)] * 9, (300, 40, 20)) is None, "few ask, and it comes back"


def test_a_server_that_only_answers_requests_is_full() -> None:
    learner, total = Learner(), Counts()
    for second in range(4):
        learner.observe(float(second), 200, total, responses=7)
        total = Counts(total.syn + 10)
    assert learner.limit == 190


def test_it_is_forgotten_slowly() -> None:
    assert learn(Learner(), (120, 40, 20), *[(50, 0, 0)] * 600) == pytest.approx(100 * 1.01**10, rel=1e-6)


def test_never_above_what_is_configured() -> None:
    assert learn(Learner(150), (400, 90, 90)) == 150
    assert learn(Learner(150), (140, 40, 20)) == 120


def test_counters_that_begin_anew_teach_nothing() -> None:
    learner = Learner()
    learner.observe(0.0, 100, Counts(syn=5000, synack=4000))
    learner.observe(1.0, 100, Counts(syn=10, synack=0))
    assert learner.limit is None
