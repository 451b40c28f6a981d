"""Stages `translate` and `candidates`: a server that takes no new connections (ejected, drained, removed) gets none,
whatever pins there are, and keeps those that it has."""

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
    """Base: S1 drains, and new connections go to S2."""

    def drains(self) -> None:
        """From now on until the end of the test."""
        self.drain(S1)
        self.weigh(WEB, {S2: 1})

    def moves(self, flow: Flow, *, begun: bool = False) -> Flow:
        """A whole handshake of the flow's ports, with S2. ``begun``: S1 has had a SYN of it."""
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), [*again(WEB, S2), *([has_moved(WEB)] if begun else [])])
        self.server_sends(moved, moved.syn_ack(), first_answer(S2))
        self.client_sends(moved, moved.ack(), completed(S2))
        return moved


class Candidates(Draining):
    """Base of tests of candidates: the second server of a connection, until an ACK decides."""

    NEEDS = (Register.CANDIDATE_KEY,)


class EveryState(Candidates):
    """A new connection goes elsewhere, whatever became of the old one with its ports."""

    def runTest(self) -> None:
        self.drains()
        for state in (state for state in PinState if state < PinState.CLOSED):
            for way in (1, 2):
                with self.subTest(state=state.name, way=way):
                    flow = crowd().second
                    self.put_pin(flow, state, age=0, way=way)
                    moved = self.moves(flow, begun=state in HANDSHAKES)
                    self.assertPinned(moved, PinState.ESTABLISHED, way=way)
                    self.client_sends(moved, moved.data())
                    self.server_sends(moved, moved.reply(b"200 OK", flags="PA", seq=5001, ack=1019))
                    self.switch.clear_connections()


class Retransmitted(Candidates):
    """SYNs and SYN-ACKs of the new handshake, sent again: the same server, whatever the weights are by then."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
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
    """The old server is undrained before the handshake with the candidate ends: it ends there all the same."""

    def runTest(self) -> None:
        for state in HANDSHAKES:
            with self.subTest(state=state.name):
                flow = Flow(WEB, S1)
                self.put_pin(flow, state, age=0)
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
    """A SYN in the client's name, and ACKs with other numbers, move nothing: the old connection goes on."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
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


class LateWordsOfTheOldServer(Candidates):
    """What the old server still sends, to connections that moved, ends nothing."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.drains()
        moved = self.moves(flow)
        before = self.pins(flow.key)
        self.server_sends(flow, flow.reply(flags="FA", seq=5001, ack=1001))
        self.server_sends(flow, flow.reply(b"more", flags="PA", seq=5001, ack=1001))
        self.assertEqual(self.pins(flow.key), before)
        self.client_sends(moved, moved.data())


class WholeConnections(Candidates):
    """One client with one port, connection after connection, each with its FINs: none goes to the draining server."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        for server in (S1, S2, S2):
            at = flow.to(server)
            self.establishes(at)
            self.client_sends(at, at.fin())
            self.server_sends(at, at.reply(flags="FA", seq=5001, ack=1002))
            self.client_sends(at, at.request(flags="A", seq=1002, ack=5002))
            self.drains()


class UnknownServer(Candidates):
    """So it is with a pin to a server that the switch does not know any more."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.put_pin(flow, PinState.ESTABLISHED, age=0)
        self.switch.registers.write(Register.PIN_SERVER_1, flow.key.slot_1, 1023)
        self.weigh(WEB, {S2: 1})
        self.drops(CLIENT, flow.data(), DropReason.SERVER_UNKNOWN)
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))


class WithoutSlot(Draining):
    """Both ways are taken, and the choice by capacity is draining: a new connection is not made. An old one goes on."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.establishes(met.second)
        late = met.late[0].to(S3)
        self.client_sends(late, late.syn(), unpinned(WEB, S3))
        self.drain(S3)
        self.drops(CLIENT, late.syn(), DropReason.NO_SERVER, (Counter.OFFERED, WEB.id), (Counter.UNPINNED_NEW, WEB.id))
        self.client_sends(late, late.data(), unpinned_mid(WEB))


class NobodyElse(Candidates):
    """With nothing to choose from, a new connection is not made; what was there stays."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        self.establishes(flow)
        self.drain(S1)
        self.delete(entries.ratios(WEB, {S1: 1}))
        self.drops(CLIENT, flow.syn(), DropReason.NO_SERVER, (Counter.OFFERED, WEB.id))
        self.client_sends(flow, flow.data())
        self.insert(entries.ratios(WEB, {S1: 1}))


class Red(Draining):
    """A SYN above its service's rate claims no candidate, nor does it reach the draining server."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=1, pir=0, pburst=1)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.spent()
        self.drains()
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, (Counter.OFFERED, WEB.id))
        self.assertPinned(flow, PinState.PENDING)


class MeteredOnce(Draining):
    """The second pass takes no second token, and the SYN is offered once."""

    def runTest(self) -> None:
        self.meter(Meter.ADMISSION, WEB.id, cir=0, cburst=2, pir=0, pburst=2)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.drains()
        self.client_sends(flow.to(S2), flow.syn(), [*again(WEB, S2), has_moved(WEB)])
        self.drops(CLIENT, flow.syn(), DropReason.ADMISSION_REFUSED, (Counter.OFFERED, WEB.id))


class DrawnAgain(Draining):
    """An ejected server that is drawn all the same, for its share of probes, gets the connection: no endless passes."""

    def runTest(self) -> None:
        self.drain(S1)
        flow = Flow(WEB, S1)
        self.opens(flow)
        self.client_sends(flow, flow.syn(), self.draws_again(WEB, S1))
        self.assertPinned(flow, PinState.PENDING)


class PlaceTaken(Candidates):
    """Two handshakes that meet in the place of one candidate: the second is made when the first is."""

    def runTest(self) -> None:
        met = crowd()
        self.establishes(met.first)
        self.establishes(met.second)
        self.drains()
        first, second = met.first.to(S2), met.second.to(S2)
        self.client_sends(first, first.syn(), again(WEB, S2))
        self.drops(CLIENT, second.syn(), DropReason.NO_SERVER, (Counter.OFFERED, WEB.id))
        self.server_sends(first, first.syn_ack(), first_answer(S2))
        self.client_sends(first, first.ack(), completed(S2))
        self.moves(met.second, begun=True)  # as far as the pin tells: that its SYN was dropped it does not
