"""Tests that replay the packets of a simulated crowd, handshakes included: production mode and the identification of
causes make the same decisions as in the simulation."""

from __future__ import annotations

import csv
import io
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sluice.addresses import IPV4_BITS, Packed, packed
from sluice.dataplane.connection import Connection
from sluice.dataplane.pins import ACK, SYN
from sluice.dataplane.rates import place
from sluice.news import Decision
from sluice.replay.capture import Segment
from sluice.replay.comparenews import compare_news
from sluice.replay.driver import Controlled
from sluice.replay.replay import Replay
from sluice.switch.plan import Server, Service

from sim import crowd
from sim.crowd import simulate
from sim.crowdswitch import CrowdSwitch, Flow
from sim.lab import lab_plan
from topo.plan.crowd.network import PORT, TARGET, TARGET_ADDRESS
from topo.plan.crowd.scenarios import HOT_SPOT, NETWORK, PRODUCTION, Settings, Variant

CLIENT, PORTS = 0x0A640001, 50_000
Place = tuple[Packed, int]
"""Address and port."""


def numbered(number: int) -> Place:
    """Return a client address and port that are unique to this number."""
    return packed(CLIENT + number // PORTS, IPV4_BITS), 1024 + number % PORTS


class Response(Flow):
    """A response with the slot that the switch computes from its addresses and ports."""

    __slots__ = ("client",)

    def __init__(self, number: int) -> None:
        self.client = numbered(number)
        address, port = self.client
        self.slot, self.fingerprint = place(Connection(address, port, TARGET_ADDRESS.packed, PORT).rate_key)


class Tap:
    """Records the packets that pass the simulated switch, like a capture at all ports of a switch.

    Each SYN is given a separate connection, and handshakes continue in the order of their SYNs. The simplification does
    not change the controller's decisions, because the controller only counts handshakes.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.segments: list[Segment] = []
        self._syns = 0
        self._asked: dict[int, deque[Place]] = defaultdict(deque)
        self._answered: dict[int, deque[Place]] = defaultdict(deque)
        self._last: dict[int, Place] = {}
        syn, synack, completed, response = (
            getattr(CrowdSwitch, name) for name in ("syn", "synack", "completed", "response")
        )

        def tapped_syn(switch: CrowdSwitch, service: Service, client: int, *, pinned: Server | None) -> Server | None:
            server = syn(switch, service, client, pinned=pinned)
            self._syns += 1
            place = numbered((1 << 20) + self._syns)
            self._add(switch, place, (service.config.address.packed, service.config.port), SYN)
            if server is not None:
                self._add(switch, place, _place(server), SYN)
                self._asked[server.id].append(place)
            return server

        def tapped_synack(switch: CrowdSwitch, server: Server, *, again: bool = False) -> None:
            synack(switch, server, again=again)
            if not again:
                self._last[server.id] = self._asked[server.id].popleft()
                self._answered[server.id].append(self._last[server.id])
            self._add(switch, _place(server), self._last[server.id], SYN | ACK)

        def tapped_completed(switch: CrowdSwitch, server: Server) -> None:
            completed(switch, server)
            self._add(switch, self._answered[server.id].popleft(), _place(server), ACK)

        def tapped_response(switch: CrowdSwitch, flow: Response, size: int) -> None:
            response(switch, flow, size)
            self._add(switch, _place(switch.service(TARGET).servers[0]), flow.client, ACK, size - 40)

        patch: Callable[[object, str, Any], None] = monkeypatch.setattr
        patch(crowd, "Flow", Response)
        patch(CrowdSwitch, "syn", tapped_syn)
        patch(CrowdSwitch, "synack", tapped_synack)
        patch(CrowdSwitch, "completed", tapped_completed)
        patch(CrowdSwitch, "response", tapped_response)

    def _add(self, switch: CrowdSwitch, source: Place, destination: Place, flags: int, payload: int = 0) -> None:
        self.segments.append(
            Segment(switch.now, *source, *destination, flags, self._syns, payload, payload + 40, hop_limit=64)
        )


def _place(server: Server) -> Place:
    return server.address.packed, server.port


def as_trace(decisions: list[Decision]) -> str:
    """Return the trace that a live controller would have written."""
    file = io.StringIO()
    rows = [{"unix_s": decision.time_s, **decision.row()} for decision in decisions]
    out = csv.DictWriter(file, list(rows[0]))
    out.writeheader()
    out.writerows(rows)
    return file.getvalue()


@pytest.mark.parametrize("variant", [HOT_SPOT, PRODUCTION], ids=lambda variant: variant.name)
def test_a_replayed_crowd_is_decided_as_it_was(monkeypatch: pytest.MonkeyPatch, variant: Variant) -> None:
    plan = lab_plan(NETWORK, variant, NETWORK.settle(replace(Settings(), before=3, after=2)))
    with monkeypatch.context() as patched:
        tap = Tap(patched)
        lived = simulate(plan).decisions
    moments = list(Replay(plan.config).run(tap.segments, start_s=0.0))
    assert plan.config.news is not None
    comparison = compare_news(moments, as_trace(lived), plan.config.news.interval_s)
    assert comparison.agrees and comparison.missing == 0, comparison.sentence
    assert (comparison.ar_difference, comparison.offered_difference, comparison.admitted_difference) == pytest.approx(
        (0.0, 0.0, 0.0), abs=1e-3
    )
    limits = {round(decision.limit.rate) for decision in lived if decision.limit}
    assert limits and (variant is HOT_SPOT or len(limits) > 5), "there was something to decide"
    replayed = [moment.event.decision for moment in moments if isinstance(moment.event, Controlled)]
    assert (
        {decision.hot_spot for decision in replayed}
        == {decision.hot_spot for decision in lived}
        == {None, TARGET_ADDRESS.packed}
    )
