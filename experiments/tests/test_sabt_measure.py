"""Tests of the comparison of measured transfers with TCP: loss events from a capture, and the report."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.figure import Figure

from experiments.experiment import Record
from experiments.lossevents import losses
from experiments.sabt_measure import DISTANCES, EXPERIMENT, points
from experiments.tcptrace import Traced, parsed
from experiments.tests.small import goal_of, report_text

MSS = 1000


def sent(*segments: tuple[float, int]) -> Any:
    """Return the losses of one connection whose segments have the given times and indexes. Sequence numbers begin just
    below 2^32, so that they wrap around."""
    return losses((time_s, 7, (place * MSS - 2500) % (1 << 32), MSS) for time_s, place in segments)[7]


def test_losses_of_one_window_are_one_event() -> None:
    window = [(0.0 + place / 100, place) for place in range(6)]
    losses = sent(*window, (1.0, 1), (1.1, 3), (1.2, 6), (1.3, 7), (2.0, 6))
    assert (losses.segments, losses.again, losses.events) == (11, 3, 2)


def test_a_retransmission_that_is_lost_is_no_event_of_its_own() -> None:
    losses = sent((0.0, 0), (0.1, 1), (0.2, 2), (1.0, 0), (2.0, 0), (4.0, 0), (5.0, 1))
    assert (losses.again, losses.events) == (4, 1)


def transfer(client: str, **switch: float) -> dict[str, Any]:
    """Return a transfer for which switch, kernel and capture have equal values; `switch` replaces values of the
    switch."""
    mine = {"segments": 1000, "again": 70, "losses": 60, "timeouts": 0, "probes": 0, "holes": 0}
    return {
        "client": client,
        "rtt_s": 0.1,
        "least_rtt_s": 0.09,
        "again": 70,
        "captured": {"segments": 1000, "again": 70, "events": 60},
        "tcptrace": {"again": 70, "rtt_s": 0.1},
        "switch": {**mine, "rtt_s": 0.1, "least_rtt_s": 0.09, **switch},
    }


def record(**switch: float) -> Record:
    """Return a record with one transfer for each distance; `switch` replaces values of the switch at the first
    distance."""
    transfers = [
        transfer(distance.address, **(switch if number == 0 else {})) for number, distance in enumerate(DISTANCES)
    ]
    kernel = {"TCPTimeouts": 1, "TCPLossProbes": 2}
    parameters = {"congestion": "reno", "loss": 0.05, "seconds": 1.0}
    return Record("one", parameters, {"transfers": transfers, "kernel": kernel}, 0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("words", "switch", "holds"),
    [
        ("`tcpi_rtt`", {"rtt_s": 0.109}, True),
        ("`tcpi_rtt`", {"rtt_s": 0.111}, False),
        ("least", {"least_rtt_s": 0.079}, False),
        ("`tcpi_total_retrans`", {"again": 60}, False),
        ("mean round trip within 10 % + 0.2 ms of tcptrace's", {"rtt_s": 0.111}, False),
        ("again within 10 % of tcptrace's", {"again": 60}, False),
        ("a capture", {"losses": 65}, True),
        ("a capture", {"losses": 53}, False),
    ],
)
def test_figures_that_differ_too_much_are_reported(words: str, switch: dict[str, float], holds: bool) -> None:
    goal = goal_of(EXPERIMENT.report([record(**switch)]), words)
    assert goal.reached is holds
    assert ("4 of 4" if holds else "3 of 4") in goal.seen


def test_what_tcptrace_says_is_read_by_direction() -> None:
    head = "conn_#,port_a,port_b,rexmt_data_pkts_a2b,rexmt_data_pkts_b2a,RTT_avg_a2b,RTT_avg_b2a,"
    rows = ["1, 4000, 80, 3, 4, 1.5, 2.5,", "2, 80, 4001, 5, 6, 20.0, 0.1,", "3, 22, 4002, 7, 8, 9.0, 9.0,"]
    assert parsed(["#1 arg remaining", "", head, "", *rows], 80) == {4000: Traced(4, 0.0025), 4001: Traced(5, 0.02)}


def test_transfers_that_share_a_slot_are_left_out_and_counted() -> None:
    first = record()
    for each in first.result["transfers"]:
        each["switch"] = None
    report = EXPERIMENT.report([first])
    assert report.summary == {"not measured": len(DISTANCES)}
    assert [goal.reached for goal in report.goals] == [None] * 6
    EXPERIMENT.draw([first], Figure())


def test_a_run_is_reported_and_drawn() -> None:
    assert (
        "| reno | 5.0% | 1 | 1 | 100.00 | 100.00 | 90.00 | 90.00 | 1,000 | 70 | 70 | 60 | 60 | 6.000% |"
        in report_text(EXPERIMENT, [record()])
    )


def test_the_quick_form_takes_less_than_ten_minutes() -> None:
    assert sum(point.seconds for point in points(True)) < 600
