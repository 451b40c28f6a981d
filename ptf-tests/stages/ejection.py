"""Stages `connections` and `translate`: a pending connection of an ejected server chooses again, in a second pass."""

from __future__ import annotations

from harness import bulk, entries
from harness.base import (
    StageTest,
    again,
    completed,
    first_answer,
    new,
)
from harness.collisions import crowd
from harness.flow import Flow
from harness.plan import S1, S2, S3, WEB
from sluice.names import Meter, PinState


class EjectedChoosesAgain(StageTest):
    """A SYN sent again, pending with a server that has been ejected since: the connection is chosen for anew."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.eject(S1)
        self.weigh(WEB, {S2: 1})
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), new(WEB, S2))
        self.assertPinned(moved, PinState.PENDING)
        self.client_sends(moved, moved.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.client_sends(moved, moved.ack(), completed(S2))
        self.assertPinned(moved, PinState.ESTABLISHED)


class EjectedInSecondWay(StageTest):
    """So it is in the second way, without touching who lives in the first."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.opens(met.second)
        self.eject(S1)
        self.weigh(WEB, {S2: 1})
        moved = met.second.to(S2)
        self.client_sends(moved, met.second.syn(), new(WEB, S2))
        self.assertPinned(moved, PinState.PENDING, way=2)
        self.assertPinned(met.first, PinState.ESTABLISHED, way=1)


class EjectedFirstWayFreed(StageTest):
    """And when way 1 has become free meanwhile, it is there that the new choice is found."""

    def runTest(self) -> None:
        met = crowd()
        self.opens(met.first)
        self.opens(met.second)
        self.set_timers(linger=1)
        self.client_sends(met.first, met.first.request(flags="R", seq=1001))
        self.pass_ticks(1)
        self.eject(S1)
        self.weigh(WEB, {S2: 1})
        moved = met.second.to(S2)
        self.client_sends(moved, met.second.syn(), new(WEB, S2))
        self.assertPinned(moved, PinState.PENDING, way=1)
        self.client_sends(moved, moved.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))


class EjectedAfterAnswer(StageTest):
    """Whom the server has answered stays: the SYN goes where its connection is."""

    def runTest(self) -> None:
        answered, established = Flow(WEB, S1, client_port=40001), Flow(WEB, S1, client_port=40002)
        self.opens(answered)
        self.server_sends(answered, answered.syn_ack(), first_answer(S1))
        self.establishes(established)
        self.eject(S1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(answered, answered.syn(), again(WEB, S1))
        self.client_sends(answered, answered.ack(), completed(S1))
        self.client_sends(established, established.data())
        self.client_sends(established, established.syn(), again(WEB, S1))


class EjectedIsAllThereIs(StageTest):
    """If the draw is the ejected server again, or was it in the first place, the SYN goes there: no endless passes."""

    def runTest(self) -> None:
        self.eject(S1)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.client_sends(flow, flow.syn(), new(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)


class EjectedMeteredOnce(StageTest):
    """The second pass takes no second token, and the SYN is offered once."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=2, pir=0, pburst=2)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.eject(S1)
        self.weigh(WEB, {S2: 1})
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), new(WEB, S2))
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.assertPinned(moved, PinState.PENDING)


class EjectedRed(StageTest):
    """A red SYN claims nothing, not even anew: it keeps its pin to the ejected server."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=1, pir=0, pburst=1)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.eject(S1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)


class EjectedWithoutRatios(StageTest):
    """With nothing to choose from by ratio, a pending connection stays where it is."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.eject(S1)
        self.delete(entries.ratios(WEB, {S1: 1}))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)


class EjectedWithProbes(StageTest):
    """An ejected server keeps a small share, so that it is still measured. Its pending connections draw by another hash
    the second time, or whoever drew the share once would draw it for ever; and they are spread by weight, not moved on
    to one other server (CRCs are linear: the same fields and one more would do just that)."""

    def runTest(self) -> None:
        self.set_timers(pending=900)  # a minute: on a busy machine 16 connections take longer than ten seconds
        weights = {S1: 16, S2: 160, S3: 80}
        copies = [server for server, weight in weights.items() for _ in range(weight)]
        self.weigh(WEB, weights)
        keys = [key for key in bulk.keys(WEB, 400, seed=12) if copies[key.drawn_by_ratio(len(copies))] is S1][:16]
        for key in keys:
            self.opens(Flow.of(key, WEB, S1))
        self.eject(S1)
        moved = {key: copies[key.drawn_by_ratio(len(copies), second_pass=True)] for key in keys}
        self.assertLessEqual({S2, S3}, set(moved.values()))
        self.assertLessEqual(sum(server is S1 for server in moved.values()), len(moved) // 8)
        for key, server in moved.items():
            flow = Flow.of(key, WEB, server)
            self.client_sends(flow, flow.syn(), new(WEB, server))
            self.assertPinned(flow, PinState.PENDING)
