"""Tests of remembered clients of content services, whose next connection opens to a server without an agent.

With `sticky: client` that server is final. A guessed server is checked by an agent when the request arrives.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from harness import entries
from harness.content import (
    AGENT_1,
    AGENT_2,
    DELTA,
    FAST,
    IMAGES,
    REQUEST,
    SERVERS_OWN,
    SHOP,
    X1,
    X2,
    X3,
    ContentFlow,
    ContentTest,
    rebuilt,
)
from harness.flow import FIRST
from harness.frames import TCP
from harness.plan import CLIENT, POOL_A, POOL_B
from sluice.addresses import from_text
from sluice.names import REMEMBERED_CLIENTS, UNREAD, DropReason, PinState, Register, Remember, SpliceStatus, Turn

OFFERED: list[tuple[Any, Any]] = [
    ("MSS", 1400),
    ("SAckOK", b""),
    ("Timestamp", (1, 2)),
    ("NOP", None),
    ("WScale", 7),
    (254, b"\x12\x34"),
]
"""Options as clients send them, and one of an unknown kind."""

FAST_OPEN: list[tuple[Any, Any]] = [("MSS", 1400), (34, bytes(8)), ("NOP", None), ("NOP", None)]
"""Options with a Fast Open cookie (RFC 7413, section 4.1.1)."""

STAMP = (1 << 30) - 1
"""Mask of the time in a cell of the memory of clients."""

GUESSED_MSS = 1446
"""MSS in the SYN-ACK of a guessed server, so that a segment and the header guessed_h fit in an Ethernet frame."""


class Remembering(ContentTest):
    """Base class: SHOP remembers clients for some seconds."""

    GENERATION = 7

    def setUp(self) -> None:
        super().setUp()
        self.shop(self.GENERATION, 200)
        self.switch.registers.clear(Register.REMEMBERED_CLIENTS)

    def shop(self, generation: int, remember: int) -> None:
        """Change SHOP's generation, and how many ticks it remembers clients, until the end of the test."""
        self.replace(entries.content(SHOP, generation, remember), entries.content(SHOP))

    def remembers(self, how: Remember, client_port: int = 39000) -> None:
        """Open a connection whose agent orders the switch to remember the client."""
        flow = self.flow(client_port=client_port)
        self.opens_group(flow)
        self.ordered(flow, flow.order(remember=how, generation=self.GENERATION))


class StickyClient(Remembering):
    """Later connections of the client reach its server without agent and translation, whatever the weights are."""

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        self.switch.modify([entries.ratios(IMAGES, {X2: 1})])
        flow = self.flow()
        self.client_sends_spliced(flow, flow.syn())
        self.assertPinned(flow, PinState.PENDING)
        self.assertEqual(self.loads(X1), [2])
        self.client_sends_spliced(flow, flow.syn())
        for frame in (
            flow.reply(flags="SA", seq=9, ack=FIRST + 1, options=OFFERED),
            flow.reply(b"x", flags="A", seq=10),
        ):
            self.server_sends_spliced(flow, frame, rebuilt(frame) if "S" in frame[TCP].flags else frame)
        self.client_sends_spliced(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=10))
        stranger = self.flow(client="20.9.9.9")
        self.reaches_agent(stranger, stranger.syn())


class MemoryEnds(Remembering):
    """A client's entry is ignored after a time, after new rules, and while its server drains or is not configured.

    The client's next connection is then sent to an agent.
    """

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        self.shop(self.GENERATION + 1, 200)
        flow = self.flow()
        self.reaches_agent(flow, flow.syn())
        self.shop(self.GENERATION, 1)
        self.pass_ticks(1)
        self.reaches_agent(flow, flow.syn())
        self.shop(self.GENERATION, 20_000)
        self.switch.modify([entries.server(X1, draining=True)])
        self.reaches_agent(flow, flow.syn())
        self.switch.modify([entries.server(X1)])
        self.switch.delete([entries.server(X1)])
        self.reaches_agent(flow, flow.syn())
        self.switch.insert([entries.server(X1)])
        self.client_sends_spliced(flow, flow.syn())


class UseRenewsMemory(Remembering):
    """Each handshake with the remembered server renews the memory of the client.

    Neither a SYN alone renews the memory, nor a handshake after the time has passed.
    """

    AGE = 15_000
    """Age in ticks, below the time of 20,000 ticks for which SHOP remembers clients."""

    def setUp(self) -> None:
        super().setUp()
        key = self.flow().key
        ends = from_text(key.client).packed + from_text(key.service).packed + key.service_port.to_bytes(2)
        self.cell = (Register.REMEMBERED_CLIENTS, crc32(ends) % REMEMBERED_CLIENTS)

    def stamp(self) -> int:
        """Return the time in ticks that is stored with the remembered client."""
        (value,) = self.switch.registers.read([self.cell])
        self.assertTrue(value, "the client is not remembered")
        return value & STAMP

    def ages(self, ticks: int) -> int:
        """Make the client's entry in the memory older by `ticks`; return the entry's time."""
        (value,) = self.switch.registers.read([self.cell])
        self.switch.registers.write(*self.cell, value - ticks)
        return self.stamp()

    def runTest(self) -> None:
        self.shop(self.GENERATION, 20_000)
        self.remembers(Remember.CLIENT)
        for port in (40000, 40100, 40200):
            old = self.ages(self.AGE)
            flow = self.flow(client_port=port)
            self.client_sends_spliced(flow, flow.syn())
            answer = flow.reply(flags="SA", seq=9, ack=FIRST + 1)
            self.server_sends_spliced(flow, answer, rebuilt(answer, 536, None, False))
            self.assertEqual(self.stamp(), old)
            ack = flow.request(flags="A", seq=FIRST + 1, ack=10)
            self.client_sends_spliced(flow, ack)
            pin = self.assertPinned(flow, PinState.ESTABLISHED)
            self.assertEqual(self.stamp(), pin.stamp & STAMP)
            self.client_sends_spliced(flow, ack)
        self.ages(self.AGE)
        old = self.ages(self.AGE)
        flow = self.flow(client_port=40300)
        self.reaches_agent(flow, flow.syn())
        self.assertEqual(self.stamp(), old)


class AgentsTurnRenewsNoMemory(UseRenewsMemory):
    """The client's ACK on a connection that an agent has opened does not renew the memory of the client."""

    def runTest(self) -> None:
        self.shop(self.GENERATION, 20_000)
        self.remembers(Remember.CLIENT)
        old = self.ages(self.AGE)
        flow = self.flow()
        self.agent_reaches_server(flow, flow.opening())
        self.server_reaches_agent(flow, flow.opened(), rebuilt(flow.opened(), 536, None, sack=False))
        self.reaches_agent(flow, flow.request(flags="A", seq=FIRST + 1, ack=1))
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.assertEqual(self.stamp(), old)


class Unread(Remembering):
    """Without agents a client's SYN claims a slot, and reaches the server that the weights by capacity select.

    Connections that agents have spliced are still translated. Connections that no agent read continue when the agents
    are back.
    """

    def runTest(self) -> None:
        spliced = self.established(client_port=39500)
        self.remembers(Remember.CLIENT)
        self.replace(entries.capacities(SHOP, {X2: 1}), entries.capacities(SHOP, {AGENT_1: 1}))
        self.shop(UNREAD, 200)
        flow = ContentFlow(AGENT_1, IMAGES, X2, client_port=40300)
        self.client_sends_spliced(flow, flow.syn())
        self.assertPinned(flow, PinState.PENDING)
        self.assertEqual(self.loads(X2), [1])
        answer = flow.reply(flags="SA", seq=9, ack=FIRST + 1, options=OFFERED)
        self.server_sends_spliced(flow, answer, rebuilt(answer))
        data = flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=10)
        self.client_sends_spliced(flow, data)
        for _ in range(2):
            late = spliced.reply(b"x", flags="A", seq=SERVERS_OWN + 1)
            self.server_sends_spliced(
                spliced, late, spliced.reply(b"x", flags="A", seq=(SERVERS_OWN + 1 + DELTA) % (1 << 32))
            )
            self.client_sends_spliced(flow, data)
            self.switch.modify([entries.capacities(SHOP, {AGENT_1: 1})])
            self.shop(self.GENERATION + 1, 200)
        fresh = self.flow(client_port=40400)
        self.reaches_agent(fresh, fresh.syn())


class RefusalForgets(Remembering):
    """If a remembered server refuses a connection by an RST, the client is forgotten.

    The client's next SYN then reaches an agent. An RST that answers no SYN does not have this effect.
    """

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        flow = self.flow()
        self.client_sends_spliced(flow, flow.syn())
        answer = flow.reply(flags="SA", seq=9, ack=FIRST + 1, options=OFFERED)
        self.server_sends_spliced(flow, answer, rebuilt(answer))
        self.server_sends_spliced(flow, flow.reply(flags="R", seq=10))
        flow = self.flow(client_port=40100)
        self.client_sends_spliced(flow, flow.syn())
        self.server_sends_spliced(flow, flow.reply(flags="RA", seq=0, ack=FIRST + 1))
        flow = self.flow(client_port=40200)
        self.reaches_agent(flow, flow.syn())


class AnothersRefusalForgetsNothing(Remembering):
    """A refusal by a client's former server does not remove the server that was remembered afterwards."""

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        refused = self.flow()
        self.client_sends_spliced(refused, refused.syn())
        self.switch.modify([entries.ratios(IMAGES, {X2: 1})])
        moved = ContentFlow(AGENT_1, IMAGES, X2, client_port=39100)
        self.opens_group(moved)
        self.ordered(moved, moved.order(remember=Remember.CLIENT, generation=self.GENERATION))
        self.server_sends_spliced(refused, refused.reply(flags="RA", seq=0, ack=FIRST + 1))
        flow = ContentFlow(AGENT_1, IMAGES, X2, client_port=40200)
        self.client_sends_spliced(flow, flow.syn())


class Guess(Remembering):
    """Base class: SHOP remembers the client's last server as a guess, which an agent checks."""

    def guesses(self, first_port: int = 39000, **client: Any) -> ContentFlow:
        """Return a connection to the guessed server after its handshake, with the options of content connections."""
        self.remembers(Remember.GUESS, first_port)
        flow = self.flow(**client)
        syn = flow.request(flags="S", seq=FIRST, options=OFFERED)
        self.client_sends_spliced(flow, syn, rebuilt(syn))
        answer = flow.reply(
            flags="SA", seq=SERVERS_OWN, ack=FIRST + 1, options=[("MSS", 1460), ("NOP", None), ("WScale", 9)]
        )
        self.server_sends_spliced(flow, answer, rebuilt(answer, GUESSED_MSS, 9, sack=False))
        self.client_sends_spliced(flow, flow.request(flags="A", seq=FIRST + 1, ack=SERVERS_OWN + 1))
        self.assertPinned(flow, PinState.ESTABLISHED)
        return flow

    def asks(
        self, flow: ContentFlow, payload: bytes = REQUEST, *, server_has_sent: bool = False, **fields: Any
    ) -> None:
        """Send payload of the client; assert that the agent receives it, with the options of the handshake."""
        segment_fields: dict[str, Any] = {"flags": "PA", "seq": FIRST + 1, "ack": SERVERS_OWN + 1, **fields}
        data = flow.request(payload, **segment_fields)
        self.forwards(
            CLIENT,
            data,
            flow.agent.host.port,
            flow.guessed(data, server_scale=9, client_scale=7, sack=0, mss=1400, server_has_sent=server_has_sent),
        )


class GuessedRight(Guess):
    """After a right guess the agent forwards the request unchanged, and the switch translates no sequence numbers."""

    def runTest(self) -> None:
        flow = self.guesses()
        for _ in range(2):
            self.asks(flow)
        self.ordered(flow, flow.order(0, remember=Remember.GUESS, generation=self.GENERATION))
        self.agent_reaches_server(flow, flow.from_agent(REQUEST, flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))
        self.server_sends_spliced(flow, flow.reply(b"200 OK", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 40))
        self.client_sends_spliced(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 40, ack=SERVERS_OWN + 7))


class GuessedWrong(Guess):
    """A wrongly guessed server receives an RST and no request; the right server's numbers are translated."""

    def runTest(self) -> None:
        flow = self.guesses()
        self.asks(flow)
        self.agent_reaches_server(flow, flow.from_agent(flags="R", seq=FIRST + 1))
        self.reaches_agent_guessed_no_more(flow)
        right = ContentFlow(AGENT_1, FAST, X3)
        self.agent_reaches_server(right, right.opening())
        answer = right.reply(flags="SA", seq=777, ack=FIRST + 1, options=[("MSS", 1460)])
        self.server_reaches_agent(right, answer, rebuilt(answer, 1460, None, sack=False))
        self.agent_reaches_server(right, right.from_agent(flags="A", seq=FIRST + 1, ack=778))
        self.ordered(right, right.order((SERVERS_OWN - 777) % (1 << 32), -2))
        self.agent_reaches_server(right, right.from_agent(REQUEST, flags="PA", seq=FIRST + 1, ack=778))
        self.server_sends_spliced(
            right,
            right.reply(b"200 OK", flags="PA", seq=778, ack=FIRST + 40, window=400),
            right.reply(b"200 OK", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 40, window=100),
        )
        self.drops(POOL_A, flow.reply(b"late", flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1), DropReason.UNBOUND)
        self.assertEqual(self.loads(X3), [1])

    def reaches_agent_guessed_no_more(self, flow: ContentFlow) -> None:
        """Send the request again before the agent has opened another connection; assert that an agent receives it."""
        self.asks(flow)


class GuessedPieces(Guess):
    """Each segment of a request, in any order, reaches the agent with the guessed server's number.

    The segment also reports the client's initial sequence number.
    """

    def runTest(self) -> None:
        flow = self.guesses()
        self.asks(flow, bytes(GUESSED_MSS), seq=FIRST + 1 + GUESSED_MSS)
        self.asks(flow, b"x", flags="FA", seq=FIRST + 1 + 2 * GUESSED_MSS)
        self.asks(flow, bytes(GUESSED_MSS))


class GuessedServerSpeaks(Guess):
    """The packets that an agent receives show whether the guessed server has already sent data or its FIN."""

    def runTest(self) -> None:
        for port, (payload, flags) in enumerate(((b"x", "PA"), (b"", "FA")), start=44000):
            with self.subTest(flags=flags):
                flow = self.guesses(port - 5000, client_port=port)
                self.server_sends_spliced(flow, flow.reply(flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1))
                self.asks(flow)
                self.server_sends_spliced(flow, flow.reply(payload, flags=flags, seq=SERVERS_OWN + 1, ack=FIRST + 1))
                self.asks(flow, server_has_sent=True)


class GuessedIsTaken(Guess):
    """After an agent's order the agent receives both sides' packets of a guessed connection, and can then splice it.

    The order must contain the client's initial sequence number.
    """

    def runTest(self) -> None:
        flow = self.guesses()
        self.ordered(flow, flow.take(FIRST + 1), SpliceStatus.NOT_YOURS)
        self.asks(flow)
        for _ in range(2):
            self.ordered(flow, flow.take())
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))
        self.reaches_agent(flow, flow.request(flags="A", seq=FIRST + 1, ack=SERVERS_OWN + 1))
        self.server_reaches_agent(flow, flow.reply(flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 30))
        other = flow.order(FIRST, agent=AGENT_2, generation=0, turn=Turn.AGENT)
        self.forwards(POOL_B, other, POOL_B, flow.confirmation(other, SpliceStatus.NOT_YOURS))
        self.splices(flow, 0)
        self.ordered(flow, flow.take(), SpliceStatus.NOT_YOURS)
        self.server_sends_spliced(flow, flow.reply(b"200 OK", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 40))


class SynWithPayload(Guess):
    """A remembered client's SYN reaches an agent if it has a request (RFC 7413), which would be unread otherwise."""

    def runTest(self) -> None:
        for port, how in enumerate((Remember.GUESS, Remember.CLIENT), start=40000):
            with self.subTest(how=how):
                self.remembers(how, port - 1000)
                flow = self.flow(client_port=port)
                self.reaches_agent(flow, flow.request(REQUEST, flags="S", seq=FIRST, options=FAST_OPEN))
                self.assertNotPinned(flow.key)
                syn = flow.syn()
                self.client_sends_spliced(flow, syn, rebuilt(syn, 536, None, False) if how is Remember.GUESS else syn)


class SynWithPayloadOfAGuessedConnection(Guess):
    """If a connection to a guessed server began by a SYN without payload, a SYN with payload is dropped.

    It is dropped before and after the server's answer, and also if it has the flag ACK or FIN.
    """

    def runTest(self) -> None:
        self.remembers(Remember.GUESS)
        flow = self.flow()
        syn = flow.request(flags="S", seq=FIRST, options=OFFERED)
        self.client_sends_spliced(flow, syn, rebuilt(syn))
        late = flow.request(REQUEST, flags="S", seq=FIRST)
        self.drops(CLIENT, late, DropReason.SYN_PAYLOAD)
        answer = flow.reply(flags="SA", seq=SERVERS_OWN, ack=FIRST + 1)
        self.server_sends_spliced(flow, answer, rebuilt(answer, 536, None, sack=False))
        for flags in ("S", "SA", "SF"):
            frame = flow.request(REQUEST, flags=flags, seq=FIRST, ack=SERVERS_OWN + 1)
            self.drops(CLIENT, frame, DropReason.SYN_PAYLOAD)


class CookieRequest(Guess):
    """A SYN that requests a Fast Open cookie has no payload: it reaches the guessed server, without that option."""

    def runTest(self) -> None:
        self.remembers(Remember.GUESS)
        flow = self.flow()
        asks: Any = [(34, b""), ("NOP", None), ("NOP", None)]
        syn = flow.request(flags="S", seq=FIRST, options=[*OFFERED, *asks])
        self.client_sends_spliced(flow, syn, rebuilt(flow.request(flags="S", seq=FIRST)))
        cookie: Any = [("MSS", 1400), (34, bytes(8)), ("NOP", None), ("NOP", None)]
        answer = flow.reply(flags="SA", seq=SERVERS_OWN, ack=FIRST + 1, options=cookie)
        self.server_sends_spliced(flow, answer, rebuilt(answer, 1400, None, sack=False))


class GuessedOptions(Guess):
    """Options may be missing or in any order; options after an impossible one are ignored, as in Linux."""

    def runTest(self) -> None:
        self.remembers(Remember.GUESS)
        layouts: list[tuple[list[tuple[str, Any]], int, int | None, bool]] = [
            ([], 536, None, False),
            ([("NOP", None)] * 4, 536, None, False),
            ([("WScale", 14), ("EOL", None)], 536, 14, False),
            ([("SAckOK", b""), ("MSS", 9000), ("NOP", None), ("NOP", None)], 9000, None, True),
            ([("NOP", None), ("WScale", 0), *[("NOP", None)] * 36], 536, 0, False),
        ]
        for port, (options, mss, scale, sack) in enumerate(layouts, start=42000):
            with self.subTest(options=options):
                flow = self.flow(client_port=port)
                syn = flow.request(flags="SEC", seq=FIRST, options=options)
                expected: Any = rebuilt(syn, mss, scale, sack)
                expected[TCP].flags = "S"
                self.client_sends_spliced(flow, syn, expected)
        impossible = (b"\x02\x00\x01\x01", b"\x01\x01\x02\x04", b"\x05\x01\x01\x01", b"\x08\x0b\x04\x02")
        for port, raw in enumerate(impossible, start=43000):
            with self.subTest(raw=raw):
                flow = self.flow(client_port=port)
                syn = flow.request(raw, flags="S", seq=FIRST, dataofs=6)
                self.client_sends_spliced(flow, syn, rebuilt(flow.request(flags="S", seq=FIRST), 536, None, False))
