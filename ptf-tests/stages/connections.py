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
    """Pending, answered, established, closing, closed: each by its packet, in the slot that the hash says."""

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
        self.assertPinned(flow, PinState.CLIENT_CLOSING)
        self.server_sends(flow, flow.reply(flags="FA", seq=5007, ack=1020))
        self.client_sends(flow, flow.ack())
        self.assertPinned(flow, PinState.CLOSED)


class ClosedByServer(StageTest):
    """The server closes first; its last ACK, behind the client's FIN, keeps nothing open."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.server_sends(flow, flow.reply(flags="FA", seq=5001, ack=1001))
        self.assertPinned(flow, PinState.SERVER_CLOSING)
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(flags="A", seq=5002, ack=1019))
        self.assertPinned(flow, PinState.SERVER_CLOSING)
        self.client_sends(flow, flow.fin())
        self.server_sends(flow, flow.reply(flags="A", seq=5002, ack=1020))
        self.assertPinned(flow, PinState.CLOSED)


class ResetEitherWay(StageTest):
    """A RST, from either end; only the server's is written down."""

    def runTest(self) -> None:
        by_client, by_server = Flow(WEB, S1, client_port=40001), Flow(WEB, S1, client_port=40002)
        self.establishes(by_client)
        self.client_sends(by_client, by_client.request(flags="R", seq=1001))
        self.assertPinned(by_client, PinState.CLIENT_RESET)
        self.establishes(by_server)
        self.server_sends(by_server, by_server.reply(flags="RA", seq=5001, ack=1001), was_reset(S1))
        self.assertPinned(by_server, PinState.RESET)


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
        self.assertPinned(flow, PinState.CLIENT_CLOSING)


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
    """The clock starts above the largest idle time, so a zeroed cell is free. A SYN stamps the time that it is."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.assertGreater(self.assertPinned(flow, PinState.PENDING).stamp, TICK_BASE)


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
        self.assertPinned(met.first, PinState.REOPENING, way=1)
        self.assertPinned(met.second, PinState.REOPENING, way=2)
        for flow in (met.first, met.second):
            self.client_sends(flow, flow.fin())


class FirstWayFreed(StageTest):
    """A SYN sent again, while its connection is in way 2 and way 1 has become free: it stays where it is."""

    def runTest(self) -> None:
        self.weigh(WEB, {S2: 1})
        for state in (PinState.PENDING, PinState.ANSWERED, PinState.ESTABLISHED):
            with self.subTest(state=state):
                flow = crowd().second
                self.put_pin(flow, state, age=0, way=2)
                self.client_sends(flow, flow.syn(), again(WEB, S1))
                kept = PinState.REOPENING if state is PinState.ESTABLISHED else state
                self.assertPinned(flow, kept, way=2)
                self.assertEqual(len(self.pins(flow.key)), 1)


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
        self.server_sends(flow, flow.reply(flags="FA", seq=5001, ack=1001))
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
        self.set_timers(linger=-1)
        self.server_sends(met.first, met.first.reply(flags="RA", seq=0), was_reset(S1))
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
