"""Tests of stage `closing`: late segments of a closed connection, and closings that one side did not receive."""

from __future__ import annotations

from harness import plan
from harness.closing import GET, STAMPS, WRAP, Closing
from harness.frames import changed
from harness.plan import S1
from sluice.names import (
    PROBE_TIME,
    DropReason,
    PinState,
)


class Afterwards(Closing):
    """After a closing the client's ACK of the FIN is dropped, and the client's FIN is forwarded.

    The server's RST without ACK, which answers that FIN, is not counted.
    """

    def runTest(self) -> None:
        talk = self.closed()
        self.drops(plan.CLIENT, talk.request(ack=talk.server + 1), DropReason.CLOSED)
        self.drops(plan.CLIENT, talk.request(ack=talk.server - 1), DropReason.CLOSED)
        self.server_sends(talk.flow, talk.reply(flags="FA"))
        self.client_sends(talk.flow, talk.request(flags="FA", ack=talk.server + 1))
        self.server_sends(talk.flow, talk.flow.reply(flags="R", seq=talk.server + 1))
        self.refuses(talk)
        self.assertLoad(0)
        self.assertCounts(taken=1)


class ResetAgain(Closing):
    """A server that still sends has not received the RST, so the switch sends the RST again."""

    def runTest(self) -> None:
        talk = self.closed()
        keepalive = talk.reply(seq=talk.server - 1)
        for frame, length in (
            (talk.answer(), 0),
            (keepalive, 0),
            (talk.reply(b"late", "PA"), 4),
            (talk.reply(b"late", "FPA"), 5),
        ):
            answer = talk.reset_to(frame, flow_is_server=True, length=length)
            self.answers(S1.host.port, frame, answer, DropReason.CLOSED_RESET)
        self.assertCounts(taken=1)
        self.assertLoad(0)


class FinAgain(Closing):
    """The switch answers every bare ACK or keepalive of a client that has not acknowledged the FIN by the FIN again."""

    def runTest(self) -> None:
        talk = self.closed(client=WRAP - 5, server=WRAP - 7)
        before = (talk.client - 1) % WRAP
        stamps = [*STAMPS[:2], ("Timestamp", (7, 9))]
        for frame, echoed in (
            (talk.request(), None),
            (talk.request(seq=before), None),
            (talk.request(b"\0", seq=before), None),
            (talk.request(options=stamps), (9, 7)),
            (talk.request(seq=before, options=stamps), (9, 7)),
            (talk.request(b"\0", seq=before, options=stamps), (9, 7)),
            (talk.request(options=[*stamps, *STAMPS[:2], ("SAck", (1, 2))]), (9, 7)),
            (talk.request(options=[("SAck", (1, 2)), ("NOP", None), ("NOP", None)]), None),
        ):
            with self.subTest(frame=frame.summary()):
                self.answers(plan.CLIENT, frame, talk.again_to(frame, echoed), DropReason.CLOSED_AGAIN)
        self.assertLoad(0)
        self.assertPinned(talk.flow, PinState.CLOSED)
        late = talk.request(b"!", "PA")
        answer = talk.reset_to(late, flow_is_server=False, length=1)
        self.answers(plan.CLIENT, late, answer, DropReason.CLOSED_RESET)
        self.assertCounts(taken=1, raced=1)


class KeepaliveAfterwards(Closing):
    """If a client has acknowledged the FIN but does not close, the switch answers its keepalives by an ACK."""

    def runTest(self) -> None:
        talk = self.closed()
        self.drops(plan.CLIENT, talk.request(ack=talk.server + 1), DropReason.CLOSED)
        for payload in (b"", b"\0"):
            frame = talk.request(payload, seq=talk.client - 1, ack=talk.server + 1)
            self.answers(plan.CLIENT, frame, talk.again_to(frame, fin=False), DropReason.CLOSED_AGAIN)
        self.drops(plan.CLIENT, talk.request(seq=talk.client - 1, ack=talk.server + 2), DropReason.CLOSED)
        self.assertCounts(taken=1)


class PayloadAfterwards(Closing):
    """The switch answers each payload of the client by an RST; the connection counts once as closed too early."""

    def runTest(self) -> None:
        talk = self.closed()
        for payload, flags, ack in ((GET, "PA", 0), (GET, "PA", 1), (b"!", "FPA", 1)):
            frame = talk.request(payload, flags, ack=talk.server + ack)
            length = len(payload) + ("F" in flags)
            answer = talk.reset_to(frame, flow_is_server=False, length=length)
            self.answers(plan.CLIENT, frame, answer, DropReason.CLOSED_RESET)
        self.assertCounts(taken=1, raced=1)
        self.assertLoad(0)


class TakenBack(Closing):
    """Payload of client or server between tickle and answer cancels the attempt, and the connection stays open."""

    def runTest(self) -> None:
        for port, act in enumerate((self.asks, self.serves), start=40001):
            with self.subTest(by=act.__name__):
                talk = self.idle(port)
                self.tickles(talk)
                act(talk)
                self.passes_answer(talk)
                self.assertPinned(talk.flow, PinState.ESTABLISHED)
                self.refuses(talk)
        self.assertCounts(back=2)
        self.assertLoad(2)


class TakenBackUnanswered(Closing):
    """If the server answers the tickle before it receives the client's next request, the answer closes nothing."""

    def runTest(self) -> None:
        talk = self.idle()
        self.tickles(talk)
        late = talk.answer()
        self.asks(talk)
        self.server_sends(talk.flow, late)
        self.serves_acknowledged(talk)
        self.assertCounts(back=1)
        self.ends(talk)


class LostTickle(Closing):
    """Without an answer an attempt expires, and a later ACK closes nothing; a second attempt closes."""

    def runTest(self) -> None:
        talk = self.idle()
        self.passes_answer(talk)
        self.tickles(talk)
        self.pass_ticks(PROBE_TIME + 1)
        self.passes_answer(talk)
        self.assertCounts()
        self.ends(talk)
        self.assertCounts(taken=1)


class OddPayloadAfterwards(Closing):
    """The RST that answers a client's payload is valid, also if the segment has more flags or is a fragment."""

    def runTest(self) -> None:
        talk = self.closed()
        for frame, length in (
            (talk.request(GET, "SFPA"), len(GET) + 1),
            (changed(talk.request(GET, "PA"), IP_flags="MF"), len(GET)),
        ):
            answer = talk.reset_to(frame, flow_is_server=False, length=length)
            self.answers(plan.CLIENT, frame, answer, DropReason.CLOSED_RESET)
