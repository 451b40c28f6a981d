"""Stage `connections`: when a slot is free again, and for whom."""

from __future__ import annotations

from harness.base import (
    StageTest,
    again,
    first_answer,
    repeated_answer,
    unpinned,
    unpinned_mid,
    was_reset,
)
from harness.collisions import crowd
from harness.flow import Flow
from harness.plan import S1, S2, S3, WEB
from sluice.names import PinState


class ReuseClosed(StageTest):
    """The ports of a closed connection, used again: a fresh choice, whoever closed it."""

    def runTest(self) -> None:
        self.set_timers(linger=1)
        for closing in ("client", "server"):
            with self.subTest(closed_by=closing):
                self.weigh(WEB, {S1: 1})
                flow = Flow(WEB, S1)
                self.establishes(flow)
                if closing == "client":
                    self.client_sends(flow, flow.fin())
                else:
                    self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
                self.pass_ticks(1)
                self.weigh(WEB, {S2: 1})
                self.establishes(flow.to(S2))
                self.assertPinned(flow.to(S2), PinState.ESTABLISHED)
                self.switch.clear_connections()


class ReuseBeforeLinger(StageTest):
    """Within the linger time a SYN is taken for the same connection: same server, from the beginning."""

    def runTest(self) -> None:
        self.set_timers(linger=916)
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.client_sends(flow, flow.fin())
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.assertPinned(flow, PinState.ANSWERED)


class ReuseNeverAnswered(StageTest):
    """A SYN that nobody answered in the pending time holds no slot: sent again it chooses afresh."""

    def runTest(self) -> None:
        self.set_timers(pending=1)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.weigh(WEB, {S2: 1})
        self.pass_ticks(1)
        self.opens(flow.to(S2))
        self.assertPinned(flow.to(S2), PinState.PENDING)


class ReuseNeverCompleted(StageTest):
    """A handshake that was answered and never completed holds it for the answered time."""

    def runTest(self) -> None:
        self.set_timers(pending=1, answered=4, linger=1)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.pass_ticks(4)
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))


class ReuseIdle(StageTest):
    """The ports of an idle connection, used again: a fresh choice."""

    def runTest(self) -> None:
        self.set_timers(idle=4, pending=4, answered=4, linger=1)
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.client_sends(flow, flow.data())
        self.pass_ticks(4)
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))
        self.assertPinned(flow.to(S2), PinState.PENDING)


class IdleButNotReplaced(StageTest):
    """Idle beyond its time, and nobody took the slot: the connection is still found, and payload renews it. So is its
    server when its ports are used again."""

    def runTest(self) -> None:
        self.set_timers(idle=16, pending=16, answered=16, linger=1)
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.weigh(WEB, {S2: 1})
        self.pass_ticks(16)
        self.client_sends(flow, flow.ack())
        self.client_sends(flow, flow.data())
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)


class ReplacedWhenIdle(StageTest):
    """Another connection takes the slot of an idle one, which is then served by capacity."""

    def runTest(self) -> None:
        self.set_timers(idle=4, pending=4, answered=4, linger=1)
        met = crowd()
        self.establishes(met.first)
        self.pass_ticks(4)
        self.opens(met.second)
        self.assertPinned(met.second, PinState.PENDING, way=1)
        self.assertNotPinned(met.first.key)
        lost = met.first.to(S3)
        self.client_sends(lost, lost.data(), unpinned_mid(WEB))


class PayloadKeepsAlive(StageTest):
    """Payload of either end renews the slot for the idle time; an ACK alone does not."""

    def runTest(self) -> None:
        self.set_timers(idle=16, pending=16, answered=16, linger=1)
        met = crowd()
        flow = met.first
        self.establishes(flow)
        for _ in range(3):
            self.pass_ticks(3)
            self.client_sends(flow, flow.data())
            self.pass_ticks(3)
            self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5001, ack=1001))
        self.opens(met.second)
        self.assertPinned(met.second, PinState.PENDING, way=2)
        before = self.assertPinned(flow, PinState.ESTABLISHED).stamp
        self.pass_ticks(1)
        self.client_sends(flow, flow.ack())
        self.assertEqual(self.assertPinned(flow, PinState.ESTABLISHED).stamp, before)


class NothingShortens(StageTest):
    """A SYN-ACK sent again in an established connection changes nothing; a SYN begins a new one, and takes none of the
    time that payload gave it: whoever only pretends to be the client ends nothing."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.client_sends(flow, flow.data())
        before = self.assertPinned(flow, PinState.ESTABLISHED)
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.assertEqual(self.assertPinned(flow, PinState.ESTABLISHED), before)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertEqual(self.assertPinned(flow, PinState.PENDING).stamp, before.stamp)
        self.client_sends(flow, flow.data())


class Flood(StageTest):
    """Unanswered SYNs, each with both slots of established connections: all by capacity, none evicts anything."""

    def runTest(self) -> None:
        met = crowd(late=40)
        self.establishes(met.first)
        self.establishes(met.second)
        self.client_sends(met.second, met.second.data())
        for late in met.late:
            flow = late.to(S3)
            self.client_sends(flow, flow.syn(), unpinned(WEB, S3))
        self.weigh(WEB, {S2: 1})
        for flow in (met.first, met.second):
            self.client_sends(flow, flow.data())
            self.assertPinned(flow, PinState.ESTABLISHED, way=1 if flow is met.first else 2)


class FloodGone(StageTest):
    """What a flood took it holds for the pending time only."""

    def runTest(self) -> None:
        met = crowd()
        self.set_timers(pending=1)
        self.opens(met.first)
        self.opens(met.second)
        self.pass_ticks(1)
        self.set_timers()
        self.establishes(met.late[0])
        self.assertPinned(met.late[0], PinState.ESTABLISHED, way=1)
        self.assertNotPinned(met.first.key)
