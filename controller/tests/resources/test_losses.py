"""Tests of estimates of transfers' loss rates from few losses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.resources.losses import Losses

COUNTS = st.lists(st.tuples(st.integers(1, 10**6), st.floats(0.0, 1.0)), min_size=1, max_size=20)


def counted(segments: list[float], events: list[float]) -> Losses:
    losses = Losses(len(segments), 0.9)
    zero = np.zeros(len(segments))
    losses.observe(np.array(segments, float), np.array(events, float), zero, zero == 0)
    return losses


def pooled(losses: Losses, many: int) -> list[float]:
    return losses.pooled(np.zeros(many, np.int64)).tolist()


def test_what_may_be_chance_is_taken_for_it() -> None:
    """Two transfers lose 8 and 12 of 1,000 segments, and 10 are expected of each: both have the common loss rate.

    The squared deviations over the expectation add up to (4 + 4) / 10 = 0.8. If only chance made the losses differ, the
    mean of this sum would be 1, so the difference is taken for chance.
    """
    assert pooled(counted([1000, 1000], [8, 12]), 2) == pytest.approx([0.01, 0.01])


def test_what_is_no_chance_is_drawn_a_little_by_hand() -> None:
    """Two transfers lose 10 and 90 of 1,000 segments, and 50 are expected of each: their rates differ by more than
    chance.

    The spread of the rates is (1600 / 50 + 1600 / 50 - 1) / 100 = 0.63, where 100 is the sum of the expected losses.
    The estimates are (0.63 * 10 + 1) / (0.63 * 1,000 + 20) and (0.63 * 90 + 1) / (0.63 * 1,000 + 20), where 20 is the
    inverse of the common rate.
    """
    assert pooled(counted([1000, 1000], [10, 90]), 2) == pytest.approx([7.3 / 650, 57.7 / 650])


def test_one_that_is_alone_has_its_own_rate() -> None:
    assert pooled(counted([1000], [7]), 1) == pytest.approx([0.007])
    assert pooled(counted([1000], [0]), 1) == [0.0]


def test_one_without_a_loss_beside_lossy_ones_is_soon_known_as_such() -> None:
    losses = pooled(counted([4000, *[300] * 15], [0, *[15] * 15]), 16)
    assert losses[0] < 1e-3 and min(losses[1:]) == pytest.approx(0.05, rel=0.1)


@given(COUNTS)
def test_a_rate_lies_between_its_own_and_that_of_all(counts: list[tuple[int, float]]) -> None:
    segments = np.array([many for many, _ in counts], float)
    events = np.floor([many * rate for many, rate in counts])
    losses = counted(segments.tolist(), events.tolist())
    own, common = losses.own(), min(1.0, events.sum() / segments.sum())
    low, high = np.minimum(own, common), np.maximum(own, common)
    rates = losses.pooled(np.zeros(len(counts), np.int64))
    assert (rates >= low * (1 - 1e-9) - 1e-15).all() and (rates <= high * (1 + 1e-9)).all()


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(counts: list[tuple[int, float]], random: object) -> None:
    order = list(range(len(counts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    segments, events = [float(many) for many, _ in counts], [float(int(many * rate)) for many, rate in counts]
    estimates = np.array(pooled(counted(segments, events), len(counts)))
    other = pooled(counted([segments[at] for at in order], [events[at] for at in order]), len(counts))
    assert other == pytest.approx(estimates[order].tolist())


def test_the_past_fades_by_intervals_and_by_events() -> None:
    losses, no, zero = Losses(1, 0.9, 0.99), np.array([False]), np.zeros(1)

    def observe(segments: float, events: float, *, new: bool = False) -> float:
        losses.observe(np.array([segments]), np.array([events]), zero, no | new)
        return float(losses.own()[0])

    assert observe(1000.0, 10.0) == 0.01
    assert observe(0.0, 0.0) == pytest.approx(0.01)
    assert observe(190.0, 0.0) == pytest.approx(10 * 0.81 / (1000 * 0.81 + 190))
    assert observe(1000.0, 50.0) == pytest.approx((8.1 * 0.9 * 0.99**50 + 50) / (1000 * 0.9 * 0.99**50 + 1000))
    assert observe(100.0, 2.0, new=True) == 0.02
