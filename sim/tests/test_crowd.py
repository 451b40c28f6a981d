"""A simulated flash crowd: packets and requests are conserved, NEWS does what the lab shows, a seed is a run."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from sim.crowd import simulate
from sim.dumbbell import Dumbbell, places, plan
from sim.lab import lab_plan, simulate_lab
from topo.load.outcomes import Ending
from topo.news.measures import Records, figures
from topo.news.scenarios import HOT_SPOT, NETWORK, NONE, PRODUCTION, SERVER
from topo.news.settings import Settings

SHORT = replace(Settings(), before=3, after=4)


@pytest.fixture(scope="module")
def no_control() -> Records:
    return simulate_lab(NETWORK, NONE, NETWORK.settle(SHORT))


def test_without_control_the_link_loses_and_nothing_is_refused(no_control: Records) -> None:
    measured = figures(no_control, no_control.window())
    assert measured.response_loss > 0.2
    assert measured.bottleneck_used == pytest.approx(1.0, abs=0.02)
    assert measured.bystander_goodput_kbps < 0.2 * figures(no_control, no_control.quiet()).bystander_goodput_kbps
    assert math.isnan(measured.limit_mean_per_s)


def test_every_request_has_one_ending_and_whole_answers_are_whole(no_control: Records) -> None:
    for one in no_control.outcomes:
        assert (one.ending is Ending.FINISHED) == (one.bytes == one.size)
        if one.done_s is not None and one.connect_s is not None:
            assert one.connect_s <= one.done_s
        assert (one.done_s is None) == (one.ending is Ending.PENDING)


def test_news_detects_and_relieves(no_control: Records) -> None:
    controlled = simulate_lab(NETWORK, HOT_SPOT, NETWORK.settle(SHORT))
    measured = figures(controlled, controlled.window())
    assert measured.detected_after_intervals < 1.4
    assert measured.response_loss < 0.05
    assert measured.ar_kbps > 1.5 * figures(no_control, no_control.window()).ar_kbps
    assert measured.rejected_share > 0.3
    assert len(controlled.outcomes) == len(no_control.outcomes)


def test_production_mode_runs_on_its_own_period() -> None:
    settings = NETWORK.settle(replace(SHORT, before=4, after=2))
    run = simulate(lab_plan(NETWORK, PRODUCTION, settings))
    moments = [decision.time_s for decision in run.decisions]
    assert moments[1] - moments[0] == pytest.approx(1 / settings.k)
    assert any(decision.limit for decision in run.decisions)


def test_a_slow_server_is_the_bottleneck_where_it_is_meant_to_be() -> None:
    settings = SERVER.settle(replace(SHORT, before=2, after=2, slow_cpus=0.3))
    measured = figures(records := simulate_lab(SERVER, NONE, settings), records.window())
    assert measured.bottleneck_used < 0.9
    assert measured.finished_per_s / settings.k < 60


def test_the_same_seed_is_the_same_run() -> None:
    one = Dumbbell(NONE, onset_s=60.0, end_s=120.0)
    first, again = simulate(plan(one)), simulate(plan(one))
    assert first.outcomes == again.outcomes
    assert first.link[-1] == again.link[-1]


def test_clients_are_where_the_paper_has_them() -> None:
    where = places(1)
    assert len(where) == 1000
    assert all(0.001 <= place.round_trip_s <= 3.6 and 21e3 <= place.bit_per_s <= 10e6 for place in where)
