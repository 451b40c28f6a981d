"""Tests of flash-crowd control in virtual time, from the switch's registers to its tables and token buckets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from configs import web
from fakeswitch import Memory
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sluice.addresses import from_text
from sluice.config.load import parse
from sluice.features import Balance, world_of
from sluice.features.balance.decisions import BEHIND_S
from sluice.features.crowd.status import as_json as news_status
from sluice.loops.commands import reconfigure
from sluice.names import RATE_FLOWS, Meter, Register, Table
from sluice.news import Cause
from sluice.news.split import widest
from sluice.replay.driver import Controlled, Driver, LiveTimes
from sluice.switch.bucket import Bucket
from sluice.views.statustext import news_lines
from virtual import FAST_BPS, Run, Switch

WEB, HOST, STRANGER = "10.0.0.100", "10.0.2.77", "10.0.2.99"
ONSET = 60.0
PRODUCTION = "{mode: production, production: {baseline_s: 20}, hosts: [{name: files, address: 10.0.2.77}]}"


def crowd(target: str, seconds: float = 60.0):
    """Return arrivals in requests/s: 30 at WEB, 10 at HOST, and a crowd of 200 more at `target`.

    The crowd begins at ONSET and lasts `seconds` seconds.
    """

    def arrivals(now: float) -> dict[str, float]:
        usual = {WEB: 30.0, HOST: 10.0}
        if ONSET <= now < ONSET + seconds:
            usual[target] = usual.get(target, 0.0) + 200.0
        return usual

    return arrivals


@pytest.mark.parametrize("target", [WEB, HOST, STRANGER])
def test_crowd_is_found_and_only_its_target_limited(target: str) -> None:
    run = Run(PRODUCTION, crowd(target)).until(ONSET + 30)
    number = run.switch.crowd.numbers[from_text(target)]
    alarms = [d.time_s for d in run.decisions if d.detection.alarm]
    assert ONSET < alarms[0] <= ONSET + 5
    limited = [d.time_s for d in run.decisions if d.limits]
    assert limited[0] <= ONSET + 8
    assert set(run.switch.crowd.general) == set(run.switch.crowd.returning) == {number}
    assert run.switch.crowd.limits.keys() == {number}
    assert run.view.frozen == (["web"] if target == WEB else []), "elsewhere it says nothing about the servers"
    last = run.decisions[-1]
    assert last.verdict.cause is Cause.CROWD
    assert last.hot_spot == from_text(target).packed
    assert last.sentence.startswith(f"Flash crowd at {run.view.name(from_text(target).packed)}: limit ")


@pytest.mark.parametrize(("mode", "frozen"), [("production", True), ("paper, period_s: 4", False)])
def test_weights_stay_in_a_crowd_where_control_freezes_them(mode: str, frozen: bool) -> None:
    """During a crowd both servers leave the same share of SYNs unanswered, so R measures only random differences.

    In production mode flash-crowd control freezes the weights for that time; in paper mode the weights change.
    """
    options = f"{{mode: {mode}, production: {{baseline_s: 20}}}}"
    run = Run(options, crowd(WEB), unanswered=lambda now: 0.15 if now >= ONSET else 0.0).until(ONSET + 40)
    crowded = [d.time_s for d in run.decisions if d.verdict.cause is Cause.CROWD]
    assert crowded and crowded[-1] - crowded[0] > 25
    assert any(d.freeze for d in run.decisions) == frozen
    moved = run.switch.touched().get(Table.CHOOSE, [])
    moved = [time for time in moved if crowded[0] < time <= crowded[-1]]
    assert bool(moved) != frozen


def test_what_is_counted_under_another_number_meanwhile_is_no_difference() -> None:
    """Two reloads within one interval remove a host and add it again with another number.

    The host's requests under its former number are not subtracted from the counter of the new number.
    """

    def options(*hosts: str) -> str:
        named = ", ".join(f"{{name: h{host[-2:]}, address: {host}}}" for host in hosts)
        return f"{{mode: paper, period_s: 4, hosts: [{named}]}}"

    others, strangers = ("10.0.2.71", "10.0.2.73"), {"10.0.2.71": 10.0, "10.0.2.73": 90.0}
    reloads = {9.0: options(others[0]), 10.0: options("10.0.2.70", others[1], others[0])}
    run = Run(options(*others), lambda now: usual(now) | strangers, reloads=reloads).until(20.5)
    before, after = run.decisions[1].target.offered, [decision.target.offered for decision in run.decisions[2:]]
    assert len(after) == 3 and max(after) < 1.2 * before


EVERY_HALF = PRODUCTION.replace("baseline_s", "detection_s: 0.5, baseline_s")


@pytest.mark.parametrize(
    "reloads",
    [{}, {6.3: PRODUCTION, 11.7: PRODUCTION}, {6.3: EVERY_HALF, 11.7: PRODUCTION}],
)
def test_ratios_are_decided_on_right_behind_the_verdict(reloads: dict[float, str]) -> None:
    """A balancing decision follows directly after flash-crowd control's decision, also after reloads.

    Both run once a second; in the last case flash-crowd control runs twice a second for a while.
    """
    run = Run(PRODUCTION, usual, unanswered=lambda _: 0.15, reloads=reloads).until(20)
    moved = run.switch.touched()[Table.CHOOSE]
    assert len([time for time in moved if time > 12]) > 3
    assert all(0 < time - max(d.time_s for d in run.decisions if d.time_s <= time) <= 1.5 * BEHIND_S for time in moved)


@pytest.mark.parametrize(
    ("at_s", "options", "expected"),
    [
        (9.3, "mode: paper, period_s: 4", [4, 8, 12, 16, 20]),
        (9.3, "mode: paper, period_s: 2", [4, 8, 11.3, 13.3, 15.3, 17.3, 19.3]),
        (9.3, "mode: paper, period_s: 4, flow_share: 0.5", [4, 8, 16, 20]),
        (9.3, "mode: static, period_s: 4", [4, 8, 16, 20]),
    ],
    ids=["the same", "shorter", "measured otherwise", "another mode"],
)
def test_a_reload_keeps_the_interval(at_s: float, options: str, expected: list[float]) -> None:
    """After a reload with the same period, decisions stay on the former time grid; a new period begins at the reload.

    If the reload changes the mode or an option of the measurement, the interval in which it occurs has no decision.
    """
    run = Run("{mode: paper, period_s: 4}", usual, reloads={at_s: f"{{{options}}}"}).until(20.5)
    assert [decision.time_s for decision in run.decisions] == pytest.approx(expected, abs=0.15)
    assert all(decision.target.offered == pytest.approx(50 * decision.seconds, rel=0.2) for decision in run.decisions)


@pytest.mark.parametrize("most", [1.0, 0.25])
def test_the_share_that_is_measured_follows_the_load(most: float, caplog: pytest.LogCaptureFixture) -> None:
    """Before ONSET there are three responses at a time for each slot of the rate registers.

    So the controller reduces the share of responses that the switch measures. From ONSET there are 200 responses in
    all, and the share rises to its configured maximum (`most`) again.
    """
    caplog.set_level(logging.INFO, "sluice.news")
    options = f"{{mode: production, flow_share: {most}, production: {{baseline_s: 20}}}}"
    switch = Switch()

    def arrivals(now: float) -> dict[str, float]:
        switch.live = 3 * RATE_FLOWS if now < ONSET else 200
        return usual(now)

    run = Run(options, arrivals, response=lambda now: FAST_BPS, switch=switch)
    assert run.view.flow_share == most
    run.until(2.5 * ONSET)
    assert run.view.flow_share == switch.crowd.flow_share == news_status(run.view)["flow_share"] == most
    assert min(crowd.flow_share for crowd in switch.writes) <= 1 / 8
    written = switch.touched()[Table.RATE_SETTINGS]
    assert written[0] < 7 and written[-1] < 1.8 * ONSET
    before = [decision.measurement for decision in run.decisions if ONSET - 5 < decision.time_s < ONSET]
    assert all(RATE_FLOWS / 10 < measurement.flows < RATE_FLOWS / 2.5 for measurement in before), "in four intervals"
    assert all(measurement.ar == pytest.approx(FAST_BPS, rel=0.12) for measurement in before)
    assert "another share of responses is measured" in caplog.messages


def test_a_reload_changes_how_many_responses_are_measured_at_most() -> None:
    view = Run("{mode: production, flow_share: 0.25}", usual).view
    view.configure(replace(view.config, flow_share=0.5), world_of(parse(web())).plan)
    assert view.flow_share == 0.5


API = "10.0.0.101"
TWO_SERVICES = """\
- name: api
  address: 10.0.0.101
  port: 80
  balance: {mode: paper, period_s: 1, window_s: 4}
  servers: [{name: s3, address: 10.0.2.3, port: 80}, {name: s4, address: 10.0.3.3, port: 80}]"""


def two_services(end_s: float, *, at: str = WEB, silent: dict[int, float] | None = None) -> Run:
    """Run a crowd at the service `at`; the servers of both services leave 15 % of the SYNs unanswered, at random.

    `silent`: for each server that fails, by number, the time from which it leaves 90 % unanswered.
    """

    def arrivals(now: float) -> dict[str, float]:
        return {WEB: 30.0, API: 30.0} | ({at: 230.0} if now >= ONSET else {})

    options = "{mode: production, production: {baseline_s: 20}}"
    run = Run(options, arrivals, 80.0, None, lambda now: 0.15, silent or {}, services=TWO_SERVICES)
    return run.until(end_s)


@pytest.mark.parametrize(("at", "frozen", "free"), [(WEB, "web", "api"), (API, "api", "web")])
def test_a_crowd_at_one_service_holds_that_ones_weights_only(at: str, frozen: str, free: str) -> None:
    early, late = two_services(ONSET + 15, at=at), two_services(ONSET + 35, at=at)
    moved = {
        name: late.world[Balance].views[number].weight_changes - early.world[Balance].views[number].weight_changes
        for number, name in ((1, "web"), (2, "api"))
    }
    assert late.view.frozen == [frozen] and said(late).endswith(f"; the weights of {frozen} are frozen.")
    assert moved[frozen] == 0
    assert moved[free] > 5


def test_a_sick_server_of_one_service_is_not_the_other_ones() -> None:
    run = two_services(ONSET + 30, silent={4: ONSET - 20})
    crowded = run.decisions[-1]
    assert {number: verdict.cause for number, verdict in crowded.verdicts.items()} == {1: Cause.CROWD, 2: Cause.SICK}
    assert run.view.freezes(1), "the other service's server must not set it free"
    assert not run.view.freezes(2), "R relieves the server"
    assert crowded.sentence.endswith("; s4 answers worse than the others; the weights of web are frozen.")
    weights = run.world[Balance].views[2].balancer.weights()
    assert weights[4] < weights[3] / 2


def usual(now: float) -> dict[str, float]:
    return {WEB: 40.0, HOST: 10.0}


def never(now: float) -> float:
    return 0.0


def said(run: Run) -> str:
    """Return the sentence about flash-crowd control in the output of `sluice status`."""
    status = news_status(run.view)
    _, head, sentence, *_ = news_lines(status)
    assert head == f"flash crowds  mode {run.view.config.mode}"
    assert sentence.strip() == status["sentence"]
    return str(status["sentence"])


def test_a_server_that_falls_silent_is_said_and_nothing_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sluice.news")
    run = Run(PRODUCTION, usual, unanswered=never, silent={2: ONSET})
    run.until(ONSET - 1)
    assert said(run).startswith("Normal: ")
    sick = Run(PRODUCTION, usual, unanswered=never, silent={2: ONSET}).until(ONSET + 8)
    name = sick.view.server_name(2)
    expected = f"Sick server: {name} leaves connection requests unanswered; there is no crowd."
    assert said(sick) == expected
    assert expected in caplog.messages
    assert not sick.switch.crowd.limits
    assert not sick.view.freeze, "R relieves the server"


def test_a_flood_is_said_and_the_weights_stay(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sluice.news")

    def arrivals(now: float) -> dict[str, float]:
        return {WEB: 300.0 if now >= ONSET else 40.0, HOST: 10.0}

    def as_ever(now: float) -> float:
        return FAST_BPS

    run = Run(PRODUCTION, arrivals, response=as_ever, unanswered=never, spoofed_s=ONSET).until(ONSET + 8)
    assert said(run).startswith("Flood of connection requests, 3")
    assert said(run).endswith("; the weights are frozen.")
    assert any(message.startswith("Flood of connection requests") for message in caplog.messages)
    moved = run.switch.touched().get(Table.CHOOSE, [])
    flooded = next(d.time_s for d in run.decisions if d.verdict.cause is Cause.FLOOD)
    assert ONSET < flooded < ONSET + 5
    assert not [time for time in moved if time > flooded]


@pytest.mark.parametrize(
    ("before", "alarmed", "after"),
    [("production", ONSET + 8, "paper"), ("paper, period_s: 10", ONSET + 30, "production")],
)
def test_reload_into_another_mode_ends_what_the_former_one_froze_and_sampled(
    before: str, alarmed: float, after: str
) -> None:
    mode = "mode: production,"
    run = Run(PRODUCTION.replace(mode, f"mode: {before},"), crowd(WEB)).until(alarmed)
    former = run.view.wanted()
    assert run.view.freezes(1) is (before == "production")
    assert former.sample_share > 0 and former.limits
    news = PRODUCTION.replace(mode, f"mode: {after},")
    reconfigure(run.world, parse(web(more=f"news: {news}", period_s=1, window_s=4)), alarmed)
    assert not run.view.freezes(1) and not run.view.freeze
    assert run.view.wanted().sample_share == 0
    assert run.view.wanted().limits == former.limits


def test_limit_goes_with_the_crowd_and_takes_its_entry_along() -> None:
    run = Run(PRODUCTION, crowd(STRANGER)).until(ONSET + 120)
    assert any(crowd.limits for crowd in run.switch.writes)
    assert not run.switch.crowd.limits
    assert not run.switch.crowd.general
    assert set(run.switch.crowd.numbers) == {from_text(WEB), from_text(HOST)}
    assert run.switch.crowd.sample_share == 0
    assert run.decisions[-1].verdict.cause is Cause.NORMAL


def test_paper_mode_keeps_the_limit_and_remembers_no_client() -> None:
    options = "{mode: paper, period_s: 10, poll_s: 2, hosts: [{name: files, address: 10.0.2.77}]}"
    run = Run(options, crowd(HOST)).until(ONSET + 150)
    assert run.switch.crowd.limits.keys() == {run.switch.crowd.numbers[from_text(HOST)]}
    assert not run.switch.crowd.returning
    assert not run.view.freeze
    first = next(d for d in run.decisions if d.limits)
    alarm = next(d for d in run.decisions if d.detection.alarm)
    assert first.time_s - alarm.time_s <= 10, "samples between two observations name the hot spot"


def test_without_identification_all_destinations_share_one_bucket() -> None:
    options = "{mode: paper, identify: false, period_s: 10, hosts: [{name: files, address: 10.0.2.77}]}"
    run = Run(options, crowd(WEB)).until(ONSET + 40)
    assert set(run.switch.crowd.numbers.values()) == {1}
    assert run.switch.crowd.general.keys() == {1}
    assert run.switch.crowd.sample_share == 0
    assert {run.view.name(destination) for destination in run.view.requests} == {
        "unlisted destinations",
        "every destination",
    }


OWN = "{name: files, address: 10.0.2.77, limit: {rate_per_s: 20, burst: 5}}"


@pytest.mark.parametrize("mode", ["paper, period_s: 10", "production, production: {baseline_s: 20}"])
def test_without_identification_a_hosts_own_limit_is_for_that_host_alone(mode: str) -> None:
    options = f"{{mode: {mode}, identify: false, hosts: [{OWN}]}}"
    run = Run(options, crowd(WEB)).until(ONSET)
    assert run.switch.crowd.numbers == {from_text(WEB): 1, from_text(HOST): 2}
    assert run.switch.crowd.general == {2: Bucket(20, 5)}
    run = Run(options, crowd(WEB)).until(ONSET + 40)
    assert run.switch.crowd.limits.keys() == {1}
    assert run.switch.crowd.general[2] == Bucket(20, 5)
    assert run.switch.crowd.general[1].rate > 20


def test_hosts_own_limit_is_never_exceeded() -> None:
    options = (
        "{mode: production, production: {baseline_s: 20},"
        " hosts: [{name: files, address: 10.0.2.77, limit: {rate_per_s: 20, burst: 5}}]}"
    )
    run = Run(options, crowd(HOST)).until(ONSET + 30)
    number = run.switch.crowd.numbers[from_text(HOST)]
    assert all(crowd.general[number].rate <= 20 and not crowd.returning for crowd in run.switch.writes)


def test_writes_only_what_changes() -> None:
    run = Run(PRODUCTION, crowd(WEB)).until(ONSET)
    assert len(run.switch.writes) == 1, "the beginning"
    assert len(run.decisions) >= ONSET - 2
    run = Run(PRODUCTION, crowd(WEB, 200)).until(ONSET + 200)
    assert len(run.switch.writes) < 200


FOR_NEW_CONNECTIONS = {Table.DESTINATIONS, Table.SAMPLING, Meter.DESTINATION_LIMIT, Meter.RETURNING_LIMIT}
"""Tables and meters that affect only new connections.

The switch applies the table of destinations to SYNs; the table of sampling changes no packet.
"""


@settings(max_examples=20, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 400), st.floats(0, 2 * FAST_BPS)), min_size=6, max_size=8
    ),
    mode=st.sampled_from(["paper, period_s: 3", "production", "static, period_s: 3"]),
    identify=st.booleans(),
)
def test_whatever_is_observed_limits_are_within_bounds_and_only_new_connections_are_limited(
    steps: list[tuple[int, int, float]], mode: str, identify: bool
) -> None:
    def now(time: float) -> tuple[int, int, float]:
        return steps[min(int(time / 5), len(steps) - 1)]

    run = Run(
        f"{{mode: {mode}, identify: {str(identify).lower()}, limit_min: 5, limit_max: 150}}",
        lambda t: {WEB: now(t)[0], HOST: now(t)[1]},
        response=lambda t: now(t)[2],
    )
    run.until(5 * len(steps))
    for written in run.switch.writes:
        assert all(5 <= limit <= 150 for limit in written.limits.values())
        assert written.general.keys() == written.limits.keys()
        assert not (mode.startswith("static") and written.limits)
        for number, limit in written.limits.items():
            second = written.returning.get(number)
            assert 1 <= written.general[number].rate <= limit + 1
            # Both rates are rounded to integers, which adds at most 0.5 to the first. The second is at least 1, also if
            # it should be a twentieth of the least limit (5), which adds 0.75.
            rounding = 0.5 + 0.75 * bool(second)
            both = written.general[number].rate + (second.rate if second else 0)
            assert both <= (widest(0.5) if second else 1) * limit + rounding
            assert both <= widest(0.5) * 150 + rounding
    assert run.switch.touched().keys() <= FOR_NEW_CONNECTIONS
    assert run.switch.established() == run.established


def test_slow_readings_do_not_stretch_the_intervals() -> None:
    class Slow(Memory):
        async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
            await asyncio.sleep(0.3)
            return await super().arrays(registers)

    run = Run("{mode: paper, period_s: 5, poll_s: 0.2}", lambda _: {WEB: 30.0}, switch=Switch(registers=Slow()))
    times = [decision.time_s for decision in run.until(62).decisions]
    assert len(times) == 12
    assert all(5 * i <= time <= 5 * i + 0.7 for i, time in enumerate(times, 1))


def test_an_interval_whose_reading_is_late_decides_nothing_and_has_none_right_behind_it() -> None:
    class Stalling(Memory):
        stalled = False

        async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
            if asyncio.get_running_loop().time() >= 20 and not self.stalled:
                self.stalled = True
                await asyncio.sleep(1.7 * 5)
            return await super().arrays(registers)

    options = "{mode: paper, period_s: 5, poll_s: 1}"
    run = Run(options, lambda _: {WEB: 30.0}, switch=Switch(registers=Stalling())).until(46)
    times = [decision.time_s for decision in run.decisions]
    assert times == pytest.approx([5, 10, 15, 35, 40, 45])
    world = world_of(parse(web(more=f"news: {options}")))
    driver, replayed = Driver(world, Memory(), 0.0, live=LiveTimes(news=times)), list[float]()
    while driver.due < 46:
        events = driver.step(driver.due)
        replayed += [event.decision.time_s for event in events if isinstance(event, Controlled)]
    driver.close()
    assert replayed == pytest.approx(times)


def test_samples_are_read_while_sampling_only() -> None:
    read_at: list[float] = []

    class Timed(Memory):
        async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
            if register is Register.SAMPLE_NEXT:
                read_at.append(asyncio.get_running_loop().time())
            return await super().read(register, indices)

    run = Run(PRODUCTION, crowd(WEB), switch=Switch(registers=Timed())).until(ONSET + 30)
    alarm = next(d.time_s for d in run.decisions if d.detection.alarm)
    assert [moment for moment in read_at if moment < alarm] == [0], "the base"
    assert len(read_at) > 2
    assert run.decisions[-1].hot_spot == from_text(WEB).packed
