"""Tests of stage `transfers`: the cells of a measured transfer after each kind of segment, and after random ones."""

from __future__ import annotations

import math
import random
from typing import Any

from harness import bulk, entries
from harness.base import again, completed, first_answer, repeated_answer, was_reset
from harness.collisions import crowd
from harness.flow import ANSWER, FIRST, Flow
from harness.frames import TCP
from harness.plan import CLIENT, S1, S2, S3, WEB
from harness.transfers import CELLS, MSS, SECOND, SILENCE, Established, TransferTest, older
from sluice.dataplane.memory import Memory
from sluice.dataplane.transfers import (
    ENDED_TICKS,
    OWNED_TICKS,
    TIME_BITS,
    UNANSWERED_TICKS,
    Segment,
    TransferCells,
)
from sluice.names import TICK_US, PinState, Register

LONG = (OWNED_TICKS + 20) * TICK_US


def sharing(flow: Flow, number: int = 1) -> list[Flow]:
    """Return up to `number` other connections that are measured in the same slot."""
    slot = flow.key.slot_1 % 4096
    connections = [Flow.of(key, WEB, S1) for key in bulk.keys(WEB, 60_000, seed=5) if key.slot_1 % 4096 == slot]
    return connections[:number]


class Beginning(TransferTest):
    """The SYN-ACK claims the slot and stores what identifies the connection; no segment is counted yet."""

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.assertUnowned(flow)
        self.server_sends(flow, flow.syn_ack(), first_answer(S1))
        self.assertMeasured(
            flow, flow=flow.key.slot_1, fingerprint=flow.key.fingerprint, server=S1.id, segments=0, sent=0, rtt_count=0
        )
        self.client_sends(flow, flow.ack(), completed(S1))
        self.assertMeasured(flow, segments=0, sent=0, again=0, rtt_count=1, under_way=0)


class HandshakesRoundTrip(TransferTest):
    """The first round trip is measured from the SYN-ACK to the client's ACK."""

    def runTest(self) -> None:
        flow = self.half_opens(Flow(WEB, S1))
        self.passes(flow, 2 * SECOND)
        self.client_sends(flow, flow.ack(), completed(S1))
        self.assertGreater(self.columns(flow)["least_rtt_s"], 2)
        self.assertLess(self.columns(flow)["least_rtt_s"], 20)


class AnsweredTwice(TransferTest):
    """After a repeated SYN-ACK, no round trip is measured from the handshake."""

    def runTest(self) -> None:
        flow = self.half_opens(Flow(WEB, S1))
        self.server_sends(flow, flow.syn_ack(), repeated_answer(S1))
        self.client_sends(flow, flow.ack(), completed(S1))
        self.assertMeasured(flow, rtt_count=0, segments=0)
        self.assertTrue(math.isnan(self.columns(flow)["least_rtt_s"]))


class StartsAnew(TransferTest):
    """The start of a connection overwrites every cell of its slot."""

    def runTest(self) -> None:
        flow = Flow(WEB, S1)
        slot = self.measured(flow).slot
        for register in CELLS[1:]:
            self.switch.registers.write(register, slot, (1 << 31) - 1)
        self.establishes(flow)
        self.assertMeasured(
            flow, segments=0, sent=0, again=0, losses=0, timeouts=0, probes=0, holes=0, mss=0, under_way=0, flight=0
        )
        self.assertMeasured(flow, rtt_count=1)
        self.sends(flow, 0)
        self.assertMeasured(flow, segments=1, sent=MSS, again=0, under_way=MSS)


class OtherServers(TransferTest):
    """Transfers of servers that are not managed are not measured."""

    def runTest(self) -> None:
        self.weigh(WEB, {S3: 1})
        flow = self.establishes(Flow(WEB, S3))
        self.sends(flow, 0)
        self.assertUnowned(flow)


class NotFromItsBeginning(TransferTest):
    """A connection whose handshake did not pass the switch is not measured."""

    def runTest(self) -> None:
        flow = self.put_pin(Flow(WEB, S1), PinState.ESTABLISHED, age=0)
        self.sends(flow, 0)
        self.acknowledges(flow, MSS)
        self.assertUnowned(flow)


class Sample(TransferTest):
    """With sampling n, one of 2^n connections is measured: those whose fingerprint ends in n zero bits."""

    def runTest(self) -> None:
        self.replace(entries.managed(S1, measured=1, sampling=2), entries.managed(S1, measured=1))
        slots: dict[int, Flow] = {}
        for key in bulk.keys(WEB, 40, seed=6):
            slots.setdefault(key.slot_1 % 4096, Flow.of(key, WEB, S1))
        chosen = 0
        for flow in slots.values():
            self.half_opens(flow)
            sampled = flow.key.fingerprint % 4 == 0
            chosen += sampled
            self.assertEqual(self.columns(flow)["flow"], flow.key.slot_1 if sampled else -1)
        self.assertTrue(3 <= chosen <= 20, chosen)


class SecondWay(TransferTest):
    """A connection in way 2 (pinned by its second hash) has a connection number above all numbers of way 1."""

    def runTest(self) -> None:
        flows = self.fills_both_ways(crowd())
        self.assertPinned(flows.second, PinState.ESTABLISHED, way=2)
        self.sends(flows.second, 0)
        columns = self.columns(flows.second, way=1)
        self.assertEqual((columns["flow"], columns["segments"]), (self.measured(flows.second, way=1).number, 1))


class Taken(Established):
    """Of two transfers in one slot the first is measured, until it has been silent for half a minute."""

    def runTest(self) -> None:
        second, third = sharing(self.flow, 2)
        cells = self.cells(self.flow)
        self.establishes(second)
        self.sends(second, 0)
        self.acknowledges(second, MSS)
        self.assertEqual(self.cells(self.flow), cells)
        self.passes(self.flow, LONG)
        self.sends(second, MSS)
        self.assertMeasured(self.flow, flow=self.flow.key.slot_1, segments=0)
        self.establishes(third)
        self.assertMeasured(third, flow=third.key.slot_1, fingerprint=third.key.fingerprint, segments=0)
        self.sends(self.flow, 0)
        self.assertMeasured(third, flow=third.key.slot_1, segments=0)


class Ended(Established):
    """A connection that has ended frees its slot after two seconds; its last acknowledgements still count."""

    def ends(self) -> None:
        """End the connection by a FIN of the server, which counts as a byte in flight."""
        self.sends(self.flow, 0, flags="FA")
        self.assertMeasured(self.flow, segments=1, under_way=MSS + 1)
        self.acknowledges(self.flow, MSS + 1)
        self.assertMeasured(self.flow, under_way=0, rtt_count=2)

    def runTest(self) -> None:
        second, third = sharing(self.flow, 2)
        self.ends()
        self.passes(self.flow, SECOND // 10)
        self.establishes(second)
        self.assertMeasured(self.flow, flow=self.flow.key.slot_1)
        self.passes(self.flow, (OWNED_TICKS - ENDED_TICKS + 1) * TICK_US)
        self.establishes(third)
        self.assertMeasured(third, flow=third.key.slot_1)


class Reset(Ended):
    """A connection that was reset frees its slot after two seconds, like one that ended by FINs."""

    def ends(self) -> None:
        self.server_sends(self.flow, self.flow.reply(flags="R", seq=ANSWER + 1), was_reset(S1))


class Unanswered(TransferTest):
    """A handshake whose client never answers, as in a SYN flood, occupies the slot for four seconds."""

    def runTest(self) -> None:
        first = Flow(WEB, S1)
        second, third = sharing(first, 2)
        self.half_opens(first)
        self.establishes(second)
        self.assertMeasured(first, flow=first.key.slot_1)
        self.passes(first, (OWNED_TICKS - UNANSWERED_TICKS + 1) * TICK_US)
        self.establishes(third)
        self.assertMeasured(third, flow=third.key.slot_1)


class Counts(Established):
    """Segments with payload, their bytes, the largest segment and bytes in flight are counted; bare ACKs are not."""

    def runTest(self) -> None:
        self.sends(self.flow, 0, 100)
        self.sends(self.flow, 100, 900)
        self.sends(self.flow, 1000, 500, flags="PA")
        self.server_sends(self.flow, self.flow.reply(flags="A", seq=ANSWER + 1501, ack=FIRST + 1))
        self.assertMeasured(self.flow, segments=3, sent=1500, mss=900, under_way=1500, again=0, holes=0)
        self.assertMeasured(self.flow, flight=-(-1500 // 64) * 64)
        self.acknowledges(self.flow, 1000, b"next, please")
        self.assertMeasured(self.flow, segments=3, under_way=500, flight=-(-1500 // 64) * 64)


class ForeignAcknowledgements(Established):
    """An ACK of data that was never sent, or acknowledged long ago, changes nothing and ends no measurement."""

    def runTest(self) -> None:
        self.delivers(0)
        self.sends(self.flow, MSS)
        cells = self.cells(self.flow)
        for offset in (2 * MSS + 1, 1 << 30, 3 << 30, -1, 0):
            self.acknowledges(self.flow, offset)
        self.assertEqual(self.cells(self.flow)[1:], cells[1:])
        self.acknowledges(self.flow, 2 * MSS)
        self.assertMeasured(self.flow, under_way=0, rtt_count=3)


class OtherServersSegments(Established):
    """Segments of a server to which the connection is not pinned change nothing."""

    def runTest(self) -> None:
        cells = self.cells(self.flow)
        self.sends(self.flow.to(S2), 0)
        self.assertEqual(self.cells(self.flow), cells)


class RoundTrip(Established):
    """One segment at a time is timed, until an ACK of the complete segment; least and mean round trip are stored."""

    def runTest(self) -> None:
        before = self.columns(self.flow)
        self.sends(self.flow, 0)
        self.passes(self.flow, 3 * SECOND)
        self.sends(self.flow, MSS)
        self.acknowledges(self.flow, MSS - 1)
        self.assertMeasured(self.flow, rtt_count=1)
        self.acknowledges(self.flow, 2 * MSS)
        self.acknowledges(self.flow, 2 * MSS)
        columns = self.columns(self.flow)
        self.assertEqual(columns["rtt_count"], 2)
        spent = columns["rtt_sum_us"] - before["rtt_sum_us"]
        self.assertTrue(3 * SECOND < spent < 30 * SECOND, spent)
        self.assertEqual(columns["least_rtt_s"], before["least_rtt_s"])


class LeastIsForgotten(Established):
    """The first round trip of a period of 268 s replaces the stored least one, so that a longer path is noticed."""

    def runTest(self) -> None:
        least = self.cells(self.flow)[CELLS.index(Register.TRANSFER_LEAST)]
        self.put(self.flow, Register.TRANSFER_LEAST, (least >> 32) + 1 << 32 | 1)
        self.delivers(0)
        self.assertGreater(self.columns(self.flow)["least_rtt_s"], 2e-6)


class Ambiguous(Established):
    """Any retransmission ends the timing of a segment, because its ACK is ambiguous (Karn & Partridge)."""

    def runTest(self) -> None:
        self.sends_each((0, 1, 2, 1))
        self.acknowledges(self.flow, 3 * MSS)
        self.assertMeasured(self.flow, rtt_count=1, again=1)
        self.delivers(3 * MSS)
        self.assertMeasured(self.flow, rtt_count=2)


class NumbersWrap(TransferTest):
    """Sequence numbers wrap at 2^32 without a loss event; a later retransmission is a loss event."""

    first = (1 << 32) - 1500

    def runTest(self) -> None:
        flow = self.opens(Flow(WEB, S1))
        self.server_sends(flow, flow.reply(flags="SA", seq=self.first - 1, ack=FIRST + 1), first_answer(S1))
        ack = flow.request(flags="A", seq=FIRST + 1, ack=self.first)
        self.client_sends(flow, ack, completed(S1))
        shift = self.first - ANSWER - 1
        for place in range(3):
            self.sends(flow, shift + place * MSS)
        self.acknowledges(flow, shift + 3 * MSS)
        self.assertMeasured(flow, sent=3 * MSS, holes=0, again=0, under_way=0)
        far = (1 << 31) + (1 << 30)
        end = 0
        for done in range(
            3 * MSS, far, 1 << 30
        ):  # the test moves the edge of sent data in its cell, instead of sending 3 GB; the ACKs are real
            edge = (self.first + done + (1 << 30)) % (1 << 32)
            self.put(flow, Register.TRANSFER_EDGE, MSS << 32 | edge)
            self.acknowledges(flow, edge - ANSWER - 1)
            end = edge
        for place in (0, 1, 0):
            self.sends(flow, end - ANSWER - 1 + place * MSS)
        self.assertMeasured(flow, again=1, losses=1, holes=0, under_way=2 * MSS)


class Flight(Established):
    """The largest numbers of bytes in flight in the current and in the previous interval are stored, older ones not."""

    def interval_back(self, number: int) -> None:
        """Reduce the interval's number in the flow's cell of bytes in flight, as if `number` intervals had passed."""
        cell = self.cells(self.flow)[CELLS.index(Register.TRANSFER_FLIGHT)]
        now = (cell >> 48) - number & 0x7FFF
        self.put(self.flow, Register.TRANSFER_FLIGHT, now << 48 | cell & (1 << 48) - 1)

    def flights(self) -> tuple[int, int]:
        """Return the largest numbers of bytes in flight, in the previous interval and in the current interval."""
        cell = self.cells(self.flow)[CELLS.index(Register.TRANSFER_FLIGHT)]
        return (cell >> 24 & 0xFFFFFF) * 64, (cell & 0xFFFFFF) * 64

    def runTest(self) -> None:
        self.sends(self.flow, 0, 640)
        self.sends(self.flow, 640, 640)
        self.acknowledges(self.flow, 1280)
        self.interval_back(5)
        self.sends(self.flow, 1280, 640)
        self.assertEqual(self.flights(), (0, 640))
        cell = self.cells(self.flow)[CELLS.index(Register.TRANSFER_FLIGHT)]
        self.interval_back(1)
        self.sends(self.flow, 1920, 64)
        after = self.cells(self.flow)[CELLS.index(Register.TRANSFER_FLIGHT)]
        if (after >> 48) == (cell >> 48):  # no interval has begun since `cell` was read
            self.assertEqual(self.flights(), (640, 704))
        self.put(self.flow, Register.TRANSFER_EDGE, ANSWER + 1 + 1984 + (1 << 30))
        self.sends(self.flow, 1984 + (1 << 30), 64)
        self.assertEqual(self.flights()[1], 0xFFFFFF * 64)


class MovedPin(TransferTest):
    """If a candidate answered the handshake, the measurement starts with the ACK that moves the pin to that server."""

    def runTest(self) -> None:
        flow = self.establishes(Flow(WEB, S1))
        self.sends(flow, 0)
        self.drains()
        moved = flow.to(S2)
        self.client_sends(moved, flow.syn(), again(WEB, S2))
        answer = ANSWER + 70_000
        self.server_sends(moved, moved.reply(flags="SA", seq=answer, ack=FIRST + 1), first_answer(S2))
        self.assertMeasured(flow, server=S1.id, segments=1)
        self.client_sends(moved, moved.request(flags="A", seq=FIRST + 1, ack=answer + 1), completed(S2))
        self.assertMeasured(moved, server=S2.id, segments=0, under_way=0, rtt_count=0)
        self.sends(moved, 70_000)
        self.assertMeasured(moved, segments=1, sent=MSS, holes=0, again=0, under_way=MSS)


class PortsAgain(Established):
    """If a server accepts a new connection with the ports of one that is still pinned, all cells are reset."""

    def runTest(self) -> None:
        self.sends(self.flow, 0)
        self.client_sends(self.flow, self.flow.syn(), again(WEB, S1))
        answer = self.flow.reply(flags="SA", seq=ANSWER + 70_000, ack=FIRST + 1)
        self.server_sends(self.flow, answer, first_answer(S1))
        self.assertMeasured(self.flow, segments=0, under_way=0)
        self.sends(self.flow, 70_000)
        self.assertMeasured(self.flow, segments=1, holes=0, again=0)


FLAGS = ("A", "A", "A", "A", "A", "PA", "FA", "R")
PAUSES = (0, 0, 0, 0, SILENCE, 40 * SECOND)
PACKETS = 500
DSACK = (("NOP", None), ("NOP", None), ("SAck", (1, 2)))


class RandomSegments(TransferTest):
    """For random segments of both sides, the switch's cells equal those of sluice.dataplane.transfers."""

    seed = 1

    def setUp(self) -> None:
        super().setUp()
        self.source = random.Random(self.seed)
        first = Flow(WEB, S1)
        self.flows = [first, *sharing(first), Flow.of(bulk.keys(WEB, 1, seed=8)[0], WEB, S1)]
        self.memory = Memory()
        self.model = TransferCells(self.memory)
        self.slots = sorted({self.measured(flow).slot for flow in self.flows})
        self.time = 0
        self.nonzero_fields: set[str] = set()

    def state(self, flow: Flow) -> PinState:
        """Return the state of the flow's pin in the switch; PENDING if the flow has no pin."""
        pins = self.pins(flow.key)
        return pins[0].state if pins else PinState.PENDING

    def table(self) -> dict[tuple[Register, int], int]:
        """Return all cells that the segments may change, with their values."""
        names = [(register, slot) for slot in self.slots for register in CELLS]
        return dict(zip(names, self.switch.registers.read(names), strict=True))

    def pause(self, microseconds: int) -> None:
        """Set back the times in the cells of the switch and of the model by `microseconds`."""
        for slot in self.slots:
            cells = {register: self.memory.of(register)[slot] for register in CELLS}
            for register, value in older(cells, microseconds).items():
                self.memory.of(register)[slot] = value
                self.switch.registers.write(register, slot, value)

    def segment(self, flow: Flow) -> tuple[bool, Any]:
        """Return a random segment, with numbers near those in the slot: whether the server sends it, and the frame."""
        slot = self.measured(flow).slot
        edge = self.memory.of(Register.TRANSFER_EDGE)[slot] & 0xFFFFFFFF
        acked = self.memory.of(Register.TRANSFER_ACKED)[slot] & 0xFFFFFFFF
        draw = self.source.choice
        if self.source.random() < 0.6:
            flags, size = draw(FLAGS), draw((0, 1, 1, 100, MSS, MSS, 1400))
            starts = (
                edge,
                edge,
                edge,
                edge,
                edge - 1,
                edge - size,
                acked,
                acked - 100,
                edge + MSS,
                edge + 1,
                edge - 2 * MSS,
            )
            return True, flow.reply(bytes(size), flags=flags, seq=draw(starts) % (1 << 32), ack=FIRST + 1)
        numbers = (edge, edge, edge, acked, (edge + acked) // 2, edge + 1, acked - 1, edge + (1 << 31))
        fields: dict[str, Any] = {
            "seq": FIRST + 1,
            "ack": draw(numbers) % (1 << 32),
            "window": draw((0, 500, 500, 500)),
        }
        options = draw(((), (), DSACK))
        return False, flow.request(bytes(draw((0, 0, 30))), flags=draw(FLAGS), options=options, **fields)

    def opening(self, flow: Flow) -> list[tuple[bool, Any]]:
        """Return the segments of a handshake, in which the SYN-ACK may be repeated, and the client's ACK lost."""
        number = self.source.choice((ANSWER, (1 << 32) - 2000, 0xFFFFFFFF))
        answer = (True, flow.reply(flags="SA", seq=number, ack=FIRST + 1))
        ack = (False, flow.request(flags="A", seq=FIRST + 1, ack=(number + 1) % (1 << 32)))
        answers = [answer] * self.source.choice((1, 1, 2))
        return [(False, flow.syn()), *answers, *[ack] * self.source.choice((0, 1, 1, 1))]

    def compare_segment(self, flow: Flow, by_server: bool, frame: Any) -> None:
        """Send a segment to the switch and the model, and compare the cells of both."""
        before = self.state(flow)
        cells = self.table()
        self.exchange(flow.server.host.port if by_server else CLIENT, frame)
        after, got = self.state(flow), self.table()
        payload = len(frame[TCP].payload)
        sent = TCP(bytes(frame[TCP]))
        segment = Segment(
            by_server,
            sent.seq,
            sent.ack,
            payload,
            int(sent.flags),
            before,
            after,
            window=sent.window,
            data_offset=sent.dataofs,
        )
        measured = self.measured(flow)
        self.time = self._time(cells, got, measured.slot, after)
        self.model.packet(self.time, measured, segment)
        expected = {(register, slot): self.memory.of(register)[slot] for register, slot in got}
        names = {f"{register.rsplit('.', 1)[-1]}[{slot}]": (register, slot) for register, slot in got}
        self.assertEqual(
            {name: got[cell] for name, cell in names.items()},
            {name: expected[cell] for name, cell in names.items()},
            f"the switch's cells, the model's: {segment}, seed {self.seed}",
        )
        self.nonzero_fields |= {name for name, value in self.columns(flow).items() if value}

    def _time(self, before: dict[Any, int], after: dict[Any, int], slot: int, state: PinState) -> int:
        """Return the packet's time in us from the cells that it changed; without a change, an arbitrary time."""
        activity = (Register.TRANSFER_ACTIVITY, slot)
        if after[activity] != before[activity]:
            return after[activity] % (1 << TIME_BITS)
        owner = (Register.TRANSFER_OWNER, slot)
        if after[owner] == before[owner]:
            return self.time
        back = UNANSWERED_TICKS if state is PinState.ANSWERED else 0
        back = ENDED_TICKS if state >= PinState.SERVER_CLOSING else back
        return self.time >> 32 << 32 | (after[owner] + back & 0xFFFF) << 16

    def runTest(self) -> None:
        for flow in self.flows:
            for by_server, frame in self.opening(flow):
                self.compare_segment(flow, by_server, frame)
        for _ in range(PACKETS):
            if pause := self.source.choice(PAUSES):
                self.pause(pause)
            flow = self.source.choice(self.flows)
            state = self.state(flow)
            closed = state >= PinState.SERVER_CLOSING and self.source.random() < 0.3
            if closed or self.source.random() < 0.03:
                for by_server, frame in self.opening(flow):
                    self.compare_segment(flow, by_server, frame)
            else:
                self.compare_segment(flow, *self.segment(flow))
        counts = {
            "segments",
            "sent",
            "again",
            "losses",
            "timeouts",
            "probes",
            "holes",
            "rtt_count",
            "flight",
            "under_way",
        }
        self.assertEqual(counts - self.nonzero_fields, set(), "never happened: draw more segments")
