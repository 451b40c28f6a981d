"""Tests of several simulated crowds over one link and at different servers: each crowd's destination is limited, and no
other destination is limited."""

from __future__ import annotations

import pytest
from sluice.addresses import from_packed

from sim.crowd import CrowdRun, simulate
from sim.dumbbell import Dumbbell, Further, plan
from sim.lab import other
from topo.plan.crowd.network import TARGET, TARGET_ADDRESS
from topo.plan.crowd.scenarios import PRODUCTION

ONSET_S, END_S = 60.0, 170.0
OTHERS = 8


def crowds(*further: Further, size: float = 0.5) -> CrowdRun:
    """Simulate a crowd at the target from the onset on, and further crowds. The requests to all other destinations rise
    by a tenth."""
    dumbbell = Dumbbell(
        PRODUCTION,
        onset_s=ONSET_S,
        end_s=END_S,
        size=size,
        others=OTHERS,
        others_per_s=80.0,
        others_rise=1.1,
        link_bit_per_s=6e6,
        further=further,
        patience_s=8.0,
    )
    return simulate(plan(dumbbell))


def limited(run: CrowdRun) -> dict[str, tuple[float, float]]:
    """Return, by destination, the first and the last time in s at which a limit applied."""
    names = {TARGET_ADDRESS: TARGET} | {other(number).address: other(number).name for number in range(OTHERS)}
    periods: dict[str, tuple[float, float]] = {}
    for decision in run.decisions:
        for target in decision.limits:
            assert target is not None
            name = names[from_packed(target)]
            periods[name] = periods.get(name, (decision.time_s, 0.0))[0], decision.time_s
    return periods


def lost(run: CrowdRun, begin_s: float) -> float:
    """Return the share of packets that the link dropped from `begin_s` on."""
    (_, first), (_, last) = next(reading for reading in run.link if reading[0] >= begin_s), run.link[-1]
    dropped = last.dropped - first.dropped
    return dropped / (last.sent - first.sent + dropped)


def test_one_inside_another_is_limited_and_freed_without_it() -> None:
    run = crowds(Further(0, 150.0, 80.0, 120.0))
    periods = limited(run)
    assert set(periods) == {TARGET, "other-0"}
    assert periods[TARGET][0] < ONSET_S + 20 and periods[TARGET][1] > END_S - 2
    assert 80 < periods["other-0"][0] < 95 and 120 < periods["other-0"][1] < 160
    assert all(run.refused[f"other-{number}"] == 0 for number in range(1, OTHERS))
    assert run.refused[TARGET] > 0 and run.refused["other-0"] > 0
    assert lost(run, 130.0) < 0.08


@pytest.mark.parametrize("room", [None, 20])
def test_five_that_begin_together_are_limited_each(room: int | None) -> None:
    """Four crowds begin together with the crowd at the target; with `room`, the server of one further crowd is slow."""
    sizes = (120.0, 80.0, 60.0, 50.0)
    further = [
        Further(number, size, ONSET_S, END_S, room if number == 1 else None) for number, size in enumerate(sizes)
    ]
    run = crowds(*further)
    assert set(limited(run)) == {TARGET, *(f"other-{number}" for number in range(len(sizes)))}
    assert all(run.refused[f"other-{number}"] == 0 for number in range(len(sizes), OTHERS))
    assert lost(run, 130.0) < 0.08
