"""Tests of the control of the share of responses that is measured, by the share of occupied slots."""

from __future__ import annotations

from random import Random

import pytest
from sluice.news import FlowShare, Slots

SLOTS, HELD_S, POLL_S = 4096, 4.2, 1.0


def taken(load: float, share: float) -> float:
    """Return the share of occupied slots at a load in responses per slot, of which `share` is measured."""
    return load * share / (1 + load * share)


def settled(share: FlowShare, load: float, seconds: float = 60.0) -> float:
    """Return the measured share of responses after `seconds` of a constant load."""
    for _ in range(round(seconds / POLL_S)):
        share.observe(Slots(taken(load, share.share), POLL_S, HELD_S))
    return share.share


@pytest.mark.parametrize(("load", "expected"), [(0.05, 1.0), (0.3, 1.0), (0.4, 0.5), (1.0, 0.25), (10.0, 1 / 64)])
def test_the_share_leaves_at_most_a_quarter_of_the_slots_taken(load: float, expected: float) -> None:
    assert settled(FlowShare(), load) == expected
    assert taken(load, expected) <= 0.25


def test_slots_that_are_all_taken_are_a_load_like_any_other() -> None:
    share = FlowShare()
    for _ in range(6):
        share.observe(Slots(1.0, POLL_S, HELD_S))
    assert share.share < 0.01


def test_what_was_measured_before_a_change_does_not_change_it_again() -> None:
    share = FlowShare()
    assert settled(share, 1.0, 5.0) == 0.25
    for _ in range(4):
        share.observe(Slots(taken(1.0, 1.0), POLL_S, HELD_S))
    assert share.share == 0.25


def test_more_is_measured_when_it_was_possible_for_long() -> None:
    share = FlowShare()
    assert settled(share, 10.0) == 1 / 64
    assert settled(share, 0.01, 7 * HELD_S) == 1 / 64
    assert settled(share, 10.0, 3.0) == 1 / 64
    assert settled(share, 0.01, 7 * HELD_S) == 1 / 64, "a pause is no calm"
    assert settled(share, 0.5, 20 * HELD_S) == 0.5


def test_never_more_than_configured() -> None:
    share = FlowShare(0.3)
    assert settled(share, 0.01) == 0.25


@pytest.mark.parametrize("load", [0.2, 0.34, 0.9, 7.7])
def test_a_steady_load_does_not_make_it_go_up_and_down(load: float) -> None:
    share, source, seen = FlowShare(), Random(1), set[float]()
    for second in range(600):
        share.observe(Slots(taken(load * source.uniform(0.9, 1.1), share.share), POLL_S, HELD_S))
        if second > 120:
            seen.add(share.share)
    assert len(seen) == 1
