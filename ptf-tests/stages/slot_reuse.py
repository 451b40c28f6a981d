"""Tests of stage `connections`: when a slot of the connection table is free again, and for which connections."""

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
    """The ports of a closed connection can be reused at once, whichever end closed first.

    The new connection draws a server by the current weights.
    """

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
    """A repeated SYN and further packets of the client reach the server of a half-closed connection."""

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
    """A SYN that was not answered within the pending timeout occupies no slot; a repeated SYN draws a server again."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow.to(S2), flow.syn(), [*new(WEB, S2), moved(WEB)])
        self.assertPinned(flow.to(S2), PinState.PENDING)


class ReuseOfTheSameServer(StageTest):
    """A SYN that draws a server again, and reaches the same server as before, does not count as moved."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.PENDING, age=self.switch.times["pending_time"] + 1)
        self.opens(flow)


class ReuseNeverCompleted(StageTest):
    """A handshake that was answered but not completed occupies its slot until the answered timeout."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ANSWERED, age=self.switch.times["answered_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow.to(S2), flow.syn(), [*new(WEB, S2), moved(WEB)])


class ReuseIdle(StageTest):
    """A SYN with the ports of a connection that was idle for longer than the idle timeout draws a server again."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1)
        self.weigh(WEB, {S2: 1})
        self.opens(flow.to(S2))
        self.assertPinned(flow.to(S2), PinState.PENDING)


class IdleButNotReplaced(StageTest):
    """A connection whose idle timeout has passed still has its pin if no other connection has claimed the slot.

    Packets of its server renew the pin. A SYN with its ports reaches the same server.
    """

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1000)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(flags="A", seq=5001, ack=1019))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.REOPENING)


class ReplacedWhenIdle(StageTest):
    """If another connection claims the slot of an idle connection, the idle one loses its pin.

    Its packets then reach the server that the weights by capacity select.
    """

    def runTest(self) -> None:
        flows = crowd()
        self.put_pin(flows.first, PinState.ESTABLISHED, age=self.switch.times["idle_time"] + 1)
        self.opens(flows.second)
        self.assertPinned(flows.second, PinState.PENDING, way=1)
        self.assertNotPinned(flows.first.key)
        lost = flows.first.to(S3)
        self.client_sends(lost, lost.data(), unpinned_mid(WEB))


class KeptAlive(StageTest):
    """A client's keepalives preserve a slot beyond the idle timeout, because the server's answers renew the pin."""

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
    """ACKs and data with wrong numbers do not renew a pin, because the server does not acknowledge such segments."""

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
    """A SYN-ACK that is repeated in an established connection changes no state.

    A SYN starts a new handshake, but does not shorten the lifetime that the server's packets set, so a forged SYN ends
    no connection.
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
    """Unanswered SYNs that share both slots with established connections evict none of them.

    The SYNs reach the server that the weights by capacity select.
    """

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
    """Slots that a flood of SYNs has claimed are free after the pending timeout."""

    def runTest(self) -> None:
        flows = crowd()
        for way, flow in enumerate((flows.first, flows.second), start=1):
            self.put_pin(flow, PinState.PENDING, age=self.switch.times["pending_time"] + 1, way=way)
        self.establishes(flows.late[0])
        self.assertPinned(flows.late[0], PinState.ESTABLISHED, way=1)
        self.assertNotPinned(flows.first.key)
