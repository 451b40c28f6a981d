"""Tests of `sluice replay`: the counts from a capture, and the decisions based on the counts."""

from __future__ import annotations

import asyncio
import json
import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from configs import web
from numpy.typing import NDArray
from recordings import CLIENT, S1, S2, VIP, Packet, connection, load, write
from sluice.balance import Balancer, Counts, Member
from sluice.cli.main import main
from sluice.config.load import load as load_config
from sluice.config.load import parse
from sluice.dataplane.memory import Memory
from sluice.dataplane.pins import ACK, RST, SYN
from sluice.dataplane.units import MICROSECONDS
from sluice.features import Balance, CrowdControl, world_of
from sluice.features.balance.decisions import balance
from sluice.features.balance.trace import Trace
from sluice.features.crowd.control import control
from sluice.features.crowd.trace import NewsTrace
from sluice.loops.link import Link
from sluice.loops.sweep import correct_loads, kept_slots, sweep
from sluice.loops.world import World
from sluice.names import Register
from sluice.replay.capture import read_capture
from sluice.replay.comparenews import intervals
from sluice.replay.driver import Balanced, Controlled, Driver, LiveTimes
from sluice.replay.replay import Replay
from sluice.replay.switchmodel import SwitchModel
from sluice.switch.ledger import read_ledger
from sluice.switch.secondlook import read_loads
from sluice.switch.switchclock import SwitchClock
from virtual import in_virtual_time


async def test_a_capture_counts_as_the_switch_does(tmp_path: Path) -> None:
    packets = [
        *connection(1.0, 5000, S1),
        *connection(2.0, 5001, S1, answered=False),
        *connection(3.0, 5001, S1, answered=False),  # the client retransmits its SYN
        *connection(4.0, 5002, S2),
        (4.5, S2, 80, CLIENT, 5002, SYN | ACK, 0),
        (5.0, S2, 80, CLIENT, 5003, RST, 0),
        (6.0, CLIENT, 5004, VIP, 80, SYN, 0),  # the SYN does not leave the switch, so the switch refused it
        *connection(7.0, 5005, S2),
    ]
    config = parse(web(more="news: {}"))
    replay = Replay(config)
    switch = SwitchModel(replay.world)
    for segment in read_capture(write(tmp_path / "c.pcap", packets)):
        switch.take(segment)
    switch.settle(8.0)
    first, second = (server.id for server in replay.world.plan.servers)
    counts = await read_ledger(switch.memory, [first, second])
    assert counts[first] == Counts(syn=3, synack=1, completed=1)
    assert counts[second] == Counts(syn=2, synack=2, synack_again=1, completed=2, reset=1)
    cells = switch.memory
    # Connection 5001 is unanswered and still open; all other connections have ended.
    assert await read_loads(switch.memory, [first, second]) == {first: 1, second: 0}
    assert sum(cells.of(Register.REQUESTS_OFFERED)) == 6
    assert sum(cells.of(Register.REQUESTS_ADMITTED)) == 4  # connections 5000, 5001, 5002, 5005
    assert sum(cells.of(Register.REQUESTS_REFUSED)) == 1
    assert sum(1 for cell in cells.of(Register.RATE_BYTES) if cell == 1040) == 3


async def test_ports_of_a_connection_given_up_begin_a_new_one(tmp_path: Path) -> None:
    packets = [*connection(1.0, 5000, S1)[:-1], *connection(2.0, 5000, S1)]  # the first connection has no FIN
    replay = Replay(parse(web()))
    switch = SwitchModel(replay.world)
    for segment in read_capture(write(tmp_path / "c.pcap", packets)):
        switch.take(segment)
    first, _ = (server.id for server in replay.world.plan.servers)
    assert (await read_ledger(switch.memory, [first]))[first] == Counts(syn=2, synack=2, completed=2)
    assert await read_loads(switch.memory, [first]) == {first: 0}


@pytest.mark.parametrize("since_s", [0.0, 1.0e9, 1.8e9, 1.9e9, 4.2e9])
async def test_a_capture_of_any_year_is_read(tmp_path: Path, since_s: float) -> None:
    """The 32-bit time in ticks wraps every nine years; a cell of 0 must not look recent at any time in this cycle."""
    replay = Replay(parse(web(more="news: {}")))
    switch = SwitchModel(replay.world)
    for segment in read_capture(write(tmp_path / "c.pcap", connection(since_s, 5000, S1))):
        switch.take(segment)
    first, _ = (server.id for server in replay.world.plan.servers)
    assert (await read_ledger(switch.memory, [first]))[first] == Counts(syn=1, synack=1, completed=1)
    assert [cell for cell in switch.memory.of(Register.RATE_BYTES) if cell] == [1040]


def taken(packets: Sequence[Packet], tmp_path: Path, mode: str = "production") -> tuple[World, Memory]:
    """Replay the packets; return the world and the switch model's registers."""
    world = world_of(parse(web(mode=mode, more="connections: {idle_s: 300}")))
    switch = SwitchModel(world)
    for segment in read_capture(write(tmp_path / "c.pcap", packets)):
        switch.take(segment)
    return world, switch.memory


async def test_a_syn_that_moves_takes_its_connection_with_it(tmp_path: Path) -> None:
    syn = connection(1.0, 5000, S1, answered=False)
    _, memory = taken([*syn, *connection(3.0, 5000, S2, answered=False)], tmp_path)
    assert await read_loads(memory, [1, 2]) == {1: 1, 2: 0}, "a candidate's SYN leaves the pin where it is"
    _, memory = taken([*syn, *connection(3.0, 5000, S2)[:-1]], tmp_path)
    assert await read_loads(memory, [1, 2]) == {1: 0, 2: 1}, "the handshake's last ACK moves it"
    # The SYN arrives when the pending timeout has ended the connection; the next sweep corrects the old server's load.
    world, memory = taken([*syn, *connection(12.0, 5000, S2, answered=False)], tmp_path)
    assert await read_loads(memory, [1, 2]) == {1: 1, 2: 1}
    await swept(world, memory)
    assert await read_loads(memory, [1, 2]) == {1: 0, 2: 1}


async def test_a_candidate_that_answers_again_is_no_second_answer(tmp_path: Path) -> None:
    again = (3.5, S2, 80, CLIENT, 5000, SYN | ACK, 0)
    packets = [*connection(1.0, 5000, S1)[:-1], *connection(3.0, 5000, S2)[:4], again]
    _, memory = taken(packets, tmp_path)
    assert (await read_ledger(memory, [2]))[2] == Counts(syn=1, synack=1, synack_again=1)


async def swept(world: World, memory: Memory) -> None:
    slots, unexpired = await kept_slots(world, memory, SwitchClock(memory.units), 0.0)
    await correct_loads(world, memory, slots, unexpired)


@pytest.mark.parametrize("mode", ["production", "paper"])
@pytest.mark.parametrize(
    ("seen", "lives_s"), [(2, 10.0), (4, 60.0), (6, 300.0), (8, 300.0)], ids=["SYN", "SYN-ACK", "ACK", "payload"]
)
async def test_a_connection_that_ends_unseen_is_open_for_the_time_of_its_state(
    tmp_path: Path, seen: int, lives_s: float, mode: str
) -> None:
    """A connection without an end counts as open until its state times out.

    This is true whether the switch draws one or two candidate servers for a new connection.
    """
    silent = connection(1.0, 5000, S1)[:seen]
    for after_s, still_open in ((lives_s - 0.2, 1), (lives_s + 0.2, 0)):
        other = (1.003 + after_s, S2, 80, CLIENT, 5001, ACK, 1000)  # the last packet's time is the time of the sweep
        world, memory = taken([*silent, *connection(1.003, 5001, S2)[:-1], other], tmp_path, mode)
        await swept(world, memory)
        assert await read_loads(memory, [1, 2]) == {1: still_open, 2: 1}


def test_replay_decides_what_the_balancer_decides_from_the_same_counts(tmp_path: Path) -> None:
    config = parse(web(period_s=1, window_s=5))
    replay = Replay(config)
    file = write(tmp_path / "c.pcap", load(12, lost=4))
    moments = list(replay.run(read_capture(file), start_s=999.99))
    decisions = [moment.event.decision for moment in moments if isinstance(moment.event, Balanced)]
    ids = [server.id for server in replay.world.plan.servers]
    balancer = Balancer([Member(i) for i in ids], config.services[0].balance)
    balancer.observe(0.0, dict.fromkeys(ids, Counts()))
    assert len(decisions) == 11
    for number, decision in enumerate(decisions, 1):
        all_of_them, most_of_them = (Counts(10 * number, n * number, 0, n * number) for n in (10, 6))
        expected = balancer.observe(float(number), {ids[0]: all_of_them, ids[1]: most_of_them})
        assert expected is not None
        assert decision.ratios == pytest.approx(expected.ratios)
        assert decision.r == pytest.approx(expected.r)


def test_a_reading_is_as_late_as_it_was_live(tmp_path: Path) -> None:
    file = write(tmp_path / "c.pcap", load(6, lost=0))
    # The second live decision was 0.3 s late, the third more than a period; the trace contains no later decisions.
    live = LiveTimes({"web": [1000.99, 1001.99 + 0.3, 1002.99 + 1.2]})
    moments = list(Replay(parse(web(period_s=1, window_s=5))).run(read_capture(file), 999.99, live))
    assert [moment.time_s for moment in moments] == pytest.approx([1000.99, 1002.29, 1004.19, 1004.99])
    seen = [
        sum(difference.syn for difference in m.event.decision.differences.values())
        for m in moments
        if isinstance(m.event, Balanced)
    ]
    assert seen == [20, 26, 38, 16]


def test_only_the_servers_side_is_enough_for_r(tmp_path: Path) -> None:
    config = parse(web(period_s=1, window_s=5, more="news: {mode: paper, period_s: 4}"))
    inner = [packet for packet in load(12, lost=4) if VIP not in (packet[1], packet[3])]
    whole, inner_only = Replay(config), Replay(config)
    both = [
        list(replay.run(read_capture(write(tmp_path / name, packets)), start_s=999.99))
        for replay, name, packets in ((whole, "whole.pcap", load(12, lost=4)), (inner_only, "inner.pcap", inner))
    ]
    ratios = [[m.event.decision.ratios for m in run_moments if isinstance(m.event, Balanced)] for run_moments in both]
    assert ratios[0] == ratios[1]
    crowds = [
        [m.event.decision.measurement for m in run_moments if isinstance(m.event, Controlled)] for run_moments in both
    ]
    assert len(crowds[0]) == 2
    assert crowds[0] == crowds[1]
    # 20 connections/s, of which 4 are unanswered; each answer is one packet of 1,040 bytes.
    assert crowds[0][1].offered == crowds[0][1].admitted == 20.0
    assert crowds[0][1].ar == pytest.approx(1040 * 8 / 0.918, rel=0.15)


START_S = 999.99
"""Time of the live controller's first reading, in seconds since the epoch."""


STEADY: Mapping[str, tuple[float, float]] = {}


class Counting:
    """A simulated switch for a live controller: it counts the packets of a capture, and accepts every write."""

    spaced = True

    def __init__(self, world: World, now: Callable[[], float], stalls: Mapping[str, tuple[float, float]]) -> None:
        self.switch, self.units, self._now = SwitchModel(world), MICROSECONDS, now
        self.registers, self._stalls = self, dict(stalls)
        self.since_s, self.clock = asyncio.get_running_loop().time(), SwitchClock(MICROSECONDS)

    async def apply(self, *_: object) -> int:
        return 1

    def _memory(self) -> Memory:
        self.switch.settle(self._now())
        return self.switch.memory

    async def read(self, register: str, indices: Sequence[int] | None = None) -> list[int]:
        return await self._memory().read(register, indices)

    async def _stall(self, kind: str) -> None:
        begin_s, seconds = self._stalls.get(kind, (math.inf, 0.0))
        if self._now() >= begin_s:
            del self._stalls[kind]
            await asyncio.sleep(seconds)

    def has(self, register: str) -> bool:
        return self.switch.memory.has(register)

    async def columns(self, registers: Sequence[str], indices: Sequence[int]) -> list[list[int]]:
        if Register.LEDGER_SYN in registers:
            await self._stall("ledger")
        return await self._memory().columns(registers, indices)

    async def arrays(self, registers: Sequence[str]) -> list[NDArray[np.uint64]]:
        await self._stall("flows")
        return await self._memory().arrays(registers)

    async def write(self, register: Register, index: int, value: int) -> None:
        await self._memory().write(register, index, value)


def live(
    config: Path, capture: Path, monkeypatch: pytest.MonkeyPatch, stalls: Mapping[str, tuple[float, float]] = STEADY
) -> tuple[Path, Path]:
    """Run the controller's own tasks in virtual time while the packets of a capture pass.

    Return the trace files of R and of flash-crowd control. `stalls` delays one reading of a kind (`ledger`, `flows`):
    the values are the time from which the next reading is delayed, and the delay, both in seconds.
    """
    traces = config.with_name("r.jsonl"), config.with_name("news.csv")
    world = world_of(load_config(config))
    (service,), view = world.plan.services, world[CrowdControl].view

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def now() -> float:
            return START_S + loop.time()

        monkeypatch.setattr(time, "time", now)
        counting = Counting(world, now, stalls)
        link, files = cast(Link, counting), (Trace(traces[0]), NewsTrace(traces[1]))
        tasks = [asyncio.create_task(sweep(world, link))]
        tasks.append(asyncio.create_task(balance(world, world[Balance].views[service.id], link, service, files[0])))
        if view is not None:
            tasks.append(asyncio.create_task(control(world, link, view, files[1])))
        for segment in read_capture(capture):
            await asyncio.sleep(max(0.0, segment.time_s - now()))
            counting.switch.take(segment, 0.0 if view is None else view.wanted().sample_share)
        for task in tasks:
            if task.done():
                task.result()
            task.cancel()
        for file in files:
            file.close()

    with monkeypatch.context():
        in_virtual_time(run())
    return traces


@pytest.mark.parametrize("mode", ["paper", "production"])
@pytest.mark.parametrize("stall_s", [0.0, 0.3, 0.7, 1.7])
def test_replay_decides_as_the_controllers_own_tasks_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: str, stall_s: float
) -> None:
    """A replay decides as the live controller did, although the controller's reading of the switch's counters took
    `stall_s` seconds.

    Server 2 loses SYNs, then answers none, then answers all.
    """
    packets: list[Packet] = []
    for second in range(30):
        lost = 4 if second < 10 else 10 if second < 16 else 0
        packets += [(packet[0] + second, *packet[1:]) for packet in load(1, lost)]
    packets = [renumbered(packet, 10_000 + 20 * int(packet[0] - 1000)) for packet in packets]
    file, config = write(tmp_path / "c.pcap", packets), tmp_path / "sluice.yaml"
    config.write_text(web(mode=mode, period_s=1, window_s=5))
    trace, _ = live(config, file, monkeypatch, {"ledger": (START_S + 5, stall_s)})
    decided = [json.loads(line) for line in trace.read_text().splitlines()]
    assert len(decided) == 29 - math.floor(stall_s + 0.5) and decided[-1]["weight_changes"] > 5
    assert any(decision["servers"]["s2"]["ejected"] for decision in decided) is (mode == "production")
    assert main(["replay", str(file), "--config", str(config), "--trace", str(trace)]) == 0
    assert f"the same decisions; {len(decided)} compared, 0 without a reading" in capsys.readouterr().out
    config.write_text(web(mode="fixed", period_s=1, window_s=5))
    assert main(["replay", str(file), "--config", str(config), "--trace", str(trace)]) == 1


def test_replay_forgets_connections_that_ended_unseen_when_the_controller_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay decides as the live controller did, also about connections whose end the switch has not received.

    Server 2 is silent for ten seconds, in which clients give up; other connections last 0.2 s.
    """
    source, packets = random.Random(1), list[Packet]()
    for n in range(20 * 110):
        begin, server = 1000.0 + n / 20 + 0.04 * source.random(), (S1, S2)[n % 2]
        *seen, fin = connection(begin, 10_000 + n, server)
        unseen = server == S2 and 5 <= begin - 1000 < 15
        packets += seen[:2] if unseen else [*seen, (fin[0] + 0.2, *fin[1:])]
    file = write(tmp_path / "c.pcap", sorted(packets, key=lambda packet: packet[0]))
    config = tmp_path / "sluice.yaml"
    config.write_text(web(mode="production", period_s=1, window_s=5))
    trace, _ = live(config, file, monkeypatch)
    decided = [json.loads(line) for line in trace.read_text().splitlines()]
    second = {round(decision["time"] - 1000): decision["servers"]["s2"] for decision in decided}
    assert second[50]["ratio"] < 0.05 and second[50]["work"]["open_sum"] > 4000
    # The sweep at 60 s removes the abandoned connections, and the window contains 5 s.
    assert second[70]["work"]["open_sum"] < 120 and second[105]["ratio"] > 0.4
    assert main(["replay", str(file), "--config", str(config), "--trace", str(trace)]) == 0


def renumbered(packet: Packet, port: int) -> Packet:
    """Return the packet with another client port, as if it belonged to another connection."""
    time_s, source, source_port, destination, destination_port, flags, payload = packet
    if source == CLIENT:
        return time_s, source, source_port - 10_000 + port, destination, destination_port, flags, payload
    return time_s, source, source_port, destination, destination_port - 10_000 + port, flags, payload


def crowd(quiet_s: int, crowd_s: int) -> list[Packet]:
    """Return packets of `quiet_s` s with 20 connections/s, then of `crowd_s` s with 100 connections/s.

    In the second part responses are sent at a tenth of their rate in the first.
    """
    begun = [(0.05 * n, 0.01) for n in range(20 * quiet_s)]
    begun += [(quiet_s + 0.01 * n, 0.1) for n in range(100 * crowd_s)]
    packets: list[Packet] = []
    for n, (begin, gap) in enumerate(begun):
        server, port = (S1, S2)[n % 2], 10_000 + n
        *opened, finished = connection(1000.0 + begin, port, server)
        packets += opened
        for piece in range(1, 5):
            at = 1000.0 + begin + 0.003 + piece * gap
            packets += [
                (at, server, 80, CLIENT, port, ACK, 1000),
                (at + 0.0001, VIP, 80, CLIENT, port, ACK, 1000),
            ]
        packets.append((finished[0] + 5 * gap, *finished[1:]))
    return sorted(packets, key=lambda packet: packet[0])


CONTROL = {
    "paper": "{mode: paper, period_s: 4, rate_window_s: 0.25}",
    "production": (
        "{mode: production, rate_window_s: 0.25, production: {detection_s: 1, window_s: 4, baseline_s: 16}}"
    ),
}


@pytest.mark.parametrize("mode", CONTROL)
@pytest.mark.parametrize("late", [0.0, 0.3, 1.7])
def test_replay_limits_as_the_controllers_own_task_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: str, late: float
) -> None:
    """A replay limits as the live controller did, although a reading of response rates was `late` intervals late."""
    file, config = write(tmp_path / "c.pcap", crowd(30, 14)), tmp_path / "sluice.yaml"
    options, interval_s = CONTROL[mode], {"paper": 4, "production": 1}[mode]
    config.write_text(web(mode=mode, period_s=1, window_s=5, more=f"news: {options}"))
    ratios, trace = live(config, file, monkeypatch, {"flows": (START_S + 16, late * interval_s)})
    rows = intervals(trace.read_text())
    assert any(row.alarm and row.limit_per_s > 0 for row in rows) and not rows[0].alarm
    assert main(["replay", str(file), "--config", str(config), "--trace", str(trace)]) == 0
    out = capsys.readouterr().out
    assert f"the same decisions; {len(rows)} compared, 0 without a reading" in out
    assert "alarms differ in 0, limits in 0; at most 0.0% of AR, 0.0% of the requests offered" in out
    assert main(["replay", str(file), "--config", str(config), "--trace", str(ratios)]) == 0
    changed = options.replace("period_s: 4", "period_s: 4, tolerance: 0.9")
    changed = changed.replace("mode: production", "mode: production, tolerance: 0.9")
    config.write_text(web(mode=mode, period_s=1, window_s=5, more=f"news: {changed}"))
    assert main(["replay", str(file), "--config", str(config), "--trace", str(trace)]) == 1


def test_replay_begins_anew_behind_a_late_reading_within_an_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay limits as the live controller did after a reading that ended late, at 36.725 s.

    The live controller does not decide at 37 s, but counts from 37 s on, and decides at 38 s.
    """
    file, config = write(tmp_path / "c.pcap", crowd(30, 14)), tmp_path / "sluice.yaml"
    options = CONTROL["production"].replace("rate_window_s", "poll_s: 0.125, rate_window_s")
    config.write_text(web(mode="production", period_s=1, window_s=5, more=f"news: {options}"))
    _, trace = live(config, file, monkeypatch, {"flows": (START_S + 36.1, 0.6)})
    rows = intervals(trace.read_text())
    (late,) = [row for row in rows if row.late_s]
    assert late.time_s == pytest.approx(START_S + 38) and late.bases_s == pytest.approx([START_S + 37])
    assert late.late_s == pytest.approx([START_S + 36.725])
    assert main(["replay", str(file), "--config", str(config), "--trace", str(trace)]) == 0
    out = capsys.readouterr().out
    assert f"the same decisions; {len(rows)} compared, 0 without a reading" in out
    assert "alarms differ in 0, limits in 0; at most 0.0% of AR, 0.0% of the requests offered and 0.0% of those" in out


FLOOD_BESIDE_A_LOADED_SERVER = [(100, 100), (60, 60), (100, 2), (90, 2)]
"""SYN-ACKs and completed handshakes per 100 SYNs of each server; servers 3 and 4 belong to the flooded service."""


def test_flash_crowd_control_holds_the_weights_of_the_flooded_service_only() -> None:
    other = "- {name: w, address: 10.0.0.101, port: 80, balance: {mode: paper, period_s: 1, window_s: 4}, servers: ["
    other += "{name: a, address: 10.0.2.3, port: 80}, {name: b, address: 10.0.3.3, port: 80}]}"
    world, memory = world_of(parse(web(period_s=1, window_s=4, more=f"{other}\nnews: {{mode: production}}"))), Memory()
    driver, reasons = Driver(world, memory, 0.0), dict[str, str]()
    for _ in range(20):
        for server, (answered, completed) in zip(world.plan.servers, FLOOD_BESIDE_A_LOADED_SERVER, strict=True):
            memory.of(Register.LEDGER_SYN)[server.id] += 100
            memory.of(Register.LEDGER_SYNACK)[server.id] += answered
            memory.of(Register.LEDGER_COMPLETED)[server.id] += completed
        for event in driver.step(driver.due):
            if isinstance(event, Balanced):
                reasons[event.service.name] = event.decision.reason
    driver.close()
    assert reasons == {"web": "moved 0.1 of server 2", "w": "held: no server is the cause"}
