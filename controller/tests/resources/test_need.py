"""What transfers need, from what the switch sees of them."""

import numpy as np
import pytest
from sluice.resources.need import GROWTH, HEADROOM, Estimator, Needs, Reading
from sluice.resources.shares import sabt
from sluice.resources.throughput import segments_per_s

MSS = 1460.0


def reading(
    flight: float, *, segments: float = 1e5, losses: float = 0.0, rtt_s: float = 0.1, new: bool = False
) -> Reading:
    def column(value: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        return np.array([value])

    return Reading(
        column(segments), column(losses), column(rtt_s), column(0.3), column(MSS), column(flight), np.array([new])
    )


def need(how: Needs, *readings: Reading) -> float:
    estimator = Estimator(1)
    return [float(estimator.needs(one, np.array([how is Needs.PAPER]))[0]) for one in readings][-1]


def test_the_paper_needs_throughput_times_round_trip() -> None:
    (rate,) = segments_per_s(np.array([0.01]), np.array([0.1]), np.array([0.3]), np.array([1e9]))
    seen = reading(30 * MSS, losses=1e3)
    assert need(Needs.PAPER, seen) == pytest.approx(rate * 0.1 * MSS)
    assert need(Needs.PRODUCTION, seen) == pytest.approx(30 * MSS), "it has more in flight than twice the mean"
    assert need(Needs.PRODUCTION, reading(12 * MSS, losses=1e3)) == pytest.approx(HEADROOM * rate * 0.1 * MSS)


@pytest.mark.parametrize("how", Needs)
def test_without_a_loss_a_need_doubles(how: Needs) -> None:
    """A transfer that its cap limits loses nothing: the model knows no bound."""
    assert need(how, reading(50 * MSS)) == GROWTH * 50 * MSS


@pytest.mark.parametrize("how", Needs)
def test_what_a_slow_reader_leaves_is_taken_away(how: Needs) -> None:
    """Azuma et al., section 2.1.3: the proxy's other side is the slower one."""
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


def test_intervals_with_a_hole_tell_no_loss() -> None:
    lossy, hole = reading(30 * MSS, losses=1e3), reading(30 * MSS, losses=np.nan)
    assert need(Needs.PAPER, lossy, hole) == need(Needs.PAPER, lossy)


def test_shares_settle_though_losses_scatter() -> None:
    """Four equal transfers with losses by chance: SABT's shares swing by a tenth, not by the sawtooth's half."""
    random, estimator, shares = np.random.default_rng(5), Estimator(4), []
    ones = np.ones(4)
    for second in range(60):
        seen = Reading(
            400 * ones,
            random.poisson(400 * 0.01, 4).astype(float),
            0.1 * ones,
            0.3 * ones,
            MSS * ones,
            random.uniform(12, 24, 4) * MSS,
            np.full(4, second == 0),
        )
        shares.append(sabt(4 * 10 * MSS, estimator.needs(seen, np.ones(4, np.bool_))))
    late = np.array(shares[10:])
    assert (late.std(axis=0) < 0.1 * late.mean(axis=0)).all()
    assert (late.sum(axis=1) <= 40 * MSS * (1 + 1e-9)).all()
