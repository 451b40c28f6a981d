"""Tests of stage `ledger`, which counts the SYNs that each server receives, and the server's answers."""

from __future__ import annotations

from harness.base import (
    StageTest,
    again,
    completed,
    disowned,
    first_answer,
    repeated_answer,
    unpinned_mid,
    was_reset,
)
from harness.flow import Flow
from harness.plan import S1, S2, S3, WEB
from sluice.names import PinState, Register


class Syn(StageTest):
    """Every SYN that is forwarded to a server is counted, including retransmissions."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        for _ in range(3):
            self.client_sends(flow, flow.syn(), again(WEB, S1))


class SynAck(StageTest):
    """Only the first SYN-ACK of a handshake counts as an answer; repeated SYN-ACKs have a count of their own."""

    def runTest(self) -> None:
        flow = self.half_opens(Flow(WEB, S1))
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.client_sends(flow, flow.ack(), completed(S1))
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.assertPinned(flow, PinState.ESTABLISHED)


class PortsOfOneGivenUp(StageTest):
    """If a client abandons a connection without FIN and reuses its ports, the new SYN-ACK counts as a first one."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.client_sends(flow, flow.data())
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.assertPinned(flow, PinState.REOPENING)
        self.completes(flow)
        self.assertPinned(flow, PinState.ESTABLISHED)


class SynAgainWhenAnswered(StageTest):
    """A SYN-ACK that the server repeats, because the client did not receive it, does not count as an answer again."""

    def runTest(self) -> None:
        flow = self.half_opens(Flow(WEB, S1))
        self.client_sends(flow, flow.syn(), again(WEB, S1))
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.client_sends(flow, flow.ack(), completed(S1))


class CompletedByPayload(StageTest):
    """A client's payload completes the handshake if the bare ACK is lost, or if the ACK carries the payload."""

    def runTest(self) -> None:
        flow = self.half_opens(Flow(WEB, S1))
        self.client_sends(flow, flow.data(), completed(S1))
        self.client_sends(flow, flow.ack())
        self.client_sends(flow, flow.data())


class CompletedOnce(StageTest):
    """A completed handshake counts once, whatever follows; data from the server does not complete a handshake."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.client_sends(flow, flow.ack())
        self.assertPinned(flow, PinState.PENDING)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.server_sends(flow, flow.reply(b"early", flags="PA", seq=5001, ack=1001))
        self.assertPinned(flow, PinState.ANSWERED)
        self.client_sends(flow, flow.ack(), completed(S1))
        self.client_sends(flow, flow.ack())


class NotCompletedByEnd(StageTest):
    """A client's FIN or RST does not complete a handshake."""

    def runTest(self) -> None:
        for port, flags, state in ((40001, "FA", PinState.CLIENT_CLOSING), (40002, "R", PinState.CLIENT_RESET)):
            flow = self.half_opens(Flow(WEB, S1, client_port=port))
            self.client_sends(flow, flow.request(flags=flags, seq=1001, ack=5001))
            self.assertPinned(flow, state)


class Refusal(StageTest):
    """The RST of a closed port counts as a reset, not as a SYN-ACK."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.server_sends(flow, flow.reply(flags="RA", seq=0, ack=1001), was_reset(S1))
        self.assertPinned(flow, PinState.RESET)


class ResetByClient(StageTest):
    """A client's RST does not count for the server."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.client_sends(flow, flow.request(flags="R", seq=1001))


class EachServerItsOwn(StageTest):
    """SYNs count for the server that received them, and SYN-ACKs for the server that sent them."""

    def runTest(self) -> None:
        for port, server in ((40001, S1), (40002, S2), (40003, S3)):
            self.weigh(WEB, {server: 1})
            self.establishes(Flow(WEB, server, client_port=port))


class AnswerOfStranger(StageTest):
    """A SYN-ACK counts as a first one for the server that sent it, even if the connection is pinned to another server.

    The switch cannot match that SYN-ACK with a SYN. It had counted a SYN for that server, too.
    """

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        stranger = flow.to(S3)
        self.server_sends(stranger, stranger.syn_ack(), first_answer(S3))
        self.server_sends(stranger, stranger.syn_ack(), first_answer(S3))
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))


class AnswerWithoutPin(StageTest):
    """If the connection has no pin, each SYN-ACK counts as a first one, and an RST counts for its sender."""

    def runTest(self) -> None:
        flow = Flow(WEB, S3)
        self.server_sends(flow, flow.syn_ack(), first_answer(S3))
        self.client_sends(flow, flow.ack(), unpinned_mid(WEB))
        self.server_sends(flow, flow.reply(flags="R", seq=5001), [was_reset(S3), disowned(WEB)])


class Disowned(StageTest):
    """An RST without ACK counts as disowned if the connection is not pinned to the server that sent the RST."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        for server, flags, counts in (
            (S2, "R", [was_reset(S2), disowned(WEB)]),
            (S2, "RA", [was_reset(S2)]),
            (S1, "R", [was_reset(S1)]),
        ):
            at = flow.to(server)
            self.server_sends(at, at.reply(flags=flags, seq=5001), counts)


class Wraps(StageTest):
    """The counting cells wrap at 2^32, and differences of counts are still correct."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        before = self.switch.registers.read([(Register.LEDGER_SYN, S1.id)])[0]
        self.switch.registers.write(Register.LEDGER_SYN, S1.id, (1 << 32) - 1)
        self.addCleanup(self.switch.registers.write, Register.LEDGER_SYN, S1.id, before)
        self._counts = self.switch.counts()
        self.opens(flow)
        self.assertEqual(self.switch.registers.read([(Register.LEDGER_SYN, S1.id)]), [0])
