"""Stage `connections`: when a slot is free again, and for whom."""

from __future__ import annotations

from harness.base import (
    StageTest,
    again,
    first_answer,
    moved,
    new,
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
    """The ports of a closed connection, used again at once: a fresh choice, whoever closed it first."""

    def runTest(self) -> None:
        for closing in ("client", "server", "reset"):
            with self.subTest(closed_by=closing):
                self.weigh(WEB, {S1: 1})
                flow = Flow(WEB, S1)
                self.establishes(flow)
                if closing == "reset":
                    self.server_sends(flow, flow.reply(flags="RA", seq=5001), was_reset(S1))
                elif closing == "client":
                    self.client_sends(flow, flow.fin())
                    self.server_sends(flow, flow.reply(flags="FA", seq=5001))
                else:
                    self.server_sends(flow, flow.reply(flags="FA", seq=5001))
                    self.client_sends(flow, flow.fin())
                self.weigh(WEB, {S2: 1})
                self.establishes(flow.to(S2))
                self.assertPinned(flow.to(S2), PinState.ESTABLISHED)
                self.switch.clear_connections()


class ReuseHalfClosed(StageTest):
    """Half closed is not closed: the SYN goes where the connection is, and so does what the client still sends."""

    def runTest(self) -> None:
        for closing in ("client", "server"):
            with self.subTest(closed_by=closing):
                self.weigh(WEB, {S1: 1})
                flow = Flow(WEB, S1)
                self.establishes(flow)
                if closing == "client":
                    self.client_sends(flow, flow.fin())
                else:
                    self.server_sends(flow, flow.reply(flags="FA", seq=5001))
                self.weigh(WEB, {S2: 1})
                self.client_sends(flow, flow.syn(), again(WEB, S1))
                self.client_sends(flow, flow.data())
                self.server_sends(flow, flow.syn_ack(), first_answer(S1))
                self.assertPinned(flow, PinState.ANSWERED)
                self.switch.clear_connections()


class ReuseNeverAnswered(StageTest):
    """A SYN that nobody answered in the pending time holds no slot: sent again it chooses afresh."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.put_pin(flow, PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow.to(S2), flow.syn(), [*new(WEB, S2), moved(WEB)])
        self.assertPinned(flow.to(S2), PinState.PENDING)


class ReuseOfTheSameServer(StageTest):
    """The same, and the choice is the server that it had: it has not moved."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.put_pin(flow, PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.opens(flow)


class ReuseNeverCompleted(StageTest):
    """A handshake that was answered and never completed holds it for the answered time."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.put_pin(flow, PinState.ANSWERED, age=self.switch.times["answered_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow.to(S2), flow.syn(), [*new(WEB, S2), moved(WEB)])


class ReuseIdle(StageTest):
    """The ports of an idle connection, used again: a fresh choice."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.put_pin(flow, PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))
        self.assertPinned(flow.to(S2), PinState.PENDING)


class IdleButNotReplaced(StageTest):
    """Idle beyond its time, and nobody took the slot: the connection is still found, and what its server sends renews
    it. So is its server when its ports are used again."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.put_pin(flow, PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1000)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(flags="A", seq=5001, ack=1019))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.REOPENING)


class ReplacedWhenIdle(StageTest):
    """Another connection takes the slot of an idle one, which is then served by capacity."""

    def runTest(self) -> None:
        met = crowd()
        self.put_pin(met.first, PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1)
        self.opens(met.second)
        self.assertPinned(met.second, PinState.PENDING, way=1)
        self.assertNotPinned(met.first.key)
        lost = met.first.to(S3)
        self.client_sends(lost, lost.data(), unpinned_mid(WEB))


class KeptAlive(StageTest):
    """A connection that either end probes keeps its slot over the idle time: the server's answers renew it."""

    def runTest(self) -> None:
        self.set_timers(idle=16, pending=16, answered=16)
        met = crowd()
        flow = met.first
        self.establishes(flow)
        for _ in range(3):
            self.pass_ticks(8)
            self.client_sends(flow, flow.request(flags="A", seq=1000, ack=5001))
            self.server_sends(flow, flow.reply(flags="A", seq=5001, ack=1001))
        self.opens(met.second)
        self.assertPinned(met.second, PinState.PENDING, way=2)
        self.client_sends(flow, flow.data())
        self.assertPinned(flow, PinState.ESTABLISHED)


class ClaimedInTheClientsName(StageTest):
    """ACKs and data of somebody who knows no numbers keep no slot: the server does not answer for a connection that it
    does not have."""

    def runTest(self) -> None:
        self.set_timers(idle=16, pending=16, answered=16)
        met = crowd()
        self.establishes(met.first)
        for _ in range(3):
            self.pass_ticks(6)
            self.client_sends(met.first, met.first.request(flags="A", seq=77, ack=77))
            self.client_sends(met.first, met.first.request(b"blind", flags="PA", seq=77, ack=77))
        self.opens(met.second)
        self.assertPinned(met.second, PinState.PENDING, way=1)


class NothingShortens(StageTest):
    """A SYN-ACK sent again in an established connection changes no state; a SYN begins a new one, and takes none of the
    time that the server gave it: whoever only pretends to be the client ends nothing."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5001, ack=1001))
        before = self.assertPinned(flow, PinState.ESTABLISHED)
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertGreaterEqual(self.assertPinned(flow, PinState.REOPENING).stamp, before.stamp)
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5005, ack=1019))
        self.assertPinned(flow, PinState.ESTABLISHED)


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
        for way, flow in enumerate((met.first, met.second), start=1):
            self.put_pin(flow, PinState.PENDING, age=self.switch.times["pending_time"] + 1, way=way)
        self.establishes(met.late[0])
        self.assertPinned(met.late[0], PinState.ESTABLISHED, way=1)
        self.assertNotPinned(met.first.key)
