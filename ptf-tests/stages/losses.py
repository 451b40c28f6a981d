"""Tests of stage `transfers`: which retransmissions are loss events, timeouts and probes, as senders count them."""

from __future__ import annotations

from harness.flow import ANSWER
from harness.transfers import MSS, SECOND, SILENCE, Established


class LossEvents(Established):
    """Losses within one window are one loss event; a loss in the next window is another event."""

    def runTest(self) -> None:
        self.sends_each(range(8))
        for place in (1, 3, 4):
            self.acknowledges(self.flow, place * MSS)
            self.sends(self.flow, place * MSS)
        self.assertMeasured(self.flow, again=3, losses=1, segments=11, sent=8 * MSS)
        self.acknowledges(self.flow, 8 * MSS)
        self.sends_each(range(8, 10))
        self.sends(self.flow, 8 * MSS)
        self.assertMeasured(self.flow, again=4, losses=2)


class Spurious(Established):
    """A retransmission of acknowledged data is no loss, because only its ACK was late or lost."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.delivers(MSS)
        self.sends(self.flow, 0)
        self.assertMeasured(self.flow, again=1, losses=0)


class Repacked(Established):
    """A retransmission with additional new bytes counts as one retransmission, and moves the edge of sent data."""

    def runTest(self) -> None:
        self.sends(self.flow, 0, 600)
        self.sends(self.flow, 0, 1000)
        self.assertMeasured(self.flow, again=1, losses=1, sent=1000, under_way=1000)
        self.sends(self.flow, 1000)
        self.assertMeasured(self.flow, again=1, holes=0, sent=2000)


class Timeouts(Established):
    """A retransmission of the first segment after a silence is a timeout; successive timeouts are one loss event."""

    def runTest(self) -> None:
        self.sends_each(range(3))
        for count in (1, 2):
            self.passes(self.flow, SILENCE)
            self.sends(self.flow, 0)
            self.assertMeasured(self.flow, timeouts=count, losses=1, again=count, probes=0)


class NoTimeout(Established):
    """A retransmission after an ACK is no timeout, however long ago the server has sent its last segment."""

    def runTest(self) -> None:
        self.sends_each(range(3))
        self.put_least(self.flow, 100 * SECOND)
        self.passes(self.flow, 60 * SECOND)
        self.acknowledges(self.flow, MSS)
        self.sends(self.flow, MSS)
        self.assertMeasured(self.flow, again=1, losses=1, timeouts=0)


class TailLossProbe(Established):
    """A repeated last segment after a silence, with other segments in flight, is a probe: neither timeout nor loss."""

    def runTest(self) -> None:
        self.sends_each(range(3))
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, 2 * MSS)
        self.assertMeasured(self.flow, again=1, probes=1, timeouts=0, losses=0)
        self.acknowledges(self.flow, MSS)
        self.sends(self.flow, MSS)
        self.assertMeasured(self.flow, again=2, probes=1, losses=1)


class ProbeRepairs(Established):
    """A tail-loss probe counts as a loss if later data is acknowledged and the client reports no duplicate."""

    def probes(self) -> None:
        """Send three segments, and after a silence the last one again."""
        self.sends_each(range(3))
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, 2 * MSS)

    def runTest(self) -> None:
        self.probes()
        self.acknowledges(self.flow, 2 * MSS)
        self.acknowledges(self.flow, 3 * MSS)
        self.assertMeasured(self.flow, losses=0, probes=1)
        self.delivers(3 * MSS)
        self.assertMeasured(self.flow, losses=1, probes=1, again=1, timeouts=0)
        self.delivers(4 * MSS)
        self.assertMeasured(self.flow, losses=1)


class ProbeTooMany(ProbeRepairs):
    """If the client received both the original segment and its tail-loss probe, it sends a DSACK (RFC 2883) or repeats
    its ACK, and no loss is counted."""

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
                self.delivers(3 * MSS)
                self.assertMeasured(self.flow, losses=0, probes=1)


class ProbeOfTheOnlySegment(ProbeRepairs):
    """If one segment is in flight, its first repetition is a tail-loss probe, and its second is a timeout."""

    def probes(self) -> None:
        """Send a segment twice, with no other segment in flight."""
        self.delivers(0)
        self.sends(self.flow, MSS)
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, MSS)
        self.assertMeasured(self.flow, again=1, probes=1, timeouts=0, losses=0)

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
                self.delivers(2 * MSS)
                self.assertMeasured(self.flow, losses=losses, probes=1, timeouts=0)
        self.sends(self.flow, 3 * MSS)
        for _ in range(2):
            self.passes(self.flow, 30 * SECOND)
            self.sends(self.flow, 3 * MSS)
        self.assertMeasured(self.flow, losses=2, probes=2, timeouts=1, again=3)


class ProbeOfTheEnd(Established):
    """A repeated last segment is a tail-loss probe even if it has a FIN."""

    def runTest(self) -> None:
        self.sends_each(range(2))
        self.sends(self.flow, 2 * MSS, flags="FA")
        self.passes(self.flow, SECOND)
        self.sends(self.flow, 2 * MSS, flags="FA")
        self.assertMeasured(self.flow, again=1, probes=1, timeouts=0, losses=0)


class Copied(Established):
    """A repeated last segment that follows sooner than an ACK can return counts as a copy that the network made:
    neither retransmission nor loss."""

    def runTest(self) -> None:
        self.put_least(self.flow, 100 * SECOND)
        self.sends_each((0, 1, 1, 2, 2, 2))
        self.assertMeasured(self.flow, again=0, losses=0, holes=0, segments=6, sent=3 * MSS)
        # After an ACK or another segment, the repeated segment is a retransmission.
        self.acknowledges(self.flow, 2 * MSS)
        self.sends(self.flow, 2 * MSS)
        self.assertMeasured(self.flow, again=1, losses=1)
        self.sends(self.flow, 3 * MSS)
        self.sends(self.flow, 2 * MSS)
        self.sends(self.flow, 3 * MSS)
        self.assertMeasured(self.flow, again=3, losses=2)


class ProbeLostToo(ProbeRepairs):
    """If a timeout follows a tail-loss probe, the timeout is the loss event."""

    def runTest(self) -> None:
        self.probes()
        self.passes(self.flow, 30 * SECOND)
        self.sends(self.flow, 0)
        self.assertMeasured(self.flow, losses=1, probes=1, timeouts=1)
        self.acknowledges(self.flow, 3 * MSS)
        self.delivers(3 * MSS)
        self.assertMeasured(self.flow, losses=1)


class Keepalive(Established):
    """A byte before the edge of sent data, or an empty segment, is a keepalive: no segment or loss is counted."""

    def runTest(self) -> None:
        self.delivers(0)
        cells = self.cells(self.flow)
        self.sends(self.flow, MSS - 1, 1)
        self.sends(self.flow, MSS - 1, 0)
        self.assertEqual(self.cells(self.flow)[1:], cells[1:])


class WindowProbe(Established):
    """The first byte after a closed window, repeated until the window opens, is counted once."""

    def runTest(self) -> None:
        self.delivers(0)
        for _ in range(3):
            self.passes(self.flow, SECOND)
            self.acknowledges(self.flow, MSS, window=0)
            self.sends(self.flow, MSS, 1)
        self.assertMeasured(self.flow, segments=2, sent=MSS + 1, again=0, timeouts=0, losses=0)


class LastByte(Established):
    """A repeated last segment of one byte is a tail-loss probe; no round trip is measured by a repeated segment."""

    def runTest(self) -> None:
        self.delivers(0)
        before = self.columns(self.flow)
        self.sends(self.flow, MSS, 1)
        self.passes(self.flow, 3 * SECOND)
        self.sends(self.flow, MSS, 1)
        self.assertMeasured(self.flow, segments=3, again=1, probes=1, timeouts=0, losses=0)
        self.acknowledges(self.flow, MSS + 1)
        self.assertMeasured(self.flow, rtt_count=before["rtt_count"], rtt_sum_us=before["rtt_sum_us"])
        self.sends(self.flow, MSS + 1, 1)
        self.acknowledges(self.flow, MSS + 2)
        self.assertMeasured(self.flow, losses=1)


class Hole(Established):
    """Data that is missing at the switch is a hole; data that fills the hole after a round trip was retransmitted."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.sends(self.flow, 2 * MSS)
        self.assertMeasured(self.flow, holes=1, again=0, sent=3 * MSS, segments=2, under_way=3 * MSS)
        self.put_least(self.flow, 100 * SECOND)
        self.passes(self.flow, 101 * SECOND)
        self.sends(self.flow, MSS)
        self.assertMeasured(self.flow, holes=1, again=1, losses=1)


class Late(Established):
    """A segment that fills a hole within a round trip is late, not lost; a retransmission of old data is a loss."""

    def runTest(self) -> None:
        self.put_least(self.flow, 100 * SECOND)
        self.sends_each((0, 1, 3, 5, 4, 2))
        self.assertMeasured(self.flow, holes=2, again=0, losses=0, segments=6, sent=6 * MSS)
        self.sends(self.flow, MSS)
        self.assertMeasured(self.flow, holes=2, again=1, losses=1)
        self.passes(self.flow, 101 * SECOND)
        self.acknowledges(self.flow, 6 * MSS)
        self.sends_each((7, 6))
        self.assertMeasured(self.flow, holes=3, again=1, losses=1)
