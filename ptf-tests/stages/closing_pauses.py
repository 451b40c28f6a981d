"""Tests of stage `closing`: a connection whose response pauses is not closed, and the switch counts the pauses."""

from __future__ import annotations

from harness.closing import CONTINUE, PAGE, Closing
from sluice.names import (
    PAUSE_LENGTH_BITS,
)


class LeastAge(Closing):
    """A tickle that requires an idle time of n ticks is accepted after exactly n ticks."""

    def runTest(self) -> None:
        talk = self.idle()
        self.pass_ticks(3)
        self.tickles(talk, least_age=3)


class Continues(Closing):
    """After `100 Continue`, a connection is not idle until the response itself has been acknowledged.

    If the last segment of a longer response is as short as `100 Continue`, the connection is idle after that segment.
    """

    def runTest(self) -> None:
        talk = self.opened()
        self.asks(talk)
        self.serves_acknowledged(talk, CONTINUE)
        self.refuses(talk)
        self.asks(talk, b"body")
        self.serves(talk)
        self.serves_acknowledged(talk, CONTINUE)
        self.ends(talk)


class Pauses(Closing):
    """The pause before an acknowledged response is counted in the class of its length, which is the time for which the
    connection seemed idle."""

    def runTest(self) -> None:
        talk = self.idle()
        self.assertPauses(of_0=1)
        self.ages(talk, 70)
        self.serves(talk)
        self.serves(talk)
        self.assertPauses(of_0=1)
        self.client_sends(talk.flow, talk.request())
        self.assertPauses(of_0=1, of_7=1)
        self.client_sends(talk.flow, talk.request())
        self.ages(talk, 300)
        self.serves(talk)
        self.asks(talk)
        self.assertPauses(of_0=1, of_7=1, of_9=1)
        self.serves_acknowledged(talk)
        self.assertPauses(of_0=2, of_7=1, of_9=1)


class LongPauses(Closing):
    """Pauses are counted by powers of two of ticks, up to 18 minutes; all longer pauses share one count."""

    def runTest(self) -> None:
        expected = {"of_0": 1}
        talk = self.idle()
        for length in range(6, 1 << PAUSE_LENGTH_BITS):
            self.ages(talk, 1 << (length - 1))
            self.serves_acknowledged(talk)
            expected[f"of_{length}"] = 1
        self.ages(talk, 1 << 20)
        self.serves_acknowledged(talk)
        self.assertPauses(**expected | {"of_15": 2})


class PauseBeforeTheEnd(Closing):
    """A response that ends with its connection is counted with the FIN, which may have a segment of its own."""

    def runTest(self) -> None:
        for port, flags in ((40001, "FA"), (40002, "FPA")):
            talk = self.idle(port)
            self.ages(talk, 70)
            if flags == "FA":
                self.serves(talk, 4 * PAGE)
                self.server_sends(talk.flow, talk.reply(flags=flags))
            else:
                self.server_sends(talk.flow, talk.reply(4 * PAGE, flags=flags))
        self.assertPauses(of_0=2, of_7=2)


class NoPauses(Closing):
    """A server's retransmission ends no pause, and neither does a short last payload, such as TLS's closing alert."""

    def runTest(self) -> None:
        talk = self.idle()
        self.ages(talk, 70)
        self.server_sends(talk.flow, talk.reply(PAGE, "PA", seq=talk.server - len(PAGE)))
        self.client_sends(talk.flow, talk.request())
        self.assertPauses(of_0=2)
        self.ages(talk, 70)
        self.serves(talk, b"alert")
        self.server_sends(talk.flow, talk.reply(flags="FA"))
        self.client_sends(talk.flow, talk.request(ack=talk.server + 1))
        self.client_sends(talk.flow, talk.request(flags="FA", ack=talk.server + 1))
        self.assertPauses(of_0=2)
