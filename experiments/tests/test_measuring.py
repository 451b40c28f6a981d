"""Tests of the experiments' computations: predictions, intervals, times."""

from __future__ import annotations

import math

import pytest

from experiments import syntimers
from experiments.intervals import chance, mean_of
from experiments.syntimers import SynTimers
from experiments.webpool import times
from topo.measure.handshakes import ConnectTimes, Handshakes, Segment


def test_syns_are_repeated_as_linux_does() -> None:
    assert list(SynTimers(retries=6, linear=4).sent_after()) == [0, 1, 2, 3, 4, 5, 7]
    assert list(SynTimers(retries=4, linear=0).sent_after()) == [0, 1, 3, 7, 15]


def test_the_prediction_is_r_times_the_timeout_while_timers_are_linear() -> None:
    steady = SynTimers(retries=100, linear=100)
    for r in (0.01, 0.35, 1.0):
        assert steady.connect_s(r, math.inf) == pytest.approx(r, rel=1e-6)
    assert SynTimers(6, 4).connect_s(0.0, 20.0) == 0.0


def test_a_connection_that_was_given_up_is_no_answer() -> None:
    timers = SynTimers(retries=6, linear=4)
    # R = 1 means that half of all SYNs are lost; a client that gives up after 1.5 s sends SYNs only at 0 s and 1 s.
    assert timers.connect_s(1.0, given_up_s=1.5) == pytest.approx(0.25 * 1.0 / 0.75)


def test_the_timers_are_those_of_the_host_that_sends_the_syns(monkeypatch: pytest.MonkeyPatch) -> None:
    def syn_sysctls(pid: int) -> tuple[int, int]:
        return {17: (5, 0)}[pid]

    monkeypatch.setattr(syntimers, "syn_sysctls", syn_sysctls)
    assert syntimers.timers(17) == SynTimers(retries=5, linear=0)


def test_means_have_intervals() -> None:
    mean = mean_of([10.0, 12.0, 14.0])
    assert mean.value == 12.0 and mean.half == pytest.approx(4.303 * 2 / math.sqrt(3), abs=1e-3)
    assert mean.text() == "12.0 ± 5.0"
    assert mean_of([2.0, 20.0, 40.0]).text() == "20.7 (0–67.9)", "what is measured is never negative"
    assert mean_of([0.0, 0.001]).text() == "0.0 ± 0.0"
    assert mean_of([3.0]).text() == "3.0" and mean_of([]).text() == "-"


def test_means_that_differ_by_no_more_than_chance_say_so() -> None:
    first, near, far = (mean_of([middle - 1, middle, middle + 1]) for middle in (10.0, 12.0, 20.0))
    assert chance(first, near) == ", no more apart than chance" and chance(first, far) == ""
    assert chance(mean_of([10.0]), mean_of([10.1])) == "", "one run each tells nothing"


def test_a_client_that_gave_up_counts_with_the_time_it_took() -> None:
    seen = times(ConnectTimes(4, [0.1, 0.1, 0.2]), limit_s=5.0)
    assert seen["given_up"] == 1 and seen["p99_ms"] == 5000.0
    assert seen["mean_ms"] == pytest.approx(1350.0) and seen["answered_mean_ms"] == pytest.approx(400 / 3)


def test_what_took_longer_than_the_limit_counts_as_given_up() -> None:
    late = times(ConnectTimes(4, [0.1, 0.3, 5.2]), limit_s=5.0)
    assert late == times(ConnectTimes(4, [0.1, 0.3]), limit_s=5.0) and late["given_up"] == 2


def segment(time: float, *, to_server: bool, flags: str, sequence: int = 0, acknowledgement: int = 0) -> Segment:
    return Segment(
        time,
        "10.0.1.1",
        4000,
        to_server,
        "S" in flags,
        "A" in flags,
        "R" in flags,
        sequence,
        acknowledgement,
        "F" in flags,
    )


def test_a_transfer_ends_with_the_services_fin() -> None:
    seen = Handshakes()
    for line in (
        segment(1.0, to_server=True, flags="S", sequence=7),
        segment(2.0, to_server=True, flags="S", sequence=7),
        segment(2.1, to_server=False, flags="SA", acknowledgement=8),
        segment(2.4, to_server=True, flags="FA"),
        segment(2.5, to_server=False, flags="FA"),
        segment(2.9, to_server=False, flags="FA"),
        segment(9.0, to_server=True, flags="S", sequence=8),  # a second SYN from the same port, never answered
    ):
        seen.add(line)
    transfers = seen.transfers_between(0, 10)
    assert transfers.seconds == [1.5] and transfers.begun == 2
    assert seen.between(0, 10).seconds == [pytest.approx(1.1)]
