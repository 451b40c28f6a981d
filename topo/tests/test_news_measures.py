"""Tests of the figures computed from a run's records, against numbers computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from topo.labs.crowds import series
from topo.labs.crowds.links import parse_counts
from topo.labs.crowds.run import META, switch_packets
from topo.plan.crowd.measures import Records, figures, syn_times
from topo.plan.crowd.readings import (
    LinkCounts,
    Row,
    Sample,
    alarms,
    at,
    measured,
    parse_rows,
    read_samples,
    write_samples,
)
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, RISING_LOAD, SLOW_CLIENTS, Settings
from topo.plan.crowd.traffic import target_requests
from topo.plan.outcomes import Ending, Outcome
from topo.testbed.errors import SetupError

HEADER = "unix_s,ar_bps,offered_per_s,admitted_per_s,refused_per_s,alarm,limit_per_s,hot_spot,cause\n"


def row(time_s: float, *, alarm: bool, ar: float = 1000.0, limit: float = math.nan) -> Row:
    return Row(time_s, ar, 1.0, 1.0, 0.0, alarm, limit, "", "")


def outcome(due: float, server: str, ending: Ending, *, connect: float | None = 0.1, done: float = 0.2) -> Outcome:
    return Outcome(due, 1, server, 1000, connect, connect, done, 1000, ending, 0, 0.001)


def sample(time_s: float, packets: int, drops: int) -> Sample:
    return Sample(
        time_s,
        packets,
        packets * 100,
        drops,
        time_s * 0.5,
        10_000_000,
        time_s * 0.25,
        20_000_000,
        30_000_000 + 10_000 * packets,
        drops // 50,
    )


RECORDS = Records(
    period_s=10.0,
    onset_s=45.0,
    end_s=100.0,
    link_bit_per_s=1e4,
    controls=True,
    crowd=True,
    outcomes=[
        outcome(20.0, "target", Ending.FINISHED),
        outcome(70.5, "target", Ending.FINISHED),
        outcome(71.0, "target", Ending.GAVE_UP, connect=None, done=2.0),
        replace(outcome(72.0, "target", Ending.FINISHED, connect=2.1, done=2.2), retries=2),
        outcome(73.0, "target", Ending.BROKEN, done=5.0),
        outcome(99.0, "target", Ending.PENDING, connect=None, done=1.0),
        outcome(75.0, "bystander", Ending.FINISHED, done=0.3),
        outcome(76.0, "bystander", Ending.FINISHED, done=0.1),
        outcome(77.0, "bystander", Ending.REFUSED, connect=None),
        outcome(30.0, "bystander", Ending.REFUSED, connect=None),
    ],
    bulk=[(69.9, 10_000), (70.0, 10_000), (99.9, 5_000)],
    samples=[sample(0.0, 0, 0), sample(70.0, 100, 50), sample(100.0, 400, 150)],
    rows=[
        row(20.0, alarm=True),
        row(30.0, alarm=False),
        row(60.0, alarm=True),
        row(70.0, alarm=True, ar=3000.0, limit=50.0),
        row(80.0, alarm=False, ar=5000.0, limit=70.0),
    ],
)


def test_the_figures_of_the_crowd() -> None:
    assert RECORDS.window() == (70.0, 100.0)
    assert RECORDS.quiet() == (10.0, 45.0)
    measured = figures(RECORDS, RECORDS.window())
    assert measured.detected_after_intervals == pytest.approx(1.5)
    assert measured.false_alarms == 1
    assert measured.rejected_share == pytest.approx(1 / 4)  # 1 of 4 ended requests; the pending request does not count
    assert measured.response_loss == pytest.approx(100 / 400)
    assert measured.ar_kbps == pytest.approx(5.0)  # the decision at 70 s measured the interval before the window
    assert measured.limit_mean_per_s == pytest.approx(60.0)
    assert measured.admitted_per_s == pytest.approx(3 / 30)
    assert measured.offered_per_s == pytest.approx(7 / 30)
    assert measured.finished_per_s == pytest.approx(2 / 30)
    assert (measured.bystander_latency_mean_ms, measured.bystander_latency_median_ms) == (pytest.approx(200), 200)
    assert (measured.bystander_refused, measured.bystander_unconnected) == (2, 1)
    assert measured.bystander_goodput_kbps == pytest.approx(15_000 * 8 / 30 / 1000)
    assert measured.bottleneck_used == pytest.approx(300 * 100 * 8 / 30 / 1e4)
    assert (measured.switch_cpu, measured.controller_cpu) == (pytest.approx(0.5), pytest.approx(0.25))


def test_the_slow_servers_memory_is_a_share_of_its_limit() -> None:
    limited = replace(RECORDS, slow_memory_bytes=61e6)
    assert figures(limited, (0.0, 100.0)).slow_memory_share == 0.5
    assert math.isnan(figures(RECORDS, (0.0, 100.0)).slow_memory_share)


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    write_samples(tmp_path / "samples.csv", RECORDS.samples)
    assert read_samples(tmp_path / "samples.csv") == RECORDS.samples
    counted = [replace(reading, received_packets=7) for reading in RECORDS.samples]
    write_samples(tmp_path / "samples.csv", counted)
    assert read_samples(tmp_path / "samples.csv") == counted
    together = [replace(RECORDS.samples[0], bystander_refused=None)]
    write_samples(tmp_path / "samples.csv", together)
    assert read_samples(tmp_path / "samples.csv") == together


def test_samples_of_an_older_run_are_read_without_what_they_lack(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    write_samples(file, RECORDS.samples)
    older = [line.rpartition(",")[0] for line in file.read_text().splitlines()]
    assert older[0].endswith(",bystander_refused")
    file.write_text("\n".join(older) + "\n")
    assert read_samples(file) == RECORDS.samples


def test_the_switch_is_busiest_between_two_readings_that_are_not_too_close() -> None:
    counts = {60.0: 0, 75.0: 900, 80.0: 1000, 85.0: 2000, 85.01: 2100, 95.0: 2200, 130.0: 99999}
    samples = [replace(sample(time, 0, 0), received_packets=count) for time, count in counts.items()]
    assert figures(replace(RECORDS, samples=samples), (70.0, 95.0)).switch_packets_per_s == 200.0
    assert math.isnan(figures(RECORDS, (70.0, 95.0)).switch_packets_per_s)


def test_what_passed_the_switch_is_unknown_of_an_older_run(tmp_path: Path) -> None:
    (tmp_path / META).write_text("{}")
    assert switch_packets(tmp_path) is None
    (tmp_path / META).write_text('{"switch_packets": {"received": 1}}')
    assert switch_packets(tmp_path) == {"received": 1}


@pytest.mark.parametrize("late_s", [-0.01, 0.0, 0.01])
def test_a_decision_that_comes_early_or_late_is_of_the_same_interval(late_s: float) -> None:
    alarm, *rows = (decision for decision in RECORDS.rows if decision.time_s >= 60.0)
    moved = replace(RECORDS, rows=[alarm, *(replace(decision, time_s=decision.time_s + late_s) for decision in rows)])
    measured = figures(moved, (70.0, 100.0))
    assert (measured.ar_kbps, measured.limit_mean_per_s) == (pytest.approx(5.0), pytest.approx(60.0))


def test_decisions_that_come_often_count_from_the_windows_beginning_on() -> None:
    """With many decisions per interval, as in production mode, a decision counts only if it measured a time within the
    window."""
    often = [row(60.0 + second, alarm=True, ar=1000.0 * second, limit=float(second)) for second in range(41)]
    measured = figures(replace(RECORDS, rows=often), (70.0, 100.0))
    assert measured.ar_kbps == pytest.approx(sum(range(11, 41)) / 30)
    assert measured.limit_mean_per_s == pytest.approx(sum(range(10, 40)) / 30)


def test_refusals_of_the_bystander_count_from_the_onset_to_the_end() -> None:
    counts = {5.0: 1, 50.0: 2, 65.0: 4, 70.0: 5, 99.0: 7, 100.0: 8}
    samples = [replace(sample(time, 0, 0), bystander_refused=refused) for time, refused in counts.items()]
    records = replace(RECORDS, samples=samples)
    assert figures(records, records.window()).bystander_refused == 8 - 2
    assert figures(records, (5.0, 45.0)).bystander_refused == 2 - 1


def test_refusals_of_the_bystander_are_unknown_where_all_destinations_count_together() -> None:
    samples = [replace(sample(time, 0, 0), bystander_refused=None) for time in (0.0, 70.0, 100.0)]
    together = replace(RECORDS, samples=samples)
    assert math.isnan(figures(together, together.window()).bystander_refused)


def test_without_control_the_window_begins_an_interval_after_the_onset() -> None:
    assert replace(RECORDS, controls=False).window() == (55.0, 100.0)
    assert replace(RECORDS, rows=[]).window() == (55.0, 100.0)
    assert math.isnan(figures(replace(RECORDS, rows=[]), (55.0, 100.0)).detected_after_intervals)


def test_without_a_crowd_every_alarm_is_false() -> None:
    assert replace(RECORDS, crowd=False).false_alarms() == 2
    assert replace(RECORDS, crowd=False).alarm_s() is None


def test_syns_go_again_steadily_and_then_ever_later() -> None:
    retried = replace(outcome(10.0, "target", Ending.GAVE_UP), retries=7)
    assert syn_times(retried) == [10, 11, 12, 13, 14, 15, 17, 21]


def test_a_trace_is_read_up_to_its_last_whole_line() -> None:
    text = HEADER + "1.0,nan,2.0,2.0,0.0,0,nan,,normal\n2.0,5.0,2.0,2.0,0.0,1,7.5,167772260,crowd\n3.0,5."
    rows = parse_rows(text)
    assert [decision.time_s for decision in rows] == [1.0, 2.0]
    assert math.isnan(rows[0].ar_bps) and rows[1].limit_per_s == 7.5 and rows[1].hot_spot == "167772260"
    assert alarms(rows) == [2.0]
    assert measured([rows[0], rows[1], replace(rows[1], time_s=2.5), replace(rows[1], time_s=3.0, ar_bps=6.0)]) == [
        rows[0],
        rows[1],
        replace(rows[1], time_s=3.0, ar_bps=6.0),
    ]
    assert parse_rows("") == []
    assert rows[0].servers == frozenset(), "as traces were before"
    named = HEADER.strip() + ",servers\n1.0,nan,2.0,2.0,0.0,0,nan,,sick server,s2 s4\n"
    assert [decision.servers for decision in parse_rows(named)] == [{"s2", "s4"}]


def test_the_sample_at_a_time_is_the_next_one() -> None:
    assert at(RECORDS.samples, 0.1).time_s == 70.0
    assert at(RECORDS.samples, 200.0).time_s == 100.0


def test_the_bottlenecks_counts_are_read() -> None:
    text = '[{"kind": "noqueue"}, {"kind": "tbf", "bytes": 5, "packets": 6, "drops": 7, "overlimits": 8}]'
    assert parse_counts(text, "eth1") == LinkCounts(6, 5, 7)
    with pytest.raises(SetupError, match="eth1 has no token bucket filter"):
        parse_counts('[{"kind": "noqueue"}]', "eth1")


def test_false_alarm_scenarios_stay_below_the_link() -> None:
    settings = RISING_LOAD.settle(Settings())
    sizes = [
        request.size for request in target_requests(RISING_LOAD, settings) if request.time_s > settings.onset_s + 300
    ]
    seconds = settings.seconds - settings.onset_s - 300
    assert sum(sizes) * 8 / seconds + settings.bulk_bit_per_s < 0.75 * settings.link_bit_per_s
    slow = SLOW_CLIENTS.settle(Settings())
    paces = {
        (request.time_s > slow.onset_s, request.client_bytes_per_s) for request in target_requests(SLOW_CLIENTS, slow)
    }
    assert paces == {(False, 0), (True, 7000)}


def test_the_slow_server_is_as_slow_in_the_papers_scale_at_every_compression() -> None:
    capacities = {k: Settings(k=k).slow_cpus / (Settings(k=k).slow_turn_us / 1e6) / k for k in (1.0, 4.0, 8.0)}
    assert capacities == pytest.approx(dict.fromkeys(capacities, 0.4 / 0.00304))


def test_times_for_the_controller_are_compressed() -> None:
    news = HOT_SPOT.news(NETWORK.settle(Settings(k=8.0)))
    assert (news["period_s"], news["rate_window_s"], news["bucket_s"]) == (8.0, 0.125, 0.03125)


def test_what_control_costs_is_one_line_before_and_in_the_crowd() -> None:
    crowd = figures(RECORDS, RECORDS.window())
    before = replace(crowd, controller_cpu=0.02, switch_cpu=0.1, controller_mb=80.04, switch_mb=66.0)
    costs = series.overhead_row(16.0, before, replace(crowd, controller_mb=83.0, switch_mb=67.0, offered_per_s=4000.0))
    assert (costs["controller_mb_before"], costs["controller_mb_during"]) == (80.0, 83.0)
    assert (costs["switch_mb_before"], costs["switch_mb_during"]) == (66.0, 67.0)
    assert (costs["controller_cpu_before"], costs["controller_cpu_during"]) == (0.02, 0.25)
    assert (costs["switch_cpu_before"], costs["switch_cpu_during"]) == (0.1, 0.5)
    heading, line = series.overhead_table([costs]).splitlines()
    assert " ".join(heading.split()) == "T controller CPU switch CPU controller MB switch MB offered"
    assert " ".join(line.split()) == "16 s 2.0% -> 25.0% 10.0% -> 50.0% 80 -> 83 66 -> 67 4000/s"


def test_a_phase_is_one_line_in_the_papers_scale() -> None:
    phase = series.phase_row(0.5, RECORDS, 8.0)
    assert phase["first_limit_per_s"] == pytest.approx(50 / 8, abs=0.1)
    assert phase["mean_limit_per_s"] == pytest.approx(60 / 8, abs=0.1)
    assert phase["detected_after_intervals"] == pytest.approx(1.5)
    heading, line = series.phase_table([phase]).splitlines()
    assert heading.startswith("phase  alarm after  first limit")
    assert line.startswith("  0.5")
