"""Tests of transfers' needs of buffer, which are estimated from the switch's measurements."""

from dataclasses import replace

import numpy as np
import pytest
from sluice.resources.need import BELIEVED, FADING, GROWTH, Estimator, Needs, Reading
from sluice.resources.shares import sabt
from sluice.resources.throughput import Column, segments_per_s

MSS = 1460.0
MODELS = (Needs.PAPER, Needs.PRODUCTION)


def reading(
    flight: float,
    *,
    under_way: float = 0.0,
    segments: float = 1e5,
    losses: float = 0.0,
    timeouts: float = 0.0,
    rtt_s: float = 0.1,
    new: bool = False,
) -> Reading:
    def column(value: float) -> Column:
        return np.array([value])

    return Reading(
        segments=column(segments),
        losses=column(losses),
        timeouts=column(timeouts),
        rtt_s=column(rtt_s),
        rto_s=column(0.3),
        mss=column(MSS),
        flight=column(flight),
        under_way=column(under_way),
        is_new=np.array([new]),
    )


def need(how: Needs, *readings: Reading) -> float:
    estimator = Estimator(1)
    for item in readings:
        estimator.observe(item)
    return float(estimator.needs(how, np.zeros(1, np.int64))[0])


def test_the_paper_needs_throughput_times_round_trip() -> None:
    (rate,) = segments_per_s(np.array([0.01]), np.array([0.1]), np.array([0.3]), np.array([1e9]))
    assert need(Needs.PAPER, reading(30 * MSS, losses=1e3)) == pytest.approx(rate * 0.1 * MSS)


def test_production_needs_that_of_todays_senders() -> None:
    """The loss rate is p = 0.01, windows grow by bytes acknowledged (b = 1), and there are no timeouts.

    A loss ends the growth of the window at W = 1 + sqrt(264 + 1) = 17.27882 segments. The mean number of segments in
    flight is (99 + W) / (W / 2 + 1) = 12.06286.
    """
    seen = reading(30 * MSS, under_way=12 * MSS, losses=1e3)
    assert need(Needs.PRODUCTION, seen) == pytest.approx(12.06286 * MSS, rel=1e-6)


def test_time_outs_that_are_seen_cost_as_much_as_the_model_has_them() -> None:
    """The share of losses that only a timeout detected is the observed share, but at most the model's share Q.

    Q = 0.0297010 * 1.1295055 / 0.1594281 = 0.210422. The observed share is 1 in the first case, so Q counts, and
    0.1 in the second, so 0.1 counts. A loss ends the growth of the window at 17.27882 segments.
    """
    seen = reading(30 * MSS, losses=1e3, timeouts=1e3)
    mean = (99 + 17.27882 + 0.210422 / 0.99) / (17.27882 / 2 + 1 + 0.210422 * 3 * 1.010204 / 0.99)
    assert need(Needs.PRODUCTION, seen) == pytest.approx(mean * MSS, rel=1e-4)
    few = reading(30 * MSS, losses=1e3, timeouts=100)
    mean = (99 + 17.27882 + 0.1 / 0.99) / (17.27882 / 2 + 1 + 0.1 * 3 * 1.010204 / 0.99)
    assert need(Needs.PRODUCTION, few) == pytest.approx(mean * MSS, rel=1e-4)


def test_the_sawtooths_largest_flight_is_no_need() -> None:
    """The need does not depend on the largest flight; otherwise the needs of all transfers would be nearly equal."""
    low, high = (reading(flight * MSS, under_way=12 * MSS, losses=1e3) for flight in (14, 40))
    assert need(Needs.PRODUCTION, low) == need(Needs.PRODUCTION, high)


def test_a_transfer_that_keeps_more_in_flight_ignores_losses() -> None:
    """The model's mean flight is 12.06 segments. Reno, which the model describes, may reach a mean of 17, never 30."""
    lossy = [reading(40 * MSS, under_way=flight * MSS, losses=1e3) for flight in (17, 30)]
    assert need(Needs.PRODUCTION, lossy[0]) == pytest.approx(12.06286 * MSS, rel=1e-6)
    assert need(Needs.PRODUCTION, lossy[1]) == 30 * MSS
    assert need(Needs.PAPER, lossy[1]) == need(Needs.PAPER, lossy[0])


def test_one_high_flight_is_not_believed_and_many_are_not_forgotten_at_once() -> None:
    high, low = (reading(90 * MSS, under_way=flight * MSS, losses=1e3) for flight in (40, 12))
    modelled = need(Needs.PRODUCTION, low)
    assert need(Needs.PRODUCTION, *[low] * 20, high) == pytest.approx(modelled)
    weights = FADING ** np.arange(21)
    mean = (12 + 40 * weights[1:].sum()) / weights.sum() * MSS
    assert mean > BELIEVED * modelled
    assert need(Needs.PRODUCTION, *[high] * 20, low) == pytest.approx(mean)


def test_the_present_need_is_twice_what_is_in_flight() -> None:
    seen = reading(40 * MSS, under_way=10 * MSS, losses=1e3)
    assert need(Needs.PRESENT, reading(90 * MSS, under_way=80 * MSS), seen) == 20 * MSS
    assert need(Needs.PRESENT, reading(40 * MSS)) == 4 * MSS


@pytest.mark.parametrize("how", MODELS)
def test_without_a_loss_a_need_doubles(how: Needs) -> None:
    """The need of a transfer without losses is GROWTH times its flight, because the model then has no bound.

    A transfer may be without losses only because its cap limits it, so its need must be able to grow.
    """
    assert need(how, reading(50 * MSS)) == GROWTH * 50 * MSS


@pytest.mark.parametrize("how", MODELS)
def test_what_a_slow_reader_leaves_is_taken_away(how: Needs) -> None:
    """If the client reads slowly, the bytes in flight fall, and the need follows (Azuma et al., section 2.1.3)."""
    assert need(how, reading(400 * MSS), reading(5 * MSS)) == GROWTH * 5 * MSS


def test_a_need_has_a_floor() -> None:
    assert need(Needs.PAPER, reading(100.0)) == 4 * MSS


def test_no_need_without_a_round_trip_or_a_flight() -> None:
    assert need(Needs.PAPER, reading(10 * MSS, rtt_s=np.nan)) == 0
    assert need(Needs.PAPER, reading(0)) == 0
    assert need(Needs.PAPER, reading(10 * MSS), reading(10 * MSS, rtt_s=np.nan)) > 0, "the one before holds"


def test_another_transfer_in_the_slot_begins_anew() -> None:
    lossy, clean = reading(30 * MSS, losses=1e3), reading(30 * MSS, segments=10.0, new=True)
    assert need(Needs.PAPER, lossy, clean) == GROWTH * 30 * MSS


def test_shares_settle_though_losses_scatter() -> None:
    """Four equal transfers have random losses, and flights that vary by up to a factor of two.

    The standard deviation of SABT's shares is nevertheless below 3 % of their mean.
    """
    random, estimator, shares = np.random.default_rng(5), Estimator(4), []
    ones, server = np.ones(4), np.zeros(4, np.int64)
    for second in range(60):
        seen = Reading(
            400 * ones,
            random.poisson(400 * 0.01, 4).astype(float),
            0 * ones,
            0.1 * ones,
            0.3 * ones,
            MSS * ones,
            random.uniform(12, 24, 4) * MSS,
            random.uniform(8, 16, 4) * MSS,
            np.full(4, second == 0),
        )
        estimator.observe(seen)
        shares.append(sabt(4 * 12 * MSS, estimator.needs(Needs.PRODUCTION, server)))
    late = np.array(shares[10:])
    assert (late.std(axis=0) < 0.03 * late.mean(axis=0)).all()
    assert (late.sum(axis=1) <= 48 * MSS * (1 + 1e-9)).all()


def test_another_servers_losses_do_not_count() -> None:
    """All transfers of a server have the same loss rate; the rate of server 2 is ten times that of server 1."""
    estimator, random = Estimator(30), np.random.default_rng(1)
    single = reading(90 * MSS)
    many = replace(single, **{name: np.full(30, getattr(single, name)[0]) for name in Reading.__slots__})
    seen = replace(many, segments=np.full(30, 1e3), losses=np.r_[random.poisson(2, 15), random.poisson(20, 15)] * 1.0)
    estimator.observe(seen)
    separate = estimator.needs(Needs.PRODUCTION, np.repeat([1, 2], 15))
    assert separate[:15].max() < 2 * separate[:15].min() and separate[:15].min() > 2 * separate[15:].max()
