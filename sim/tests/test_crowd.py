"""Tests of a simulated flash crowd: packets and requests are conserved, NEWS acts as in the lab, equal seeds give equal
runs."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

import pytest
from sluice.dataplane.memory import Memory
from sluice.dataplane.rates import SLOTS
from sluice.features import world_of
from sluice.switch.ledger import read_ledger
from sluice.switch.plan import Server, Service

from sim.clock import Clock
from sim.crowd import Place, simulate
from sim.crowdswitch import CrowdSwitch, Flow
from sim.dumbbell import Dumbbell, clients, places, plan, requests
from sim.lab import lab_plan, simulate_lab
from topo.plan.crowd.measures import Records, figures
from topo.plan.crowd.network import BYSTANDER, TARGET, TARGET_ADDRESS
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, NONE, PRODUCTION, SERVER, Settings
from topo.plan.outcomes import Ending
from topo.plan.requests import Request

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
    for outcome in no_control.outcomes:
        assert (outcome.ending is Ending.FINISHED) == (outcome.bytes == outcome.size)
        if outcome.done_s is not None and outcome.connect_s is not None:
            assert outcome.connect_s <= outcome.done_s
        assert (outcome.done_s is None) == (outcome.ending is Ending.PENDING)


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
    dumbbell = Dumbbell(NONE, onset_s=60.0, end_s=120.0)
    first, again = simulate(plan(dumbbell)), simulate(plan(dumbbell))
    assert first.outcomes == again.outcomes
    assert first.link[-1] == again.link[-1]


def test_other_destinations_are_asked_counted_and_left_alone() -> None:
    run = simulate(plan(Dumbbell(HOT_SPOT, period_s=10.0, onset_s=35.0, end_s=70.0, size=0.25, others=4)))
    asked = Counter(outcome.server for outcome in run.outcomes)
    assert set(asked) == {TARGET, *(f"other-{number}" for number in range(4))}
    expected = 35 * 0.25 * 70 / 4
    assert all(abs(asked[f"other-{number}"] - expected) < 5 * expected**0.5 for number in range(4))
    named = [decision.hot_spot for decision in run.decisions if decision.hot_spot is not None]
    assert named and set(named) == {TARGET_ADDRESS.packed}
    assert run.refused[TARGET] > 0 and all(run.refused[f"other-{number}"] == 0 for number in range(4))


def test_a_size_multiplies_clients_requests_and_the_link() -> None:
    small, whole = (Dumbbell(NONE, onset_s=35.0, end_s=70.0, size=size) for size in (0.25, 1.0))
    assert [clients(dumbbell) for dumbbell in (small, whole)] == [250, 1000]
    few, many = (list(requests(dumbbell)) for dumbbell in (small, whole))
    assert len(many) / len(few) == pytest.approx(4, rel=0.1)
    assert max(request.client for request in few) < 250 <= max(request.client for request in many)
    assert plan(whole).link_bit_per_s == 4 * plan(small).link_bit_per_s
    assert plan(whole).room_bytes == 4 * plan(small).room_bytes


def test_a_connections_first_syn_ack_counts_as_one_however_many_syns_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    memories: list[Memory] = []

    def keep() -> Memory:
        memories.append(Memory())
        return memories[0]

    monkeypatch.setattr("sim.crowdswitch.Memory", keep)
    settings = SERVER.settle(replace(SHORT, before=1, after=2, slow_cpus=0.3))
    crowd_plan = replace(lab_plan(SERVER, NONE, settings), link_bit_per_s=math.inf, room_bytes=math.inf)
    run = simulate(crowd_plan)
    service = world_of(crowd_plan.config).plan.service(TARGET)
    assert service is not None
    server = service.servers[0].id
    counts = asyncio.run(read_ledger(memories[0], [server]))[server]
    answered = sum(connection.connect_s is not None for connection in run.outcomes if connection.server == TARGET)
    assert (counts.synack, counts.synack_again) == (answered, 0)
    assert counts.syn > 2 * answered


@dataclass
class Listening:
    """A server that records the times of SYNs, and answers them if ``answers``."""

    clock: Clock
    answers: bool
    syn_times: list[float]

    def syn(self) -> bool:
        self.syn_times.append(self.clock.now)
        return self.answers

    def request(self, size: int, offer: Callable[[int], None], wanted: Callable[[], bool]) -> None:
        raise AssertionError("no client receives the SYN-ACKs")


@pytest.mark.parametrize(
    ("answers", "waits_s", "passed_s"),
    [
        (False, (3.0, 6.0, 12.0, 24.0), [0.0, 3.0, 9.0]),
        (False, (6.0, 6.0), [0.0, 6.0]),  # without a SYN-ACK the pin expires `pending_s` after the first SYN
        (True, (3.0, 6.0, 12.0, 70.0), [0.0, 3.0, 9.0, 21.0]),  # the pin expires `answered_s` after the last SYN-ACK
    ],
)
def test_a_syn_passes_its_limit_as_long_as_its_pin_lives(
    monkeypatch: pytest.MonkeyPatch, answers: bool, waits_s: tuple[float, ...], passed_s: list[float]
) -> None:
    syn_times: list[float] = []

    def admit_first(_: CrowdSwitch, service: Service, client: int, *, pinned: Server | None) -> Server | None:
        """Admit the first SYN, then only SYNs whose connection is pinned."""
        return pinned if syn_times else service.servers[0]

    def servers(clock: Clock) -> dict[str, list[Listening]]:
        return {TARGET: [Listening(clock, answers, syn_times)]}

    def near(_: Request) -> Place:
        return Place(0.0)

    monkeypatch.setattr(CrowdSwitch, "syn", admit_first)
    crowd_plan = plan(Dumbbell(NONE, end_s=200.0))
    assert (crowd_plan.config.connections.pending_s, crowd_plan.config.connections.answered_s) == (10.0, 60.0)
    simulate(
        replace(
            crowd_plan,
            requests=[Request(1.0, 1, TARGET, 1000)],
            servers=servers,
            place=near,
            room_bytes=0.0,
            syn_waits_s=waits_s,
        )
    )
    assert [moment - 1.0 for moment in syn_times] == passed_s


def two_requests(place: Callable[[Request], Place]) -> list[float]:
    """Return the seconds from each of two requests to the end of its answer. Client 1 of the target and client 1 of
    another destination send the requests at the same time."""
    asked = [Request(1.0, 1, TARGET, 50_000), Request(1.0, 1, "other-0", 50_000)]
    run = simulate(replace(plan(Dumbbell(NONE, others=1, end_s=60.0)), requests=asked, place=place))
    return [connection.done_s or math.inf for connection in run.outcomes]


def test_a_client_has_one_link_whatever_it_asks() -> None:
    bit_per_s = 100e3
    alone = 50_000 * 8 / bit_per_s
    assert max(two_requests(lambda _: Place(0.1, bit_per_s, 1))) > 2 * alone
    assert max(two_requests(lambda request: Place(0.1, bit_per_s, (request.server, 1)))) < 1.3 * alone


def test_each_place_names_the_client_that_owns_the_link() -> None:
    assert len({place.client for place in places(1)}) == 1000
    lab = lab_plan(NETWORK, NONE, NETWORK.settle(SHORT))
    # The clients of the crowd and those of the bystander have equal numbers, but run on different hosts and have
    # separate links.
    where = [lab.place(Request(0.0, number, server, 1000)) for number in (1, 2) for server in (TARGET, BYSTANDER)]
    assert len({place.client for place in where}) == 4


def test_the_controllers_steps_are_timed() -> None:
    run = simulate(plan(Dumbbell(HOT_SPOT, period_s=10.0, onset_s=35.0, end_s=70.0, size=0.25)))
    deciding = [step.time_s for step in run.steps if step.decides]
    assert deciding == [decision.time_s for decision in run.decisions] and len(run.steps) > len(deciding)
    assert all(step.cpu_s >= 0 for step in run.steps)


def test_only_the_responses_of_the_share_are_measured_and_it_follows_the_load() -> None:
    """Three responses per slot begin at once. The controller estimates the number of responses from the share of used
    slots, and measures a smaller share of the responses."""
    clock = Clock()
    switch = CrowdSwitch(clock, plan(Dumbbell(HOT_SPOT)).config, random.Random(1), lambda _: None)
    flows = [Flow(number) for number in range(3 * SLOTS)]

    def packets() -> None:
        for flow in flows:
            switch.response(flow, 1500)

    clock.every(1.0, packets)
    clock.run(9.0)
    assert switch.least_share <= 1 / 4
    before = switch.measured + switch.unmeasured
    packets()
    seen = switch.measured + switch.unmeasured - before
    assert seen == pytest.approx(len(flows) * switch.least_share, rel=0.1)
    switch.close()


def test_packets_of_a_response_whose_place_another_has_are_counted_as_unmeasured() -> None:
    config = plan(Dumbbell(HOT_SPOT)).config
    switch = CrowdSwitch(Clock(), config, random.Random(1), lambda _: None)
    first = Flow(1)
    same_place = next(flow for flow in map(Flow, count(2)) if flow.slot == first.slot)
    elsewhere = next(flow for flow in map(Flow, count(2)) if flow.slot != first.slot)
    for flow in (first, same_place, elsewhere, first):
        switch.response(flow, 1500)
    assert (switch.measured, switch.unmeasured) == (3, 1)
    switch.close()


def test_clients_are_where_the_paper_has_them() -> None:
    where = places(1)
    assert len(where) == 1000
    assert all(0.001 <= place.round_trip_s <= 3.6 and 21e3 <= place.bit_per_s <= 10e6 for place in where)
