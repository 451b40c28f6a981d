"""Tests of the metric R: equation 5, missing evidence, infinity, and the effect of counting repeated SYN-ACKs."""

import math

from sluice.balance.counts import Counts
from sluice.balance.metric import ratio_of_unanswered, ratio_with_every_synack


def test_equation_5() -> None:
    assert ratio_of_unanswered(Counts(syn=150, synack=100)) == 0.5


def test_too_few_syns_are_no_evidence_rather_than_zero() -> None:
    assert ratio_of_unanswered(Counts(syn=9, synack=9), minimum_syn=10) is None
    assert ratio_of_unanswered(Counts()) is None


def test_no_answer_to_enough_syns_is_infinity() -> None:
    assert ratio_of_unanswered(Counts(syn=10), minimum_syn=10) == math.inf


def test_repeated_synacks_do_not_enter_r_but_are_shown() -> None:
    """A window measured in docs/reference/algorithms.md: 2,718 SYNs, and 1,072 SYN-ACKs, 32 of them repeated."""
    window = Counts(syn=2718, synack=1040, synack_again=32)
    r, every = ratio_of_unanswered(window), ratio_with_every_synack(window)
    assert r is not None and every is not None
    assert round(r, 3) == 1.613
    assert round(every, 3) == 1.535
