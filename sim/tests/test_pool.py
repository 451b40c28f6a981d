"""Tests of a simulated pool: no connection is lost or counted twice, R acts as in the lab, and equal seeds give equal
runs."""

from __future__ import annotations

import ctypes
import math
import random
import statistics
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise

import pytest
from sluice.balance import BalanceOptions, Member, Mode

from sim.arrivals import httperf, uniform
from sim.balancing import BalancingSwitch, Pin
from sim.clock import Clock
from sim.leastconnections import LeastConnections
from sim.pool import PoolPlan, PoolRun, ServerPlan, Simulation, simulate
from sim.secondlook import SecondLook, TwoLooks

HEALTHY = ServerPlan(work_s=0.7e-3)
LOADED = replace(HEALTHY, others=24)
FIXED = BalanceOptions(mode=Mode.FIXED, period_s=1.0, window_s=10.0)
PAPER = replace(FIXED, mode=Mode.PAPER)


def connect_ms(run: PoolRun) -> float:
    return 1000 * statistics.fmean(
        connection.connect_s for connection in run.connections if connection.connect_s is not None
    )


def done_ms(run: PoolRun) -> float:
    return 1000 * statistics.fmean(connection.done_s for connection in run.connections if connection.done_s is not None)


def test_what_was_sent_was_counted() -> None:
    run = simulate(PoolPlan([HEALTHY, HEALTHY, LOADED], PAPER, 170.0, 30.0))
    syns = sum(connection.syns for connection in run.connections)
    assert sum(counts.syn for counts in run.counts.values()) == syns
    assert [server.counts.syn for server in run.servers] == [run.counts[i].syn for i in range(3)]
    dropped = sum(server.counts.syn_dropped for server in run.servers)
    assert sum(counts.synack for counts in run.counts.values()) == syns - dropped
    answered = sum(connection.connect_s is not None for connection in run.connections)
    assert answered == syns - dropped
    for server in run.servers:
        assert 0 <= server.counts.accepted - server.counts.served - server.waiting <= HEALTHY.workers


def test_r_relieves_the_loaded_server() -> None:
    equal = simulate(PoolPlan([HEALTHY, HEALTHY, LOADED], FIXED, 170.0, 50.0))
    by_r = simulate(PoolPlan([HEALTHY, HEALTHY, LOADED], PAPER, 170.0, 70.0))
    assert connect_ms(equal) > 100
    assert connect_ms(by_r) < connect_ms(equal) / 4
    ratios = by_r.decisions[0][-1].ratios
    assert ratios[2] < 0.1
    assert sum(ratios.values()) == pytest.approx(1)
    assert equal.weight_changes == 0


def test_a_loaded_servers_answers_come_in_bursts() -> None:
    run = simulate(PoolPlan([HEALTHY, HEALTHY, LOADED], FIXED, 170.0, 60.0))
    answers = [decision.differences[2].synack for decision in run.decisions[0][15:]]
    # The server is always busy. Without the CPU limit's periods it would answer almost equally often in each second.
    assert statistics.pstdev(answers) > math.sqrt(statistics.fmean(answers))


def test_the_same_seed_is_the_same_run() -> None:
    plan = PoolPlan([HEALTHY, LOADED], PAPER, 120.0, 10.0)
    first, again, other = simulate(plan), simulate(plan), simulate(replace(plan, seed=2))
    assert first.connections == again.connections
    assert [d.ratios for d in first.decisions[0]] == [d.ratios for d in again.decisions[0]]
    assert first.connections != other.connections


def test_switches_that_share_a_pool_decide_each_by_itself() -> None:
    run = simulate(PoolPlan([HEALTHY, HEALTHY, LOADED], PAPER, 170.0, 60.0, switches=3))
    assert len(run.decisions) == 3
    assert all(decisions[-1].ratios[2] < 0.25 for decisions in run.decisions)
    windows = [sum(counts.syn for counts in decisions[-1].windows.values()) for decisions in run.decisions]
    assert all(window > 300 for window in windows)


def test_a_server_that_dies_is_ejected_in_production_mode() -> None:
    def kill(simulation: Simulation) -> None:
        simulation.servers[1].alive = False

    options = replace(PAPER, mode=Mode.PRODUCTION)
    run = simulate(PoolPlan([HEALTHY] * 4, options, 150.0, 40.0, events={10.0: kill}))
    assert 1 in run.decisions[0][-1].ejected
    assert run.decisions[0][-1].ratios[1] < 0.02
    late = [connection for connection in run.connections if 15 < connection.begun_s < 35]
    assert sum(connection.connect_s is not None for connection in late) > 0.98 * len(late)


@pytest.mark.parametrize("second_look", [SecondLook, TwoLooks])
def test_a_server_that_refuses_gets_no_more_than_its_share_until_it_is_ejected(second_look: type[SecondLook]) -> None:
    """The server's process ends, and its host answers SYNs by RSTs. Although the server has no open connections, it
    receives no more than its share."""

    def end_process(simulation: Simulation) -> None:
        simulation.servers[1].refuses = True

    options = replace(PAPER, mode=Mode.PRODUCTION, period_s=10.0, window_s=200.0)
    died_s, ejected_s = 12.0, 20.0
    plan = PoolPlan(
        [HEALTHY] * 4, options, 60.0, 40.0, page_way_s=1.0, second_look=second_look, events={died_s: end_process}
    )
    run = simulate(plan)
    assert run.decisions[0][-1].ejected == {1}
    meanwhile = [connection for connection in run.connections if died_s < connection.begun_s < ejected_s]
    refused = sum(connection.connect_s is None for connection in meanwhile)
    assert 0 < refused <= len(meanwhile) / 4 + 2


def test_the_second_look_keeps_connections_off_a_loaded_server() -> None:
    def run(second_look: type[SecondLook] | None) -> PoolRun:
        servers = [replace(server, work_s=0.3e-3) for server in (HEALTHY, HEALTHY, LOADED)]
        return simulate(PoolPlan(servers, FIXED, 120.0, 50.0, second_look=second_look))

    without, looking = run(None), run(SecondLook)
    assert connect_ms(without) > 20
    assert connect_ms(looking) < connect_ms(without) / 4


def test_a_pages_way_is_in_the_transfer_only() -> None:
    plan = PoolPlan([HEALTHY], FIXED, 20.0, 10.0)
    near, far = simulate(plan), simulate(replace(plan, page_way_s=0.05))
    assert done_ms(far) == pytest.approx(done_ms(near) + 50)
    assert connect_ms(far) == connect_ms(near)


def test_least_connections_compares_all_servers() -> None:
    servers = [ServerPlan(cpus=cpus, work_s=2e-3) for cpus in (0.05, 0.05, 0.05, 0.05, 0.2)]
    plan = PoolPlan(servers, replace(PAPER, mode=Mode.PRODUCTION), 180.0, 30.0, second_look=LeastConnections)
    of_all, of_two, of_four = (
        simulate(replace(plan, second_look=second_look)) for second_look in (LeastConnections, TwoLooks, SecondLook)
    )
    assert done_ms(of_all) < done_ms(of_two)
    assert done_ms(of_four) < done_ms(of_all), "who knows weights needs to see fewer"
    assert of_all.servers[-1].counts.served > 2 * of_all.servers[0].counts.served


def test_open_connections_are_those_that_have_not_ended() -> None:
    plan = PoolPlan([HEALTHY, HEALTHY, LOADED], FIXED, 120.0, 60.0, second_look=SecondLook)
    simulation = Simulation(plan)
    simulation.clock.after(30.0, simulation.load, 0.0)
    simulation.run()
    # All connections have ended, and the sweep has removed the connections whose end the switch did not see.
    simulation.clock.run(125.0)
    assert set(simulation.switches[0].open_now().values()) == {0}


def test_a_connection_is_open_until_its_page_has_passed() -> None:
    open_now: dict[float, int] = {}

    def note(simulation: Simulation) -> None:
        open_now[simulation.clock.now] = sum(simulation.switches[0].open_now().values())

    def one(_: float) -> Iterator[float]:
        return iter((0.1, math.inf))

    events = dict.fromkeys((0.05, 0.5, 1.5), note)
    simulate(PoolPlan([HEALTHY], FIXED, 1.0, 2.0, second_look=SecondLook, page_way_s=1.0, arrivals=one, events=events))
    assert open_now == {0.05: 0, 0.5: 1, 1.5: 0}


def test_a_syn_sent_again_leaves_its_pin_the_time_that_it_had() -> None:
    clock = Clock()
    switch = BalancingSwitch(clock, random.Random(1), [Member(0), Member(1)], FIXED, second_look=SecondLook)
    pin = Pin()
    for moment in (48.0, 55.0):
        clock.run(moment)
        switch.syn(pin)
    assert sum(switch.open_now().values()) == 1
    switch.end(pin, seen=False)
    # The first SYN, at 48 s, sets the pin's expiry to 58 s, and its retransmission does not extend it. So the sweep at
    # 60 s removes the connection.
    clock.run(61.0)
    assert sum(switch.open_now().values()) == 0


def test_arrivals_are_those_that_httperf_draws() -> None:
    # The expected values are those of libc's erand48, and the times that `httperf -v -v -v --client=0/1
    # --period=e0.008333` and `--client=1/2` print.
    erand48 = ctypes.CDLL(None).erand48
    erand48.restype = ctypes.c_double
    state = (ctypes.c_ushort * 3)(0x1234, 0x5678, 0x6543)
    assert list(islice(uniform(0), 100)) == [erand48(state) for _ in range(100)]
    moments = list(islice(httperf(1 / 0.008333), 6))
    assert [round(after - before, 4) for before, after in pairwise(moments)] == [0.0138, 0.0027, 0.0008, 0.0047, 0.0085]
    second = [-0.008333 * math.log(1 - sample) for sample in islice(uniform(1), 5)]
    assert [round(gap_s, 4) for gap_s in second] == [0.0149, 0.0035, 0.0018, 0.0047, 0.0029]
    both = list(islice(httperf(240.0, processes=2), 1000))
    assert both == sorted(both) and both[:2] == [0.0, 0.0] and both[-1] == pytest.approx(1000 / 240, rel=0.1)


def test_each_load_begins_httperfs_arrivals_anew() -> None:
    def anew(simulation: Simulation) -> None:
        simulation.load(40.0)

    def begun(seed: int) -> list[float]:
        plan = PoolPlan([ServerPlan()], BalanceOptions(), 40.0, 4.0, arrivals=httperf, seed=seed)
        return [connection.begun_s for connection in simulate(replace(plan, events={2.0: anew})).connections]

    times = begun(1)
    first = [time_s for time_s in times if time_s < 2.0]
    again = [time_s - 2.0 for time_s in times if time_s >= 2.0]
    assert times == begun(2), "another seed has the same"
    assert again[: len(first)] == pytest.approx(first)


def test_of_equal_servers_the_one_that_rested_longest_is_the_next() -> None:
    proxy = LeastConnections(Clock(), dict.fromkeys((1, 2, 3), 85))
    source = random.Random(1)
    assert [proxy.choose(source) for _ in range(4)] == [1, 2, 3, 1]
    proxy.closed(3)
    proxy.closed(2)
    assert [proxy.choose(source) for _ in range(3)] == [3, 2, 3], "fewest first; 3 was left before 2"
