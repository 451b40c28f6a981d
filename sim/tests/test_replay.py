"""Tests that replay the packets of a simulated crowd: flash-crowd control makes the same decisions as in the
simulation."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from sluice.addresses import IPV4_BITS, Packed, packed
from sluice.dataplane.pins import ACK, SYN
from sluice.news import Decision
from sluice.replay.capture import Segment
from sluice.replay.comparenews import compare_news, first_news_reading, intervals
from sluice.replay.driver import Controlled
from sluice.replay.replay import Replay
from sluice.switch.plan import Server, Service

from sim.crowd import simulate
from sim.crowdswitch import CrowdSwitch, Flow
from sim.lab import lab_plan
from topo.plan.crowd.scenarios import NETWORK, NEWS, Settings

CLIENT = 0x0A640001
Place = tuple[Packed, int]
"""Address and port."""


class Tap:
    """Records the packets that pass the simulated switch, like a capture at all ports of a switch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.segments: list[Segment] = []
        self._syns = 0
        syn, response = CrowdSwitch.syn, CrowdSwitch.response

        def tapped_syn(switch: CrowdSwitch, service: Service, client: int, *, pinned: Server | None) -> Server | None:
            server = syn(switch, service, client, pinned=pinned)
            self._syns += 1
            now, vip = switch.now, (service.config.address.packed, service.config.port)
            source = packed(CLIENT + client, IPV4_BITS), self._syns % 60_000
            self._add(now, source, vip, SYN, 0)
            if server is not None:
                self._add(
                    now,
                    (packed(CLIENT + client, IPV4_BITS), self._syns % 60_000),
                    (server.address.packed, server.port),
                    SYN,
                    0,
                )
            return server

        def tapped_response(switch: CrowdSwitch, flow: Flow, size: int) -> None:
            response(switch, flow, size)
            # The measured rates do not depend on the client, so each pair of slot and fingerprint is given a unique
            # client address and port.
            client = (packed(CLIENT + flow.fingerprint, IPV4_BITS), flow.slot)
            server = switch.service("target").servers[0]
            self._add(switch.now, (server.address.packed, server.port), client, ACK, size - 40)

        patch: Callable[[type, str, Any], None] = monkeypatch.setattr
        patch(CrowdSwitch, "syn", tapped_syn)
        patch(CrowdSwitch, "response", tapped_response)

    def _add(self, now: float, source: Place, destination: Place, flags: int, payload: int) -> None:
        self.segments.append(Segment(now, *source, *destination, flags, self._syns, payload, payload + 40, 64))


DELAY_S = 0.004
"""Seconds between a reading of the switch and the time that the trace states for the decision."""


def as_trace(decisions: Sequence[Decision]) -> str:
    """Return the trace that a live controller would have written. Its last line is unfinished, as if the trace were
    copied while the controller writes it."""
    file = io.StringIO()
    rows = [{"unix_s": decision.time_s + DELAY_S, **decision.row()} for decision in decisions]
    out = csv.DictWriter(file, list(rows[0]))
    out.writeheader()
    out.writerows(rows)
    return file.getvalue() + "99.9,"


def test_a_replayed_crowd_is_decided_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = NETWORK.settle(replace(Settings(), before=3, after=3))
    plan = lab_plan(NETWORK, NEWS, settings)
    tap = Tap(monkeypatch)
    lived = simulate(plan).decisions
    monkeypatch.undo()
    moments = list(Replay(plan.config).run(tap.segments, start_s=0.0))
    replayed = [moment.event.decision for moment in moments if isinstance(moment.event, Controlled)]
    assert len(replayed) == len(lived) >= 6
    assert [decision.detection.alarm for decision in replayed] == [decision.detection.alarm for decision in lived]
    for decision, other in zip(replayed, lived, strict=True):
        assert decision.measurement.offered == pytest.approx(other.measurement.offered, rel=0.01)
        assert decision.measurement.admitted == pytest.approx(other.measurement.admitted, rel=0.01)
        # The replay computes other slots for the flows than the simulation, and some flows share a slot.
        assert decision.measurement.ar == pytest.approx(other.measurement.ar, rel=0.05)
        assert (decision.limit is None) == (other.limit is None)
        if decision.limit and other.limit:
            assert decision.limit.rate == pytest.approx(other.limit.rate, rel=0.02)
    assert any(decision.limit for decision in replayed)

    interval_s = settings.period_s / settings.k
    trace = as_trace(lived)
    assert first_news_reading(trace, interval_s) == pytest.approx(DELAY_S, abs=1e-3)
    comparison = compare_news(moments, trace, interval_s)
    assert comparison.agrees and comparison.missing == 0 and comparison.decisions == len(intervals(trace)) >= 6
    assert comparison.ar_difference < 0.05 and max(comparison.offered_difference, comparison.admitted_difference) < 0.01
    calm = as_trace(
        [replace(decision, detection=replace(decision.detection, alarm=False), limits={}) for decision in lived]
    )
    other = compare_news(moments, calm, interval_s)
    assert not other.agrees and other.differing_alarms and other.differing_limits
