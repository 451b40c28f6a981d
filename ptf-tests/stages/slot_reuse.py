"""Stage `connections`: when a slot is free again, and for which connections."""

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
    """The ports of a closed connection can be used again at once, with a new draw, whichever end closed first."""

    def runTest(self) -> None:
        for closing in ("client", "server", "reset"):
            with self.subTest(closed_by=closing):
                self.weigh(WEB, {S1: 1})
                flow = self.establishes(Flow(WEB, S1))
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
    """A half-closed connection is not closed: its repeated SYN and the client's further packets go to its server."""

    def runTest(self) -> None:
        for closing in ("client", "server"):
            with self.subTest(closed_by=closing):
                self.weigh(WEB, {S1: 1})
                flow = self.establishes(Flow(WEB, S1))
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
    """A SYN without an answer in the pending time holds no slot: repeated, it draws anew."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow.to(S2), flow.syn(), [*new(WEB, S2), moved(WEB)])
        self.assertPinned(flow.to(S2), PinState.PENDING)


class ReuseOfTheSameServer(StageTest):
    """If such a repeated SYN draws the same server again, the connection does not count as moved."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.opens(flow)


class ReuseNeverCompleted(StageTest):
    """A handshake that was answered and never completed holds its slot for the answered time."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ANSWERED, age=self.switch.times["answered_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow.to(S2), flow.syn(), [*new(WEB, S2), moved(WEB)])


class ReuseIdle(StageTest):
    """The ports of an idle connection are used again: the SYN draws anew."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))
        self.assertPinned(flow.to(S2), PinState.PENDING)


class IdleButNotReplaced(StageTest):
    """A connection beyond its idle time, whose slot no other connection has taken, is still found, and its server's
    packets renew it. A SYN of its ports goes to the same server.
    """

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1000)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(flags="A", seq=5001, ack=1019))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.REOPENING)


class ReplacedWhenIdle(StageTest):
    """If another connection takes the slot of an idle one, the idle one goes by capacity."""

    def runTest(self) -> None:
        flows = crowd()
        self.put_pin(flows.first, PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1)
        self.opens(flows.second)
        self.assertPinned(flows.second, PinState.PENDING, way=1)
        self.assertNotPinned(flows.first.key)
        lost = flows.first.to(S3)
        self.client_sends(lost, lost.data(), unpinned_mid(WEB))


class KeptAlive(StageTest):
    """Keepalives from either end keep a connection's slot beyond the idle time: the server's answers renew it."""

    def runTest(self) -> None:
        self.set_timers(idle=16, pending=16, answered=16)
        flows = crowd()
        flow = flows.first
        self.establishes(flow)
        for _ in range(3):
            self.pass_ticks(8)
            self.client_sends(flow, flow.request(flags="A", seq=1000, ack=5001))
            self.server_sends(flow, flow.reply(flags="A", seq=5001, ack=1001))
        self.opens(flows.second)
        self.assertPinned(flows.second, PinState.PENDING, way=2)
        self.client_sends(flow, flow.data())
        self.assertPinned(flow, PinState.ESTABLISHED)


class ClaimedInTheClientsName(StageTest):
    """ACKs and data with wrong numbers keep no slot, since the server does not answer as for its own connection."""

    def runTest(self) -> None:
        self.set_timers(idle=16, pending=16, answered=16)
        flows = crowd()
        self.establishes(flows.first)
        for _ in range(3):
            self.pass_ticks(6)
            self.client_sends(flows.first, flows.first.request(flags="A", seq=77, ack=77))
            self.client_sends(flows.first, flows.first.request(b"blind", flags="PA", seq=77, ack=77))
        self.opens(flows.second)
        self.assertPinned(flows.second, PinState.PENDING, way=1)


class NothingShortens(StageTest):
    """A SYN-ACK repeated in an established connection changes no state. A SYN starts a new handshake, but does not
    shorten the time that the server's packets gave: a forged SYN ends nothing.
    """

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
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
    """Unanswered SYNs that share both slots with established connections all go by capacity, and evict nothing."""

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd(late=40))
        self.client_sends(flows.second, flows.second.data())
        for late in flows.late:
            flow = late.to(S3)
            self.client_sends(flow, flow.syn(), unpinned(WEB, S3))
        self.weigh(WEB, {S2: 1})
        for flow in (flows.first, flows.second):
            self.client_sends(flow, flow.data())
            self.assertPinned(flow, PinState.ESTABLISHED, way=1 if flow is flows.first else 2)


class FloodGone(StageTest):
    """Slots that a flood has claimed are held for the pending time only."""

    def runTest(self) -> None:
        flows = crowd()
        for way, flow in enumerate((flows.first, flows.second), start=1):
            self.put_pin(flow, PinState.PENDING, age=self.switch.times["pending_time"] + 1, way=way)
        self.establishes(flows.late[0])
        self.assertPinned(flows.late[0], PinState.ESTABLISHED, way=1)
        self.assertNotPinned(flows.first.key)
