"""Tests of components of the simulation (links, CPUs, buckets, SYN timers, TCP) against values computed by hand."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable

import pytest
from sluice.dataplane.draws import Group
from sluice.tokenbucket import TokenBucket

from sim import syn
from sim.admission import Admission
from sim.answers import BLOCK_BYTES, SlowServer
from sim.clock import Clock
from sim.cpu import PERIOD_S, SLICE_S, TICK_S, Cpu, Task
from sim.cputime import timed
from sim.link import Link
from sim.server import Handshake, WebServer
from sim.tcp import HEADERS, MSS, Sender, TcpPlan


def test_calls_come_in_the_order_of_time_and_then_of_making() -> None:
    clock, seen = Clock(), list[str]()
    clock.after(2.0, seen.append, "late")
    clock.after(1.0, seen.append, "first")
    clock.after(1.0, seen.append, "second")
    clock.run(3.0)
    assert seen == ["first", "second", "late"]
    with pytest.raises(ValueError, match="past"):
        clock.after(-1.0, seen.append, "never")


def test_a_link_queues_and_drops() -> None:
    link = Link(8000.0, room_bytes=2000)  # 1,000 bytes/s
    assert link.send(0.0, 1000) == 1.0
    assert link.send(0.0, 1000) == 2.0
    assert link.send(0.0, 1) is None  # the queue is full: 2,000 bytes
    assert link.send(1.0, 1000) == 3.0  # one packet has left
    assert link.send(10.0, 1000) == 11.0
    assert (link.counts.sent, link.counts.sent_bytes, link.counts.dropped) == (4, 4000, 1)


def test_a_link_conserves_packets() -> None:
    link = Link(1e6, room_bytes=10_000)
    arrived = sum(link.send(n * 0.005, 1000) is not None for n in range(4000))
    assert (arrived, link.counts.dropped) == (link.counts.sent, 4000 - link.counts.sent)
    assert link.counts.dropped == pytest.approx(1500, rel=0.1)  # for 20 s, 200 packets/s; the link sends 125 per second


def test_syn_timers() -> None:
    assert syn.linear() == (1, 1, 1, 1, 1, 2)
    assert syn.exponential(3.0, 4) == (3, 6, 12, 24)


def test_a_second_is_waited_for_in_steps_of_the_timer_wheel() -> None:
    first = syn.on_wheel(0.1, 1.0)
    assert first == pytest.approx(1.12)
    assert syn.on_wheel(first, 1.0) - first == pytest.approx(1.024)
    assert syn.on_wheel(0.0, 0.2) == pytest.approx(0.204)
    assert syn.on_wheel(0.0, 4.0) == pytest.approx(4.096)


def finishing(clock: Clock) -> tuple[list[tuple[str, float]], Callable[[str], Callable[[], None]]]:
    ends: list[tuple[str, float]] = []
    return ends, lambda name: lambda: ends.append((name, round(clock.now, 9)))


def test_a_quota_is_spent_at_full_speed_and_overdrawn_until_a_tick() -> None:
    clock = Clock()
    ends, end = finishing(clock)
    cpu = Cpu(clock, 0.1)
    cpu.add(Task(), 0.006, end("first"))
    clock.run(0.05)
    assert ends == [("first", 0.006)]
    cpu.add(Task(), 0.003, end("second"))
    cpu.add(Task(), 0.009, end("third"))
    clock.run(1.0)
    # The second task runs until the tick at 52 ms. The third task uses the rest of the quota and, until the tick at 56
    # ms, 2 ms of the next quota. After the next grant the second task runs before the third.
    assert ends[1:] == [("second", pytest.approx(0.101)), ("third", pytest.approx(0.106))]


def test_a_task_that_never_sleeps_gets_its_share_and_all_tasks_no_more_than_the_quota() -> None:
    clock = Clock()
    cpu, worker = Cpu(clock, 0.1, 4), Task()
    served = [0]

    def again() -> None:
        served[0] += 1
        cpu.add(worker, 1.1e-3, again)

    again()
    clock.run(100.0)
    assert served[0] * 1.1e-3 == pytest.approx(10.0 / 5, rel=0.05)
    assert cpu.others == 4
    cpu.others = 0
    before = served[0]
    clock.run(200.0)
    assert (served[0] - before) * 1.1e-3 == pytest.approx(10.0, rel=0.02)


def test_a_task_with_another_job_continues_in_its_turn_until_the_turn_ends() -> None:
    clock = Clock()
    ends, end = finishing(clock)
    cpu, worker = Cpu(clock, 1.0, 1), Task()
    cpu.add(worker, 1e-3, lambda: cpu.add(worker, 1e-3, lambda: cpu.add(worker, 3e-3, end("third job"))))
    clock.run(PERIOD_S)
    # The task that never sleeps runs first, and again after the worker has run for a whole tick.
    assert ends == [("third job", pytest.approx(3 * TICK_S + 1e-3))]


@pytest.mark.parametrize(("wakes_s", "runs_s"), [(0.9 * SLICE_S, TICK_S), (1.1 * SLICE_S, 1.1 * SLICE_S)])
def test_a_task_that_wakes_preempts_no_task_before_its_slice_is_used_up(wakes_s: float, runs_s: float) -> None:
    clock = Clock()
    ends, end = finishing(clock)
    cpu = Cpu(clock, 1.0, 1)
    clock.after(wakes_s, cpu.add, Task(), 1e-4, end("woken"))
    clock.run(PERIOD_S)
    assert ends == [("woken", pytest.approx(runs_s + 1e-4))]


def test_a_task_that_took_more_than_its_share_waits_for_the_others_after_its_sleep() -> None:
    def waited(worked_s: float) -> float:
        clock = Clock()
        ends, end = finishing(clock)
        cpu, worker = Cpu(clock, 1.0, 20), Task()
        cpu.add(worker, worked_s, lambda: clock.after(1e-4, cpu.add, worker, 1e-4, end("again")))
        clock.run(1.0)
        return ends[0][1]

    assert waited(4 * TICK_S) > waited(1e-4) + 20 * SLICE_S


def test_a_task_that_wakes_while_throttled_runs_after_all_others() -> None:
    def ended(wakes_s: float) -> float:
        clock = Clock()
        ends, end = finishing(clock)
        cpu, worker = Cpu(clock, 0.1, 10), Task()
        cpu.add(worker, 1e-4, end("first"))
        clock.after(wakes_s, cpu.add, worker, 1e-4, end("woken"))
        clock.run(3.0)
        assert ends[0][1] < 0.5
        return ends[1][1]

    # If quota is left when the task wakes, its lag lets it run at the next tick. While the group is throttled, lag does
    # not count, and ten tasks run first.
    assert ended(0.501) <= 0.501 + TICK_S
    assert ended(0.55) > 0.55 + 3 * PERIOD_S


def test_every_server_is_granted_its_quota_at_a_time_of_its_own() -> None:
    def waited(seed: int) -> float:
        clock = Clock()
        server = WebServer(clock, workers=1, backlog=5, cpus=0.0125, seed=seed)
        ends, end = finishing(clock)
        server.ack(Handshake(2e-3, end("answered")), lambda: None, lambda: True)
        clock.run(1.0)
        return dict(ends)["answered"]

    times = [waited(seed) for seed in range(20)]
    # Either the answer ends before the first tick after the quota is used up, or its remaining work waits for the next
    # grant of quota.
    at_once = [time_s for time_s in times if time_s == pytest.approx(2e-3)]
    assert 5 < len(at_once) < 19
    late = [round(time_s, 4) for time_s in times if time_s > 3e-3]
    assert len(at_once) + len(set(late)) == 20


def test_a_worker_that_waits_for_its_client_to_close_needs_another_turn() -> None:
    def served(others: int) -> int:
        clock = Clock()
        server = WebServer(clock, workers=1, backlog=1000, cpus=0.1, others=others)
        for _ in range(900):
            server.ack(Handshake(0.2e-3, lambda: None), lambda: None, lambda: True)
        clock.run(10.0)
        return server.counts.served

    # Alone, the worker waits only for the client to close. Beside 24 tasks that never sleep, the worker also waits for
    # the CPU, before each page and after each close.
    assert served(0) == 900
    assert 10 < served(24) < 100


def test_a_full_accept_queue_drops_syns_and_ignores_acks() -> None:
    clock = Clock()
    server = WebServer(clock, workers=1, backlog=1, cpus=1.0)
    done: list[float] = []
    again: list[float] = []
    assert all(server.syn() for _ in range(4))
    for _ in range(4):
        handshake = Handshake(2.0, lambda: done.append(clock.now))
        server.ack(handshake, lambda: again.append(clock.now), lambda: True)
    # One connection is served, two wait (backlog + 1); the server ignored the ACK of the fourth connection.
    assert (server.waiting, server.full, server.syn()) == (2, True, False)
    clock.run(1.5)
    assert again == [1.0]
    clock.run(20.0)
    assert done == pytest.approx([2.0, 4.0, 6.0, 8.0], abs=0.05)  # includes the wait for clients to close
    assert server.counts.served == server.counts.accepted == 4


def test_a_server_that_is_killed_answers_nothing_more() -> None:
    clock = Clock()
    server = WebServer(clock, workers=2, backlog=10, cpus=1.0)
    done: list[float] = []

    def ask() -> None:
        server.ack(Handshake(0.1, lambda: done.append(clock.now)), lambda: None, lambda: True)

    for _ in range(6):
        ask()
    clock.run(0.35)
    killed = list(done)
    assert 0 < len(killed) < 6 and server.waiting > 0
    server.alive = False
    clock.run(30.0)
    assert (done, server.counts.served, server.waiting) == (killed, len(killed), 0)
    server.alive = True  # the restarted server has all of its workers
    for _ in range(2):
        ask()
    clock.run(60.0)
    assert len(done) == len(killed) + 2


def test_weights_are_shares() -> None:
    source = random.Random(1)
    drawn = [Group({1: 3, 2: 0, 3: 1}).at(source.randrange(4)) for _ in range(4000)]
    assert set(drawn) == {1, 3}
    assert drawn.count(1) == pytest.approx(3000, rel=0.05)
    with pytest.raises(ValueError, match="positive"):
        Group({1: 0})


def test_a_bucket_is_full_when_set_and_refills() -> None:
    bucket = TokenBucket(0.0, 2.0, 3.0)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(1.0) for _ in range(3)] == [True, True, False]


def test_admission_counts_every_request_admits_connections_and_remembers_clients() -> None:
    admission = Admission(remember_s=30.0)
    admission.set(0.0, (1.0, 1.0), (1.0, 1.0))
    assert admission.request(0.0, client=1)
    assert not admission.request(0.0, client=2)
    assert admission.request(0.0, client=1)  # admitted by the bucket of returning clients
    assert not admission.request(0.0, client=1)
    assert admission.request(0.0, client=3, pinned=True)
    assert (admission.offered, admission.admitted, admission.refused, admission.returning) == (5, 2, 2, 1)


def test_a_known_client_is_remembered_from_its_last_syn_on() -> None:
    admission = Admission(remember_s=30.0)
    admission.set(0.0, (1e-3, 1.0), (1.0, 1.0))  # common bucket: a single SYN; returning clients: one per second
    assert [admission.request(moment, client=1) for moment in (0.0, 20.0, 40.0, 60.0)] == [True] * 4
    assert admission.request(70.0, client=1)
    assert not admission.request(70.1, client=1)  # a returning client, but its bucket is empty
    assert admission.request(95.0, client=1)
    assert not admission.request(130.0, client=1)


def test_a_pinned_connections_syn_passes_whatever_the_buckets_say_and_is_no_further_connection() -> None:
    admission = Admission(remember_s=30.0)
    admission.set(0.0, (1e-3, 1.0), (1e-3, 1.0))
    assert [admission.request(float(moment), client=1, pinned=True) for moment in range(3)] == [True] * 3
    assert (admission.offered, admission.admitted, admission.refused, admission.returning) == (3, 0, 0, 0)


class Pipe:
    """A path of fixed delay that loses the packets whose numbers are in ``lost``."""

    def __init__(self, clock: Clock, rtt_s: float, lost: set[int], plan: TcpPlan | None = None) -> None:
        self.sent: list[tuple[float, int]] = []
        self.got = 0
        self.last_s = 0.0
        self._clock, self._rtt_s, self._lost = clock, rtt_s, lost
        self.sender = Sender(clock, plan or TcpPlan(), self._send, self._arrived)

    def _send(self, size: int) -> float | None:
        self.sent.append((round(self._clock.now, 6), size))
        return None if len(self.sent) - 1 in self._lost else self._rtt_s

    def _arrived(self, count: int) -> None:
        self.got += count
        self.last_s = self._clock.now


def test_a_slow_server_takes_turns_and_has_work_with_a_request_before_its_first_one() -> None:
    clock, sent = Clock(), list[tuple[str, int, float]]()
    server = SlowServer(clock, workers=2, backlog=1, turn_s=1.0, request_s=0.5)

    def ask(name: str, size: int, wanted: Callable[[], bool] = lambda: True) -> None:
        server.request(size, lambda block: sent.append((name, block, clock.now)), wanted)

    ask("long", 2 * BLOCK_BYTES + 1)
    ask("short", 10)
    assert server.syn()
    ask("left", 3 * BLOCK_BYTES, lambda: False)
    assert server.syn()
    ask("last", 10)
    assert not server.syn(), "both workers are busy, and two wait"
    clock.run(20.0)
    assert sent == [
        ("long", BLOCK_BYTES, 1.5),
        ("short", 10, 3.0),
        ("long", BLOCK_BYTES, 4.0),
        ("long", 1, 6.5),  # before this block, the worker of the client that left used the CPU once
        ("last", 10, 8.0),
    ]


def test_slow_start_doubles_the_window_each_round_trip() -> None:
    clock = Clock()
    pipe = Pipe(clock, 0.1, set())
    pipe.sender.offer(14 * MSS - 60)
    clock.run(10.0)
    assert [sum(moment == at for moment, _ in pipe.sent) for at in (0.0, 0.1, 0.2)] == [2, 4, 8]
    assert pipe.sent[-1][1] == MSS - 60 + HEADERS
    assert (pipe.got, pipe.sender.done) == (14 * MSS - 60, True)


def test_a_part_of_a_segment_in_the_window_sends_none() -> None:
    clock = Clock()
    pipe = Pipe(clock, 0.1, {20})
    pipe.sender.offer(200 * MSS)
    clock.run(10.0)
    # After the loss the window is 11 segments; with each round trip it grows, to 11.96, 12.9, 13.9, 14.8 (RFC 5681,
    # equation 3).
    flights = [sum(moment == at for moment, _ in pipe.sent) for at in (0.5, 0.6, 0.7, 0.8, 0.9)]
    assert flights == [11, 11, 12, 13, 14]


def test_a_lost_packet_is_sent_again_at_the_third_duplicate() -> None:
    clock = Clock()
    pipe = Pipe(clock, 0.1, {6})
    pipe.sender.offer(30 * MSS)
    clock.run(20.0)
    assert pipe.got == 30 * MSS
    assert len(pipe.sent) == 31  # only the lost segment is sent twice
    assert pipe.last_s < 1.0  # fast retransmit, without a timeout


def test_a_lost_last_packet_waits_for_the_timeout_which_doubles() -> None:
    clock = Clock()
    pipe = Pipe(clock, 0.1, {1, 2, 3}, TcpPlan(rto_first_s=1.0, rto_min_s=0.5))
    pipe.sender.offer(2 * MSS)
    clock.run(20.0)
    # The acknowledgement of the first segment, at 0.1 s, restarts the timer with the smallest timeout, 0.5 s. The next
    # timeouts are 1 s and 2 s.
    assert [moment for moment, _ in pipe.sent] == [0.0, 0.0, 0.6, 1.6, 3.6]
    assert pipe.got == 2 * MSS


@pytest.mark.parametrize("seed", range(5))
def test_everything_offered_arrives_whatever_is_lost(seed: int) -> None:
    clock, source = Clock(), random.Random(seed)
    pipe = Pipe(clock, 0.05, {n for n in range(2000) if source.random() < 0.3})
    sizes = [source.randrange(1, 20_000) for _ in range(20)]
    for n, size in enumerate(sizes):
        clock.after(n * 0.3, pipe.sender.offer, size)
    clock.run(5000.0)
    assert pipe.got == sum(sizes)
    assert pipe.sender.done


def test_a_client_that_has_gone_gets_nothing_more() -> None:
    clock = Clock()
    pipe = Pipe(clock, 0.1, set())
    pipe.sender.offer(100 * MSS)
    clock.after(0.15, pipe.sender.stop)
    clock.run(10.0)
    assert len(pipe.sent) == 6


def test_the_controllers_cpu_time_is_without_the_simulations_garbage() -> None:
    collects, cpu_s = timed(gc.isenabled)
    assert not collects
    assert cpu_s >= 0
    with pytest.raises(ZeroDivisionError):
        timed(lambda: 1 / 0)
    assert gc.isenabled(), "also after an error"
