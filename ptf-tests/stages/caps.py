"""Tests of stage `caps`, which caps TCP windows; scapy computes the checksums of the expected frames."""

from __future__ import annotations

import random
from typing import Any

from harness import entries
from harness.base import again, completed, new, repeated_answer
from harness.caps import (
    BARE,
    CAP,
    CAPS,
    FIRST_WINDOW,
    MSS,
    SCALE,
    SYN_WINDOW,
    UNIT,
    WRAP,
    Capped,
    Options,
    Talk,
    cell,
    options,
)
from harness.collisions import crowd
from harness.flow import ANSWER, FIRST, Flow
from harness.frames import Packet
from harness.plan import S1, S3, WEB
from harness.slots import colliding
from sluice.dataplane.windows import LEARN_AFTER, HandshakeSegment, Segment, agreed
from sluice.names import CONNECTION_SLOTS, PinState, Register


class DefaultSendCap(Capped):
    """A server's default send cap bounds the windows of its clients, but not those of the server."""

    send = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        self.advances(talk, 99, 99)
        self.sends(talk, True, talk.frame(True, b"GET /", flags="PA", window=600), 100)
        self.advances(talk, 500, 100)
        self.advances(talk, 500, 500, client=False)
        self.sends(talk, True, talk.frame(True, flags="FA", window=500), 100)


class DefaultReceiveCap(Capped):
    """A server's default receive cap bounds the windows of the server, but not those of its clients."""

    receive = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100, client=False)
        self.advances(talk, 99, 99, client=False)
        self.sends(talk, False, talk.frame(False, b"page", flags="PA", window=600), 100)
        self.advances(talk, 500, 500)
        self.advances(talk, 500, 100, client=False)


class OwnCap(Capped):
    """A connection's own cap replaces a smaller or larger default; a cap of 0 or of another connection does not."""

    send = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        self.cap(talk, send=200 * UNIT)
        self.advances(talk, 500, 200)
        self.cap(talk, send=BARE)
        self.advances(talk, 500, 500)
        self.cap(talk, send=0)
        for window in (493, 485, 477):  # the client had offered 64,000 bytes, of which each step uses 1,000
            self.advances(talk, 500, window)
        self.cap(talk, send=200 * UNIT, fingerprint=talk.flow.key.fingerprint ^ 1)
        self.advances(talk, 500, 469)
        self.assertEqual(self.offer(talk) >> 32, CAP)

    def offer(self, talk: Talk) -> int:
        """Return the register cell with the cap in effect and the right edge of the offered window."""
        return self.switch.registers.read([(Register.CAP_OFFERED_SERVER, talk.index)])[0]


class PartOfAUnit(Capped):
    """A window is rounded up to its unit, so a cap of ten segments admits ten segments."""

    send = 1

    def runTest(self) -> None:
        talk = self.talks()
        self.cap(talk, send=10 * 1448)
        for _ in range(3):
            self.advances(talk, 500, 114)  # 113.1 units, rounded up


class OwnReceiveCap(Capped):
    """A connection's own receive cap bounds the windows towards its client, independently of the other direction."""

    def runTest(self) -> None:
        talk = self.talks()
        self.cap(talk, send=50 * UNIT, receive=60 * UNIT)
        self.advances(talk, 500, 60, client=False)
        self.advances(talk, 500, 50)


class PromiseKept(Capped):
    """A smaller cap does not shrink an offered window: the window decreases by acknowledged bytes, down to the cap."""

    def runTest(self) -> None:
        for client in (True, False):
            talk = self.talks(40_000 + client)
            self.cap(talk, 70 * UNIT, 70 * UNIT)
            self.advances(talk, 500, 70, client)
            self.cap(talk, 50 * UNIT, 50 * UNIT)
            for window in (63, 55, 50, 50):  # 7,960 bytes are 62.2 units, 6,960 bytes are 54.4
                self.advances(talk, 500, window, client)


class Duplicates(Capped):
    """A changed cap takes effect with the next ACK of new data, so that three duplicate ACKs stay duplicates."""

    def runTest(self) -> None:
        for client in (True, False):
            talk = self.talks(40_000 + client)
            self.cap(talk, 70 * UNIT, 70 * UNIT)
            self.advances(talk, 500, 70, client)
            for cap in (150, 40, 0):
                self.cap(talk, cap * UNIT, cap * UNIT)
                self.acks(talk, 500, 70, client)
            self.cap(talk, 150 * UNIT, 150 * UNIT)
            self.advances(talk, 500, 150, client)


class ZeroStaysZero(Capped):
    """A closed window stays closed; the window update that opens it passes at once, up to the cap in effect."""

    send = receive = CAP

    def runTest(self) -> None:
        for client in (True, False):
            talk = self.talks(40_000 + client)
            self.data(talk, not client, 1024)
            self.acks(talk, 0, 0, client)
            self.acks(talk, 0, 0, client)
            self.acks(talk, 1, 1, client)
            self.acks(talk, 500, 100, client)


class EndpointShrinks(Capped):
    """If an endpoint shrinks its window, the smaller window passes; later windows may reach the edge offered before."""

    send = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        self.acks(talk, 7, 7)
        self.acks(talk, 0, 0)
        self.acks(talk, 90, 90)
        self.acks(talk, 500, 100)


class ScaleUnknown(Capped):
    """If either side announces no window scale, the windows of both sides are unscaled."""

    send = receive = 5000

    def runTest(self) -> None:
        for port, (syn, syn_ack) in enumerate(((None, SCALE), (SCALE, None), (None, None))):
            talk = self.talks(41_000 + port, options(syn), options(syn_ack))
            self.advances(talk, 60_000, 5000)
            self.advances(talk, 60_000, 5000, client=False)


class LeastCap(Capped):
    """A cap is at least four segments, of the smaller of the two announced segment sizes."""

    send = receive = 1

    def runTest(self) -> None:
        cases: tuple[tuple[Options, Options, int, int], ...] = (
            (options(SCALE, 1460), options(SCALE, 700), 22, 22),  # 2,800 bytes are 21.9 units
            (options(SCALE, 700), options(SCALE, 1460), 22, 22),
            (options(SCALE, 65_495), options(SCALE, 1460), 46, 46),  # 5,840 bytes are 45.6 units
            (options(SCALE, 9000), options(SCALE, 65_495), 282, 282),
            ([("WScale", SCALE)], [("WScale", SCALE)], 17, 17),  # without the option the MSS is 536
            ([("WScale", SCALE), ("MSS", 0)], options(SCALE), 17, 17),
            (options(14), options(0), 1, 4 * MSS),
            (options(15), options(0), 1, 4 * MSS),  # 14 is the largest scale (RFC 7323, section 2.3)
        )
        for port, (syn, syn_ack, client, server) in enumerate(cases):
            talk = Talk(Flow(WEB, S1, client_port=41_000 + port))
            self.opens_talk(talk, syn, syn_ack)
            self.sends(talk, True, talk.frame(True, window=0), 0, completed(S1))
            self.advances(talk, 500, client)
            self.data(talk, True, 500)
            self.acks(talk, 50_000, server, client=False)


class NumbersWrap(Capped):
    """Caps still apply, in both directions, after the sequence numbers of either side have wrapped at 2^32."""

    send = receive = CAP

    def runTest(self) -> None:
        for port, distance in enumerate((1, 500, 1001, 2500)):
            talk = self.talks(41_000 + port, client=WRAP - distance, server=WRAP - distance - 300)
            for client in (True, False) * 3:
                self.advances(talk, 500, 100, client)


class AckOfNothing(Capped):
    """An old ACK changes nothing, nor does an ACK of data that was never sent, however far ahead the data is."""

    send = receive = CAP

    def runTest(self) -> None:
        for client in (True, False):
            talk = self.talks(40_000 + client)
            self.advances(talk, 500, 100, client)
            right = talk.next[not client]
            for ahead in (1, 1000, 1 << 20, 1 << 30, (1 << 31) - 1, 1 << 31):
                self.acks(talk, 400, 400, client, ack=(right + ahead) % WRAP)
            self.acks(talk, 500, 108, client, ack=right - 1000)  # up to the offered edge: 13,800 bytes
            self.acks(talk, 500, 100, client)
            self.advances(talk, 500, 100, client)


class DataOfNothing(Capped):
    """Data far beyond the window that its sender was offered does not make an acknowledgement of that data valid."""

    send = receive = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        for ahead in (1 << 20, 1 << 30, (1 << 31) - 5000):
            far = (talk.next[False] + ahead) % WRAP
            blind = talk.flow.reply(b"blind", flags="A", seq=far, ack=talk.next[True], window=1)
            self.sends(talk, False, blind, 1)
            self.acks(talk, 400, 400, ack=far + 5)
            self.acks(talk, 500, 100)


class LearnedAgain(Capped):
    """The switch does not count data that passes while a server is not managed.

    When the server is managed again, the switch takes the sequence numbers from the server's segments, and caps apply
    again. Windows that were offered in between are not shrunk.
    """

    send = receive = CAP
    unseen = 300_000

    def runTest(self) -> None:
        for client in (True, False):
            with self.subTest(capped="client" if client else "server"):
                talk = self.talks(40_000 + client)
                self.advances(talk, 500, 100, client)
                managed = entries.managed(S1, self.send, self.receive)
                self.switch.delete([managed])
                try:
                    talk.next[not client] = (talk.next[not client] + self.unseen) % WRAP
                finally:
                    self.switch.insert([managed])
                for _ in range(LEARN_AFTER - 1):
                    self.advances(talk, 500, 500, client)
                self.advances(talk, 500, 500, client)
                for window in (493, 485, 477):  # the offered window: 64,000 bytes, less 1,000 each time
                    self.advances(talk, 500, window, client)
                self.acks(talk, 500, 477, client)
                for _ in range(45):
                    self.data(talk, not client, 1000)
                self.acks(talk, 500, 125, client)
                for window in (118, 110, 102, 100, 100):
                    self.advances(talk, 500, window, client)


class LearnedAgainFarAway(LearnedAgain):
    """As in LearnedAgain, but the uncounted data covers half of all sequence numbers."""

    unseen = 1 << 31


class ProbeBeyondTheEdge(Capped):
    """The acknowledgement of a window probe's byte is valid, although that byte is beyond the offered window."""

    send = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.data(talk, False, 1024)
        self.acks(talk, 0, 0)
        self.data(talk, False, 1)
        self.acks(talk, 500, 100)


class Authenticated(Capped):
    """Segments signed by MD5 or AO are unchanged if the SYN-ACK is signed; a signed SYN alone is not enough."""

    send = receive = CAP

    def runTest(self) -> None:
        signatures: tuple[tuple[int, bytes], ...] = ((19, bytes(16)), (29, bytes(14)))
        for port, (number, value) in enumerate(signatures):
            marked = [*options(), (number, value)]
            for side, (syn, syn_ack) in enumerate(((marked, marked), (marked, options()), (options(), marked))):
                talk = self.talks(41_000 + 10 * port + side, syn, syn_ack)
                self.cap(talk, CAP, CAP)
                received = 500 if syn_ack is marked else 100
                self.advances(talk, 500, received)
                self.advances(talk, 500, received, client=False)


class Layouts(Capped):
    """The switch parses options in any arrangement that hosts use, and leaves them in the packet."""

    send = CAP

    def runTest(self) -> None:
        stamps = ("Timestamp", (1, 0))
        nop, mss, scale, sack = ("NOP", None), ("MSS", MSS), ("WScale", SCALE), ("SAckOK", b"")
        layouts: tuple[tuple[Options, bool], ...] = (
            ((mss, sack, stamps, nop, scale), True),  # Linux
            ((mss, nop, scale, nop, nop, sack), True),  # Windows
            ((mss, nop, scale, nop, nop, stamps, sack, ("EOL", None)), True),  # macOS
            ((scale,), True),
            (((254, bytes(30)), scale), True),
            (((254, bytes(35)), scale), True),  # 40 bytes of options, which is the maximum
            ((nop,) * 37 + (scale,), True),
            ((("EOL", None), scale), False),
            ((mss, (254, bytes(1)), (8, bytes(8)), scale), True),
        )
        for port, (layout, known) in enumerate(layouts):
            talk = self.talks(41_000 + port, layout)
            self.advances(talk, 50_000, 100 if known else CAP)

    def shakes(self, talk: Talk, syn: Options | None = None, syn_ack: Options | None = None) -> None:
        self.opens_talk(talk, syn or (), options(0))
        self.sends(talk, True, talk.frame(True, window=FIRST_WINDOW), FIRST_WINDOW, completed(S1))


class BrokenOptions(Capped):
    """The switch, like Linux, ignores options that follow an option of impossible length, and forwards the segment."""

    send = CAP

    def runTest(self) -> None:
        scale = bytes((3, 3, SCALE))
        for port, start in enumerate((b"\xfe\x00", b"\xfe\x01", b"\xfe\x29", b"\xfe\x40", b"\xfe\x82", b"\xfe\xff")):
            talk = Talk(Flow(WEB, S1, client_port=41_000 + port))
            raw = (start + scale).ljust(8, b"\0")
            syn = talk.flow.request(raw, flags="S", seq=FIRST, window=SYN_WINDOW, dataofs=7)
            self.sends(talk, True, syn, SYN_WINDOW, new(WEB, S1))
            self.answers_talk(talk, options())
            self.sends(talk, True, talk.frame(True, window=FIRST_WINDOW), FIRST_WINDOW, completed(S1))
            self.advances(talk, 50_000, CAP)


class FramesPassUnchanged(Capped):
    """The windows of SYN, SYN-ACK and RST, and of segments without an ACK, are not changed."""

    send = receive = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        self.advances(talk, 500, 100, client=False)
        again_ = talk.flow.reply(flags="SA", seq=ANSWER, ack=FIRST + 1, options=options(), window=50_000)
        self.sends(talk, False, again_, 50_000, repeated_answer(S1))
        self.sends(talk, True, talk.frame(True, b"x", flags="P", window=500), 500)
        self.sends(talk, True, talk.frame(True, flags="RA", window=500), 500)


class SynInMidConnection(Capped):
    """A SYN in mid-connection, which any host can send, does not remove the cap from the following segments."""

    send = receive = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        blind = talk.flow.request(flags="S", seq=77, options=options(3), window=2000)
        self.sends(talk, True, blind, 2000, again(WEB, S1))
        self.acks(talk, 0xFFFF, 100)
        self.assertPinned(talk.flow, PinState.REOPENING)
        self.data(talk, True)
        self.acks(talk, 500, 100, client=False)
        self.advances(talk, 0xFFFF, 100)


class ReopenedConnection(Capped):
    """If the server answers a SYN in mid-connection, the new connection has no caps: its options are unknown."""

    send = receive = CAP

    def runTest(self) -> None:
        talk = self.talks()
        other = Talk(talk.flow, 900_000, 800_000)
        syn = talk.flow.request(flags="S", seq=900_000, options=options(3), window=2000)
        self.sends(talk, True, syn, 2000, again(WEB, S1))
        self.answers_talk(other, options(3))
        self.sends(other, True, other.frame(True, window=9), 9, completed(S1))
        self.advances(other, 50_000, 50_000)
        self.advances(other, 50_000, 50_000, client=False)


class SynAgain(Capped):
    """Caps are computed from the last SYN and the last SYN-ACK; a SYN-ACK that acknowledges another SYN is ignored."""

    send = CAP

    def runTest(self) -> None:
        talk = Talk(Flow(WEB, S1))
        self.opens_talk(talk, options(), options())
        syn = talk.flow.request(flags="S", seq=FIRST, options=options(), window=SYN_WINDOW)
        self.sends(talk, True, syn, SYN_WINDOW, again(WEB, S1))
        cookie = Talk(talk.flow, FIRST, 4_000_000_000)
        stray = talk.flow.reply(flags="SA", seq=1, ack=FIRST + 2, options=options(2), window=1)
        self.sends(talk, False, stray, 1, repeated_answer(S1))
        answer = talk.flow.reply(flags="SA", seq=4_000_000_000, ack=FIRST + 1, options=options(), window=SYN_WINDOW)
        self.sends(talk, False, answer, SYN_WINDOW, repeated_answer(S1))
        self.sends(cookie, True, cookie.frame(True, window=FIRST_WINDOW), FIRST_WINDOW, completed(S1))
        self.advances(cookie, 500, 100)


class SlotClaimedAnew(Capped):
    """A connection that reuses the ports of an ended one has its own window scales, and none of the earlier caps."""

    send = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.cap(talk, 150 * UNIT, 150 * UNIT)
        self.advances(talk, 500, 150)
        self.sends(talk, True, talk.frame(True, flags="FA", window=500), 150)
        self.sends(talk, False, talk.frame(False, flags="FA", window=500), 500)
        for register in CAPS:
            self.assertNotEqual(self.switch.registers.read([(register, talk.index)]), [0])
        successor = Talk(talk.flow, 3_000_000_000, 2_000_000_000)
        self.opens_talk(successor, options(4), options(3))
        for register in CAPS:
            self.assertEqual(self.switch.registers.read([(register, talk.index)]), [0])
        self.sends(successor, True, successor.frame(True, window=8), 8, completed(S1))
        self.advances(successor, 5000, CAP >> 4)
        self.advances(successor, 5000, 5000, client=False)


class AnotherTakesTheSlot(Capped):
    """Another client's connection in a slot has no caps of the slot's earlier connection.

    This also holds if the new connection begins while the server is not managed.
    """

    send = CAP

    def runTest(self) -> None:
        talk = self.talks()
        self.advances(talk, 500, 100)
        self.switch.clear_connections()
        key = next(colliding(talk.flow.key, slot_1=talk.flow.key.slot_1))
        stranger = Talk(Flow.of(key, WEB, S1))
        self.switch.delete([entries.managed(S1, self.send, self.receive)])
        try:
            self.opens_talk(stranger, options(), options())
            self.sends(stranger, True, stranger.frame(True, window=500), 500, completed(S1))
        finally:
            self.switch.insert([entries.managed(S1, self.send, self.receive)])
        self.advances(stranger, 500, 500)


class SecondWay(Capped):
    """A connection in way 2 (pinned by its second hash) has its own cells."""

    send = CAP

    def runTest(self) -> None:
        flows = crowd(late=0)
        first, second = Talk(flows.first), Talk(flows.second)
        self.shakes(first)
        self.shakes(second)
        self.assertEqual([pin.way for pin in self.pins(second.flow.key)], [2])
        index = CONNECTION_SLOTS + second.flow.key.slot_2
        self.switch.registers.write(Register.SEND_CAP, index, cell(second.flow.key.fingerprint, 150 * UNIT))
        self.advances(second, 500, 150)
        self.advances(first, 500, 100)


class Unmanaged(Capped):
    """The windows of connections to a server that is not managed are not changed."""

    send = receive = CAP

    def runTest(self) -> None:
        self.weigh(WEB, {S3: 1})
        talk = Talk(Flow(WEB, S3))
        self.shakes(talk)
        self.cap(talk, CAP, CAP)
        self.advances(talk, 500, 500)
        self.advances(talk, 500, 500, client=False)


class MovedConnection(Capped):
    """A connection that moved from a draining server to another server, by another handshake, has no caps."""

    send = receive = CAP

    def runTest(self) -> None:
        self.insert(entries.managed(S3, CAP, CAP))
        talk = self.talks()
        self.drain(S1)
        self.weigh(WEB, {S3: 1})
        moved = Talk(talk.flow.to(S3), 900_000, 800_000)
        syn = moved.flow.request(flags="S", seq=900_000, options=options(3), window=2000)
        self.sends(moved, True, syn, 2000, again(WEB, S3))
        self.answers_talk(moved, options(3))
        self.sends(moved, True, moved.frame(True, window=9), 9, completed(S3))
        self.assertPinned(moved.flow, PinState.ESTABLISHED)
        self.advances(moved, 50_000, 50_000)
        self.advances(moved, 50_000, 50_000, client=False)


class RandomSegments(Capped):
    """For random segments and caps, the windows and cells of the switch equal those of sluice.dataplane.windows."""

    send, receive = 9_000, 7_000
    segments, seed = 150, 1

    def runTest(self) -> None:
        source = random.Random(self.seed)
        for port, (client_scale, server_scale) in enumerate(((7, 2), (None, 7), (14, 0))):
            self.compare(
                source,
                Talk(Flow(WEB, S1, client_port=42_000 + port), WRAP - 9000, WRAP - 500),
                client_scale,
                server_scale,
            )

    def compare(self, source: random.Random, talk: Talk, client_scale: int | None, server_scale: int | None) -> None:
        """Send random segments of a connection with these window scales (None: no option); compare with the model."""
        self.opens_talk(talk, options(client_scale), options(server_scale))
        syn, syn_ack = (
            HandshakeSegment(talk.first[side], SYN_WINDOW, MSS, scale)
            for side, scale in ((True, client_scale), (False, server_scale))
        )
        model = dict(zip((True, False), agreed(syn, syn_ack, talk.next[True]), strict=True))
        defaults = caps = {True: self.send, False: self.receive}
        first = Segment(talk.next[True], talk.next[False], 300)
        window = model[True].sends(model[False], first, self.send)
        self.sends(talk, True, talk.frame(True, window=300), window, completed(S1))
        for _ in range(self.segments):
            if source.random() < 0.1:
                own = [source.choice((0, 1, 5000, 20_000, BARE)) for _ in CAPS]
                self.cap(talk, *own)
                caps = {side: cap or defaults[side] for side, cap in zip((True, False), own, strict=True)}
            client = source.random() < 0.5
            frame, segment = self.draw(source, talk, client)
            window = model[client].sends(model[not client], segment, caps[client])
            self.sends(talk, client, frame, window)
            self.assertCells(talk, model)

    def draw(self, source: random.Random, talk: Talk, client: bool) -> tuple[Packet, Segment]:
        """Return a random segment, as a frame and for the model: in order, or repeated, reordered or forged."""
        payload = bytes(source.choice((0, 0, 1, 700, 1400)))
        back, ahead = (source.choice((0, 0, 0, 0, 900)) for _ in range(2))
        number = (talk.next[client] - source.choice((0, 0, 0, 1000)) + source.choice((0,) * 30 + (1 << 30,))) % WRAP
        acknowledgement = (talk.next[not client] - back + source.choice((0, 0, 0, 0, 1, 1 << 31)) * (ahead > 0)) % WRAP
        window = source.choice((0, 1, 60, 500, 0xFFFF, source.randrange(1 << 16)))
        fields = {"seq": number, "ack": acknowledgement, "window": window, "flags": source.choice(("A", "PA"))}
        return talk.frame(client, payload, **fields), Segment(number, acknowledgement, window, len(payload))

    def assertCells(self, talk: Talk, model: Any) -> None:
        """Assert that the switch's sequence numbers, edges and caps in effect equal those of the model."""
        client, server = model[True], model[False]
        expected = [
            (Register.CAP_CLIENT, client.next << 31 | client.acked % (1 << 31)),
            (Register.CAP_SERVER, server.next << 31 | server.acked % (1 << 31)),
            (Register.CAP_OFFERED_SERVER, (0 if client.is_lost else client.cap) << 32 | client.edge),
            (Register.CAP_OFFERED_CLIENT, (0 if server.is_lost else server.cap) << 32 | server.edge),
        ]
        values = self.switch.registers.read((register, talk.index) for register, _ in expected)
        self.assertEqual(dict(zip(dict(expected), values, strict=True)), dict(expected))


class GreedyHandshake(Capped):
    """If the handshake's last ACK offers more than the cap, up to a gigabyte, its window is reduced to the cap."""

    send = CAP

    def runTest(self) -> None:
        talk = Talk(Flow(WEB, S1))
        self.opens_talk(talk, options(), options())
        self.sends(talk, True, talk.frame(True, window=0xFFFF), 100, completed(S1))
        self.advances(talk, 0xFFFF, 100)
