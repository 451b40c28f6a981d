"""Tests of stages `translate` and `candidates`: a server that is ejected, drained or removed.

Such a server keeps its connections. It receives no new connection, whatever pins exist, unless the weights include the
server to probe it.
"""

from __future__ import annotations

from harness import entries
from harness.base import StageTest, again, completed, first_answer, repeated_answer, unpinned, unpinned_mid
from harness.base import moved as has_moved
from harness.collisions import crowd
from harness.flow import ANSWER, Flow
from harness.plan import CLIENT, S1, S2, S3, WEB
from sluice.dataplane.pins import HANDSHAKES
from sluice.names import Counter, DropReason, Meter, PinState, Register


class Draining(StageTest):
    """Base class: S1 drains, and new connections are sent to S2."""

    def moves(self, flow: Flow, *, begun: bool = False) -> Flow:
        """Perform a complete handshake of the flow's ports with S2; return the connection to S2.

        `begun`: the flow's pin to S1 is in a handshake, so the SYN counts as moved from S1.
        """
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), [*again(WEB, S2), *([has_moved(WEB)] if begun else [])])
        self.completes(moved)
        return moved


class Candidates(Draining):
    """Base class of tests of candidates.

    A candidate is the new server of a connection whose pin refers to a draining server; the client's ACK moves the pin.
    """

    NEEDS = (Register.CANDIDATE_KEY,)


class EveryState(Candidates):
    """A new connection is sent to another server, whatever the state of the earlier connection with its ports."""

    def runTest(self) -> None:
        self.drains()
        for state in (state for state in PinState if state < PinState.CLOSED):
            for way in (1, 2):
                with self.subTest(state=state.name, way=way):
                    flow = self.put_pin(crowd().second, state, age=0, way=way)
                    moved = self.moves(flow, begun=state in HANDSHAKES)
                    self.assertPinned(moved, PinState.ESTABLISHED, way=way)
                    self.client_sends(moved, moved.data())
                    self.server_sends(moved, moved.reply(b"200 OK", flags="PA", seq=5001, ack=1019))
                    self.switch.clear_connections()


class Retransmitted(Candidates):
    """Repeated SYNs of the new handshake reach its server, although the weights have changed.

    Repeated SYN-ACKs of that server reach the client.
    """

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.drains()
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.weigh(WEB, {S3: 1})
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.server_sends(moved, moved.syn_ack(), repeated_answer(S2))
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.client_sends(moved, moved.data(), completed(S2))
        self.assertPinned(moved, PinState.ESTABLISHED)


class Undrained(Candidates):
    """A handshake with a candidate ends with the candidate, although the old server accepts connections again."""

    def runTest(self) -> None:
        for state in HANDSHAKES:
            with self.subTest(state=state.name):
                flow = self.put_pin(Flow(WEB, S1), state, age=0)
                self.drains()
                moved = flow.to(S2)
                self.client_sends(moved, flow.syn(), [*again(WEB, S2), has_moved(WEB)])
                self.server_sends(moved, moved.syn_ack(), first_answer(S2))
                self.switch.modify([entries.server(S1)])
                if state is PinState.PENDING:
                    self.client_sends(flow, flow.request(flags="A", seq=1001, ack=ANSWER + 2))
                self.client_sends(moved, moved.ack(), completed(S2))
                self.assertPinned(moved, PinState.ESTABLISHED)
                self.switch.clear_connections()


class OldOneLives(Candidates):
    """A forged SYN in the client's name, and ACKs with wrong numbers, move nothing: the old connection continues."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.drains()
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        self.client_sends(flow, flow.request(flags="A", seq=1001, ack=1))
        answer = ANSWER + 70_000
        self.server_sends(moved, moved.reply(flags="SA", seq=answer, ack=1001), first_answer(S2))
        for number in (answer, answer + 2, ANSWER + 1):
            self.client_sends(flow, flow.request(b"data", flags="PA", seq=1001, ack=number))
        self.server_sends(flow, flow.reply(b"200 OK", flags="PA", seq=5001, ack=1005))
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.client_sends(moved, flow.request(flags="A", seq=1001, ack=answer + 1), completed(S2))
        self.assertPinned(moved, PinState.ESTABLISHED)


class LatePacketsOfTheOldServer(Candidates):
    """Late packets of the old server of a moved connection do not change the connection's state."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.drains()
        moved = self.moves(flow)
        before = self.pins(flow.key)
        self.server_sends(flow, flow.reply(flags="FA", seq=5001, ack=1001))
        self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5001, ack=1001))
        self.assertEqual(self.pins(flow.key), before)
        self.client_sends(moved, moved.data())


class WholeConnections(Candidates):
    """Of successive connections with one client port, each ended by FINs, none reaches the draining server."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        for server in (S1, S2, S2):
            at = self.establishes(flow.to(server))
            self.client_sends(at, at.fin())
            self.server_sends(at, at.reply(flags="FA", seq=5001, ack=1002))
            self.client_sends(at, at.request(flags="A", seq=1002, ack=5002))
            self.drains()


class UnknownServer(Candidates):
    """A pin to a server that is no longer configured is handled like a pin to a draining server."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ESTABLISHED, age=0)
        self.switch.registers.write(Register.PIN_SERVER_1, flow.key.slot_1, 1023)
        self.weigh(WEB, {S2: 1})
        self.drops(CLIENT, flow.data(), DropReason.SERVER_UNKNOWN)
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))


class WithoutSlot(Draining):
    """New connections are dropped if no slot is free and the server that the weights by capacity select drains.

    Old connections continue.
    """

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd())
        late = flows.late[0].to(S3)
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.drain(S3)
        self.drops(CLIENT, late.syn(), DropReason.NO_SERVER, (Counter.OFFERED, WEB.id), (Counter.UNPINNED_NEW, WEB.id))
        self.client_sends(late, late.data(), unpinned_mid(WEB))


class NoServerToChoose(Candidates):
    """If no server can be drawn, a new connection is dropped, and the existing connection continues."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.drain(S1)
        self.delete(entries.ratios(WEB, {S1: 1}))
        self.drops(CLIENT, flow.syn(), DropReason.NO_SERVER, (Counter.OFFERED, WEB.id))
        self.client_sends(flow, flow.data())
        self.insert(entries.ratios(WEB, {S1: 1}))


class Red(Draining):
    """A SYN above its service's rate claims no candidate, and does not reach the draining server."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=1, pir=0, pburst=1)
        flow = self.opens(Flow(WEB, S1))
        self.spent()
        self.drains()
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, (Counter.OFFERED, WEB.id))
        self.assertPinned(flow, PinState.PENDING)


class MeteredOnce(Draining):
    """A SYN's second pass through the pipeline takes no second token, and the SYN counts as offered once."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=2, pir=0, pburst=2)
        flow = self.opens(Flow(WEB, S1))
        self.drains()
        self.client_sends(flow.to(S2), flow.syn(), [*again(WEB, S2), has_moved(WEB)])
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, (Counter.OFFERED, WEB.id))


class DrawnAgain(Draining):
    """An ejected server that is drawn as a probe receives the connection; its SYN is not resubmitted without end."""

    def runTest(self) -> None:
        self.drain(S1)
        flow = self.opens(Flow(WEB, S1))
        self.client_sends(flow, flow.syn(), self.draws_again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)


class PlaceTaken(Candidates):
    """If two handshakes need the same cell for their candidates, the second can begin when the first is complete."""

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd())
        self.drains()
        first, second = flows.first.to(S2), flows.second.to(S2)
        self.client_sends(first, first.syn(), again(WEB, S2))
        self.drops(CLIENT, second.syn(), DropReason.NO_SERVER, (Counter.OFFERED, WEB.id))
        self.completes(first)
        self.moves(flows.second, begun=True)  # counts as moved: the pin does not show that the first SYN was dropped
