"""Stage `transfers`: which retransmissions are loss events, time-outs and probes, as the sender counts them."""

from __future__ import annotations

from harness.flow import ANSWER
from harness.transfers import MSS, SECOND, SILENCE, Established


class LossEvents(Established):
    """Losses of one window are one event; what is lost of the next window is another."""

    def runTest(self) -> None:
        for place in range(8):
            self.sends(self.flow, place * MSS)
        for place in (1, 3, 4):
            self.acknowledges(self.flow, place * MSS)
            self.sends(self.flow, place * MSS)
        self.assertSeen(self.flow, again=3, losses=1, segments=11, sent=8 * MSS)
        self.acknowledges(self.flow, 8 * MSS)
        for place in range(8, 10):
            self.sends(self.flow, place * MSS)
        self.sends(self.flow, 8 * MSS)
        self.assertSeen(self.flow, again=4, losses=2)


class Spurious(Established):
    """What was acknowledged and comes again was not lost: its ACK was late, or lost."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.sends(self.flow, MSS)
        self.acknowledges(self.flow, 2 * MSS)
        self.sends(self.flow, 0)
        self.assertSeen(self.flow, again=1, losses=0)


class Repacked(Established):
    """A retransmission that carries new bytes behind the old ones is one, and moves the edge."""

    def runTest(self) -> None:
        self.sends(self.flow, 0, 600)
        self.sends(self.flow, 0, 1000)
        self.assertSeen(self.flow, again=1, losses=1, sent=1000, under_way=1000)
        self.sends(self.flow, 1000)
        self.assertSeen(self.flow, again=1, holes=0, sent=2000)


class Timeouts(Established):
    """A retransmission of the first segment behind a silence is a timeout's; all those behind it are one loss event."""

    def runTest(self) -> None:
        for place in range(3):
            self.sends(self.flow, place * MSS)
        for count in (1, 2):
            self.passes(self.flow, SILENCE)
            self.sends(self.flow, 0)
            self.assertSeen(self.flow, timeouts=count, losses=1, again=count, probes=0)


class NoTimeout(Established):
    """One behind an ACK is none, however long ago the server has sent its last segment."""

    def runTest(self) -> None:
        for place in range(3):
            self.sends(self.flow, place * MSS)
        self.put_least(self.flow, 100 * SECOND)
        self.passes(self.flow, 60 * SECOND)
        self.acknowledges(self.flow, MSS)
        self.sends(self.flow, MSS)
        self.assertSeen(self.flow, again=1, losses=1, timeouts=0)


class TailLossProbe(Established):
    """The last segment again, behind a silence, while others are under way: neither a timeout nor by itself a loss."""

    def runTest(self) -> None:
        for place in range(3):
            self.sends(self.flow, place * MSS)
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, 2 * MSS)
        self.assertSeen(self.flow, again=1, probes=1, timeouts=0, losses=0)
        self.acknowledges(self.flow, MSS)
        self.sends(self.flow, MSS)
        self.assertSeen(self.flow, again=2, probes=1, losses=1)


class ProbeRepairs(Established):
    """A tail-loss probe was needed if what follows is acknowledged, and the probe itself not as a second copy."""

    def probes(self) -> None:
        """The last segment of a flight, twice."""
        for place in range(3):
            self.sends(self.flow, place * MSS)
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, 2 * MSS)

    def runTest(self) -> None:
        self.probes()
        self.acknowledges(self.flow, 2 * MSS)
        self.acknowledges(self.flow, 3 * MSS)
        self.assertSeen(self.flow, losses=0, probes=1)
        self.sends(self.flow, 3 * MSS)
        self.acknowledges(self.flow, 4 * MSS)
        self.assertSeen(self.flow, losses=1, probes=1, again=1, timeouts=0)
        self.sends(self.flow, 4 * MSS)
        self.acknowledges(self.flow, 5 * MSS)
        self.assertSeen(self.flow, losses=1)


class ProbeTooMany(ProbeRepairs):
    """Both copies have come: the client says so by a DSACK (RFC 2883), or by the same acknowledgement once more."""

    def runTest(self) -> None:
        number = ANSWER + 1 + 2 * MSS
        dsack = [("NOP", None), ("NOP", None), ("SAck", (number, number + MSS))]
        for options in (dsack, []):
            with self.subTest(options=options):
                self.forget()
                self.switch.clear_connections()
                self.establishes(self.flow)
                self.probes()
                if not options:
                    self.acknowledges(self.flow, 3 * MSS)
                self.acknowledges(self.flow, 3 * MSS, options=options)
                self.sends(self.flow, 3 * MSS)
                self.acknowledges(self.flow, 4 * MSS)
                self.assertSeen(self.flow, losses=0, probes=1)


class ProbeOfTheOnlySegment(ProbeRepairs):
    """Of a flight of one segment the first repetition is a tail-loss probe as well, and the second a timeout's."""

    def probes(self) -> None:
        """A segment twice, with nothing else under way."""
        self.sends(self.flow, 0)
        self.acknowledges(self.flow, MSS)
        self.sends(self.flow, MSS)
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, MSS)
        self.assertSeen(self.flow, again=1, probes=1, timeouts=0, losses=0)

    def runTest(self) -> None:
        number = ANSWER + 1 + MSS
        dsack = [("NOP", None), ("NOP", None), ("SAck", (number, number + MSS))]
        for options, losses in ((dsack, 0), ([], 1)):
            with self.subTest(options=options):
                self.forget()
                self.switch.clear_connections()
                self.establishes(self.flow)
                self.probes()
                self.acknowledges(self.flow, 2 * MSS, options=options)
                self.sends(self.flow, 2 * MSS)
                self.acknowledges(self.flow, 3 * MSS)
                self.assertSeen(self.flow, losses=losses, probes=1, timeouts=0)
        self.sends(self.flow, 3 * MSS)
        for _ in range(2):
            self.passes(self.flow, 30 * SECOND)
            self.sends(self.flow, 3 * MSS)
        self.assertSeen(self.flow, losses=2, probes=2, timeouts=1, again=3)


class ProbeOfTheEnd(Established):
    """A last segment with a FIN is a tail-loss probe's like any other."""

    def runTest(self) -> None:
        for place in range(2):
            self.sends(self.flow, place * MSS)
        self.sends(self.flow, 2 * MSS, flags="FA")
        self.passes(self.flow, SECOND)
        self.sends(self.flow, 2 * MSS, flags="FA")
        self.assertSeen(self.flow, again=1, probes=1, timeouts=0, losses=0)


class Copied(Established):
    """The last segment directly behind itself, sooner than an ACK comes back, is a copy that the network has made."""

    def runTest(self) -> None:
        self.put_least(self.flow, 100 * SECOND)
        for place in (0, 1, 1, 2, 2, 2):
            self.sends(self.flow, place * MSS)
        self.assertSeen(self.flow, again=0, losses=0, holes=0, segments=6, sent=3 * MSS)
        # Behind an ACK, or another segment, it is a retransmission like any other.
        self.acknowledges(self.flow, 2 * MSS)
        self.sends(self.flow, 2 * MSS)
        self.assertSeen(self.flow, again=1, losses=1)
        self.sends(self.flow, 3 * MSS)
        self.sends(self.flow, 2 * MSS)
        self.sends(self.flow, 3 * MSS)
        self.assertSeen(self.flow, again=3, losses=2)


class ProbeLostToo(ProbeRepairs):
    """A timeout behind a tail-loss probe is the loss event."""

    def runTest(self) -> None:
        self.probes()
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, 0)
        self.assertSeen(self.flow, losses=1, probes=1, timeouts=1)
        self.acknowledges(self.flow, 3 * MSS)
        self.sends(self.flow, 3 * MSS)
        self.acknowledges(self.flow, 4 * MSS)
        self.assertSeen(self.flow, losses=1)


class Keepalive(Established):
    """A byte in front of the edge, or none at all: a keepalive or a window probe, which is no segment and no loss."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.acknowledges(self.flow, MSS)
        cells = self.cells(self.flow)
        self.sends(self.flow, MSS - 1, 1)
        self.sends(self.flow, MSS - 1, 0)
        self.assertEqual(self.cells(self.flow)[1:], cells[1:])


class WindowProbe(Established):
    """The first byte behind a closed window, sent until the window opens: counted once."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.acknowledges(self.flow, MSS)
        for _ in range(3):
            self.passes(self.flow, SECOND)
            self.acknowledges(self.flow, MSS, window=0)
            self.sends(self.flow, MSS, 1)
        self.assertSeen(self.flow, segments=2, sent=MSS + 1, again=0, timeouts=0, losses=0)


class LastByte(Established):
    """A last segment of one byte that comes again is a probe like any other, and ends the timing."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.acknowledges(self.flow, MSS)
        before = self.seen(self.flow)
        self.sends(self.flow, MSS, 1)
        self.passes(self.flow, 3 * SECOND)
        self.sends(self.flow, MSS, 1)
        self.assertSeen(self.flow, segments=3, again=1, probes=1, timeouts=0, losses=0)
        self.acknowledges(self.flow, MSS + 1)
        self.assertSeen(self.flow, rtt_count=before["rtt_count"], rtt_sum_us=before["rtt_sum_us"])
        self.sends(self.flow, MSS + 1, 1)
        self.acknowledges(self.flow, MSS + 2)
        self.assertSeen(self.flow, losses=1)


class Hole(Established):
    """What is missing in front of the switch is a hole. Lost, it is filled a round trip later at the earliest."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.sends(self.flow, 2 * MSS)
        self.assertSeen(self.flow, holes=1, again=0, sent=3 * MSS, segments=2, under_way=3 * MSS)
        self.put_least(self.flow, 100 * SECOND)
        self.passes(self.flow, 101 * SECOND)
        self.sends(self.flow, MSS)
        self.assertSeen(self.flow, holes=1, again=1, losses=1)


class Late(Established):
    """What fills holes sooner was late: no loss. A retransmission of what lies before the hole is one."""

    def runTest(self) -> None:
        self.put_least(self.flow, 100 * SECOND)
        for place in (0, 1, 3, 5, 4, 2):
            self.sends(self.flow, place * MSS)
        self.assertSeen(self.flow, holes=2, again=0, losses=0, segments=6, sent=6 * MSS)
        self.sends(self.flow, MSS)
        self.assertSeen(self.flow, holes=2, again=1, losses=1)
        self.passes(self.flow, 101 * SECOND)
        self.acknowledges(self.flow, 6 * MSS)
        for place in (7, 6):
            self.sends(self.flow, place * MSS)
        self.assertSeen(self.flow, holes=3, again=1, losses=1)
