"""Stage `connections`: a connection keeps its server from its first SYN to its end."""

from __future__ import annotations

from harness.base import (
    StageTest,
    again,
    completed,
    first_answer,
    repeated_answer,
    unpinned,
    unpinned_mid,
    was_reset,
)
from harness.collisions import crowd
from harness.flow import Flow
from harness.plan import CLIENT, D1, D3, DNS, S1, S2, S3, WEB
from sluice.names import TICK_BASE, DropReason, PinState, Register


class Lifecycle(StageTest):
    """Pending, answered, established, closing: each by its packet, in the slot that the hash says."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.assertNotPinned(flow.key)
        self.opens(flow)
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.assertPinned(flow, PinState.ANSWERED)
        self.client_sends(flow, flow.ack(), completed(S1))
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(b"200 OK", flags="PA", seq=5001, ack=1019))
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.client_sends(flow, flow.fin())
        self.assertPinned(flow, PinState.CLOSING)
        self.server_sends(flow, flow.reply(flags="FA", seq=5007, ack=1020))
        self.client_sends(flow, flow.ack())
        self.assertPinned(flow, PinState.CLOSING)


class ClosedByServer(StageTest):
    """The server's FIN closes too."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.server_sends(flow, flow.reply(flags="FA", seq=5001, ack=1001))
        self.assertPinned(flow, PinState.CLOSING)


class ResetEitherWay(StageTest):
    """So does a RST, from either end; only the server's is written down."""

    def runTest(self) -> None:
        by_client, by_server = Flow(WEB, S1, client_port=40001), Flow(WEB, S1, client_port=40002)
        self.establishes(by_client)
        self.client_sends(by_client, by_client.request(flags="R", seq=1001))
        self.assertPinned(by_client, PinState.CLOSING)
        self.establishes(by_server)
        self.server_sends(by_server, by_server.reply(flags="RA", seq=5001, ack=1001), was_reset(S1))
        self.assertPinned(by_server, PinState.CLOSING)


class AcrossWeights(StageTest):
    """A connection stays where it is when the weights change; the next one goes where they now point."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1, client_port=40001)
        self.establishes(flow)
        self.weigh(WEB, {S2: 1})
        self.weigh_capacity(WEB, {S2: 1})
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(b"200 OK", flags="PA", seq=5001, ack=1019))
        self.establishes(Flow(WEB, S2, client_port=40002))
        self.client_sends(flow, flow.fin())
        self.assertPinned(flow, PinState.CLOSING)


class RetransmittedSyn(StageTest):
    """A SYN sent again stays with its server across a change of weights, pending or answered."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.ANSWERED)
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.client_sends(flow, flow.ack(), completed(S1))


class PoolChange(StageTest):
    """Taking a server out of both groups moves none of its connections."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.weigh(WEB, {S3: 1, S2: 1})
        self.client_sends(flow, flow.data())
        self.assertPinned(flow, PinState.ESTABLISHED)


class TimeBase(StageTest):
    """The clock starts above the largest idle time, so a zeroed cell is free. A SYN stamps now - idle + pending."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        stamp = self.assertPinned(flow, PinState.PENDING).stamp
        idle, pending = self.switch.times["idle_time"], self.switch.times["pending_time"]
        self.assertGreater(stamp, TICK_BASE - idle)
        self.client_sends(flow, flow.data())
        self.assertGreaterEqual(self.pins(flow.key)[0].stamp - stamp, idle - pending)


class SecondWay(StageTest):
    """A connection whose first slot is taken lives in the second way; both are found."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.establishes(met.second)
        self.assertPinned(met.first, PinState.ESTABLISHED, way=1)
        self.assertPinned(met.second, PinState.ESTABLISHED, way=2)
        self.weigh(WEB, {S2: 1})
        for flow in (met.first, met.second):
            self.client_sends(flow, flow.syn(), again(WEB, S1))
            self.client_sends(flow, flow.data())
            self.client_sends(flow, flow.fin())
        self.assertPinned(met.first, PinState.CLOSING, way=1)
        self.assertPinned(met.second, PinState.CLOSING, way=2)


class FirstWayFreed(StageTest):
    """A SYN sent again, while its connection is in way 2 and way 1 has become free: it keeps the server, and the state
    of a handshake that is not over."""

    def runTest(self) -> None:
        for state in (PinState.PENDING, PinState.ANSWERED, PinState.ESTABLISHED):
            with self.subTest(state=state):
                met = crowd()
                self.opens(met.first)
                flow = met.second
                self.opens(flow)
                if state is not PinState.PENDING:
                    self.server_sends(flow, flow.syn_ack(), first_answer(S1))
                if state is PinState.ESTABLISHED:
                    self.client_sends(flow, flow.ack(), completed(S1))
                self.set_timers(linger=1)
                self.client_sends(met.first, met.first.request(flags="R", seq=1001))
                self.pass_ticks(1)
                self.weigh(WEB, {S2: 1})
                kept = PinState.PENDING if state is PinState.ESTABLISHED else state
                self.client_sends(flow, flow.syn(), again(WEB, S1))
                self.assertPinned(flow, kept, way=1)
                self.client_sends(flow, flow.syn(), again(WEB, S1))
                self.assertPinned(flow, kept, way=1)
                self.doCleanups()
                self.switch.clear_connections()


class FirstWayFreedClosing(StageTest):
    """In that place a connection that was closing begins anew, with the server it had."""

    def runTest(self) -> None:
        met = crowd()
        self.opens(met.first)
        self.establishes(met.second)
        self.client_sends(met.second, met.second.fin())
        self.set_timers(linger=1)
        self.client_sends(met.first, met.first.request(flags="R", seq=1001))
        self.pass_ticks(1)
        self.client_sends(met.second, met.second.syn(), again(WEB, S1))
        self.assertPinned(met.second, PinState.PENDING, way=1)


class ServersOwnSyn(StageTest):
    """A SYN that a server sends from its service's port claims no slot, and changes none."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        own = flow.reply(flags="S", seq=5001)
        self.server_sends(flow, own)
        self.assertNotPinned(flow.key)
        self.establishes(flow)
        self.server_sends(flow, own)
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.client_sends(flow, flow.fin())
        before = self.pins(flow.key)
        self.server_sends(flow, own)
        self.assertEqual(self.pins(flow.key), before)


class BothWaysTaken(StageTest):
    """Neither slot is free: by capacity, counted, nothing claimed, for the whole of the connection's life."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.establishes(met.second)
        late = met.late[0].to(S3)
        before = self.pins(met.first.key), self.pins(met.second.key)
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.server_sends(late, late.syn_ack(), first_answer(S3))
        self.client_sends(late, late.ack(), unpinned_mid(WEB))
        self.weigh(WEB, {S2: 1})
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.client_sends(late, late.data(), unpinned_mid(WEB))
        self.client_sends(late, late.fin(), unpinned_mid(WEB))
        self.assertNotPinned(late.key)
        self.assertEqual((self.pins(met.first.key), self.pins(met.second.key)), before)


class FirstFreeAgain(StageTest):
    """A connection without a pin does not claim one in mid-connection, whatever has become free; its next SYN does."""

    def runTest(self) -> None:
        met = crowd()
        self.opens(met.first)
        self.opens(met.second)
        late = met.late[0].to(S3)
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.set_timers(linger=1)
        self.client_sends(met.first, met.first.request(flags="R", seq=1001))
        self.pass_ticks(1)
        self.client_sends(late, late.data(), unpinned_mid(WEB))
        self.assertNotPinned(late.key)
        self.opens(met.late[0])
        self.assertPinned(met.late[0], PinState.PENDING)


class MidConnection(StageTest):
    """Any packet but a SYN without a pin (a cleared table, a takeover): by capacity, counted, claims nothing."""

    def runTest(self) -> None:
        flow = Flow(WEB, S3)
        for frame in (flow.ack(), flow.data(), flow.fin(), flow.request(flags="R"), flow.request(flags="SA")):
            self.client_sends(flow, frame, unpinned_mid(WEB))
            self.assertNotPinned(flow.key)


class UdpIsNotPinned(StageTest):
    """UDP has no first packet: always by capacity, so that weight changes split no exchange."""

    def runTest(self) -> None:
        flow = Flow(DNS, D3)
        self.client_sends(flow, flow.request(b"question"), unpinned_mid(DNS))
        self.weigh(DNS, {D1: 7, D3: 1})
        self.client_sends(flow, flow.request(b"question"), unpinned_mid(DNS))
        self.server_sends(flow, flow.reply(b"answer"))
        self.assertNotPinned(flow.key)


class PinOfOtherServer(StageTest):
    """An answer from a server that the connection is not pinned to changes nothing of its state."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        stranger = flow.to(S2)
        self.server_sends(stranger, stranger.syn_ack(), first_answer(S2))
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.assertPinned(flow, PinState.ANSWERED)


class PinToUnknownServer(StageTest):
    """Pinned to a server that is no longer configured: a numbered drop, not a packet to nowhere."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.switch.registers.write(Register.PIN_SERVER_1, flow.key.slot_1, 1023)
        self.drops(CLIENT, flow.data(), DropReason.SERVER_UNKNOWN)


class WrittenPin(StageTest):
    """Cells are the whole of the pin: another server written into them is where the packets go."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.switch.registers.write(Register.PIN_SERVER_1, flow.key.slot_1, S2.id)
        moved = flow.to(S2)
        self.client_sends(moved, flow.data())
        self.assertPinned(moved, PinState.ESTABLISHED)
