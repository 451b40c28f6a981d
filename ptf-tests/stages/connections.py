"""Tests of stage `connections`: a connection stays with its server from its first SYN to its end."""

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
    """A connection has the states pending, answered, established, closing and closed, in the slot of its hash."""

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
    """If the server closes first, its last ACK, after the client's FIN, does not reopen the connection."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.server_sends(flow, flow.reply(flags="FA", seq=5001, ack=1001))
        self.assertPinned(flow, PinState.SERVER_CLOSING)
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(flags="A", seq=5002, ack=1019))
        self.assertPinned(flow, PinState.SERVER_CLOSING)
        self.client_sends(flow, flow.fin())
        self.server_sends(flow, flow.reply(flags="A", seq=5002, ack=1020))
        self.assertPinned(flow, PinState.CLOSED)


class ResetEitherWay(StageTest):
    """An RST of client or server ends the connection; only the server's RST is counted for the server."""

    def runTest(self) -> None:
        by_client, by_server = Flow(WEB, S1, client_port=40001), Flow(WEB, S1, client_port=40002)
        self.establishes(by_client)
        self.client_sends(by_client, by_client.request(flags="R", seq=1001))
        self.assertPinned(by_client, PinState.CLIENT_RESET)
        self.establishes(by_server)
        self.server_sends(by_server, by_server.reply(flags="RA", seq=5001, ack=1001), was_reset(S1))
        self.assertPinned(by_server, PinState.RESET)


class AcrossWeights(StageTest):
    """A connection keeps its server when the weights change; a new connection is distributed by the new weights."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1, client_port=40001))
        self.weigh(WEB, {S2: 1})
        self.weigh_capacity(WEB, {S2: 1})
        self.client_sends(flow, flow.data())
        self.server_sends(flow, flow.reply(b"200 OK", flags="PA", seq=5001, ack=1019))
        self.establishes(Flow(WEB, S2, client_port=40002))
        self.client_sends(flow, flow.fin())
        self.assertPinned(flow, PinState.CLIENT_CLOSING)


class RetransmittedSyn(StageTest):
    """After a change of weights, the repeated SYN of a pending or answered connection reaches the same server."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.weigh(WEB, {S2: 1})
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.ANSWERED)
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.client_sends(flow, flow.ack(), completed(S1))


class PoolChange(StageTest):
    """Removing a server from the selector groups by R and by capacity moves none of the server's connections."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.weigh(WEB, {S3: 1, S2: 1})
        self.client_sends(flow, flow.data())
        self.assertPinned(flow, PinState.ESTABLISHED)


class TimeBase(StageTest):
    """The switch's clock, which stamps pins, starts above the largest timeout, so that a cell of 0 has expired."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.assertGreater(self.assertPinned(flow, PinState.PENDING).stamp, TICK_BASE)


class SecondWay(StageTest):
    """A connection whose slot in way 1 (first hash) is occupied is pinned in way 2 (second hash).

    Packets of both connections reach their servers.
    """

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd())
        self.assertPinned(flows.first, PinState.ESTABLISHED, way=1)
        self.assertPinned(flows.second, PinState.ESTABLISHED, way=2)
        self.weigh(WEB, {S2: 1})
        for flow in (flows.first, flows.second):
            self.client_sends(flow, flow.syn(), again(WEB, S1))
            self.client_sends(flow, flow.data())
        self.assertPinned(flows.first, PinState.REOPENING, way=1)
        self.assertPinned(flows.second, PinState.REOPENING, way=2)
        for flow in (flows.first, flows.second):
            self.client_sends(flow, flow.fin())


class FirstWayFreed(StageTest):
    """A connection in way 2 stays in that slot when its SYN is repeated, although its slot in way 1 has become free."""

    def runTest(self) -> None:
        self.weigh(WEB, {S2: 1})
        for state in (PinState.PENDING, PinState.ANSWERED, PinState.ESTABLISHED):
            with self.subTest(state=state):
                flow = self.put_pin(crowd().second, state, age=0, way=2)
                self.client_sends(flow, flow.syn(), again(WEB, S1))
                expected = PinState.REOPENING if state is PinState.ESTABLISHED else state
                self.assertPinned(flow, expected, way=2)
                self.assertEqual(len(self.pins(flow.key)), 1)


class ServersOwnSyn(StageTest):
    """A SYN that a server sends from its service's port claims no slot and changes no pin."""

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
    """If both slots of a connection are occupied, its client's packets use the weights by capacity and claim none."""

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd())
        late = flows.late[0].to(S3)
        before = self.pins(flows.first.key), self.pins(flows.second.key)
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.server_sends(late, late.syn_ack(), first_answer(S3))
        self.client_sends(late, late.ack(), unpinned_mid(WEB))
        self.weigh(WEB, {S2: 1})
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.client_sends(late, late.data(), unpinned_mid(WEB))
        self.client_sends(late, late.fin(), unpinned_mid(WEB))
        self.assertNotPinned(late.key)
        self.assertEqual((self.pins(flows.first.key), self.pins(flows.second.key)), before)


class FirstFreeAgain(StageTest):
    """If a slot has become free, a connection without a pin claims it by its next SYN, not by another packet."""

    def runTest(self) -> None:
        flows = crowd()
        self.opens(flows.first)
        self.opens(flows.second)
        late = flows.late[0].to(S3)
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.set_timers(linger=-1)
        self.server_sends(flows.first, flows.first.reply(flags="RA", seq=0), was_reset(S1))
        self.client_sends(late, late.data(), unpinned_mid(WEB))
        self.assertNotPinned(late.key)
        self.opens(flows.late[0])
        self.assertPinned(flows.late[0], PinState.PENDING)


class MidConnection(StageTest):
    """A packet in mid-connection whose connection has no pin, as after a cleared table, claims no slot.

    It reaches the server that the weights by capacity select.
    """

    def runTest(self) -> None:
        flow = Flow(WEB, S3)
        for frame in (flow.ack(), flow.data(), flow.fin(), flow.request(flags="R"), flow.request(flags="SA")):
            self.client_sends(flow, frame, unpinned_mid(WEB))
            self.assertNotPinned(flow.key)


class UdpIsNotPinned(StageTest):
    """UDP has no first packet, so it always uses the weights by capacity; new weights by R move no packet."""

    def runTest(self) -> None:
        flow = Flow(DNS, D3)
        self.client_sends(flow, flow.request(b"question"), unpinned_mid(DNS))
        self.weigh(DNS, {D1: 7, D3: 1})
        self.client_sends(flow, flow.request(b"question"), unpinned_mid(DNS))
        self.server_sends(flow, flow.reply(b"answer"))
        self.assertNotPinned(flow.key)


class PinOfOtherServer(StageTest):
    """An answer from a server to which the connection is not pinned does not change the connection's state."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        stranger = flow.to(S2)
        self.server_sends(stranger, stranger.syn_ack(), first_answer(S2))
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.assertPinned(flow, PinState.ANSWERED)


class PinToUnknownServer(StageTest):
    """A packet whose pin refers to a server that is no longer configured is dropped, with its own drop reason."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.switch.registers.write(Register.PIN_SERVER_1, flow.key.slot_1, 1023)
        self.drops(CLIENT, flow.data(), DropReason.SERVER_UNKNOWN)


class WrittenPin(StageTest):
    """A pin consists of nothing but its cells: packets reach a server that the test writes into a cell."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.switch.registers.write(Register.PIN_SERVER_1, flow.key.slot_1, S2.id)
        moved = flow.to(S2)
        self.client_sends(moved, flow.data())
        self.assertPinned(moved, PinState.ESTABLISHED)
