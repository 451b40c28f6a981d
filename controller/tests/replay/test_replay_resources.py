"""Tests of servers' buffers in a replay: transfers in the capture, and their shares of the buffers every second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from configs import web
from sluice.addresses import from_text
from sluice.config.load import parse
from sluice.dataplane.pins import ACK, SYN
from sluice.features import Resources, world_of
from sluice.replay.capture import Segment
from sluice.replay.driver import Shared
from sluice.replay.replay import Replay
from sluice.replay.switchmodel import SwitchModel
from sluice.replay.timeline import as_json, line
from sluice.switch.transfers import read

SERVER, CLIENT = from_text("10.0.2.2").packed, from_text("10.0.1.7").packed
RTT_S, SIZE = 0.02, 1000


def segment(time_s: float, port: int, flags: int, numbers: tuple[int, int], payload: int, *, down: bool) -> Segment:
    """Return a segment, as after translation, between a client's port and server 1; `numbers` are sequence and ACK."""
    sequence, number = numbers
    ends = (SERVER, 80, CLIENT, port) if down else (CLIENT, port, SERVER, 80)
    return Segment(time_s, *ends, flags, sequence, payload, 40 + payload, 63, number)


def transfer(port: int, window: int, seconds: float) -> Iterator[Segment]:
    """Yield the segments of a transfer that sends `window` segments per round trip; all are acknowledged."""
    begin = 1000.0 + port * 1e-5
    yield segment(begin, port, SYN, (1, 0), 0, down=False)
    yield segment(begin + 0.001, port, SYN | ACK, (500, 2), 0, down=True)
    yield segment(begin + RTT_S, port, ACK, (2, 501), 0, down=False)
    sequence = 501
    for turn in range(1, int(seconds / RTT_S)):
        for place in range(window):
            now = begin + turn * RTT_S + place * 1e-5
            yield segment(now, port, ACK, (sequence, 2), SIZE, down=True)
            sequence += SIZE
            yield segment(now + RTT_S - 0.001, port, ACK, (2, sequence), 0, down=False)


def shares(*windows: int) -> tuple[Replay, list[Shared], list[str]]:
    text = web(period_s=10, window_s=100).replace("  servers:", "  resources: {send: {budget: 64 KiB}}\n  servers:")
    replay = Replay(parse(text))
    segments = [segment for number, window in enumerate(windows) for segment in transfer(5000 + number, window, 4.0)]
    moments = list(replay.run(sorted(segments, key=lambda segment: segment.time_s)))
    shared = [moment for moment in moments if isinstance(moment.event, Shared)]
    assert [moment.time_s - shared[0].time_s for moment in shared] == pytest.approx([0, 1, 2, 3], abs=0.01)
    texts = [line(replay.world, moment, replay.first_reading_s) for moment in shared]
    assert as_json(replay.world, shared[-1])["buffers"]["web/s1"]["send"]["budget"] == 65536
    return replay, [moment.event for moment in shared if isinstance(moment.event, Shared)], texts


def test_the_transfers_of_a_capture_share_a_budget_as_they_would_live() -> None:
    replay, shared, texts = shares(5, 40)
    last = shared[-1].decision
    budget = last.send[1]
    assert (budget.transfers, budget.capped) == (2, 1)
    assert budget.share <= 65536 and budget.need > 65536
    assert budget.flight == pytest.approx(45 * SIZE, rel=0.05)
    assert "s1 send 2 transfers" in texts[-1] and "share 63, others 64 each" in texts[-1]
    assert shared[0].decision.send[1].transfers == 0
    view = replay.world[Resources].view
    assert not view or view.decision is last


def test_round_trips_are_those_of_the_capture() -> None:
    text = web().replace("  servers:", "  resources: {send: {budget: 64 KiB}}\n  servers:")
    switch = SwitchModel(world_of(parse(text)))
    for segment in sorted(transfer(5000, 5, 2.0), key=lambda segment: segment.time_s):
        switch.take(segment)
    columns = asyncio.run(read(switch.memory))
    (mine,) = (columns.flow >= 0).nonzero()
    assert columns.rtt_s[mine] == pytest.approx([RTT_S - 0.001], rel=0.02)
    assert columns.losses[mine].tolist() == [0]
