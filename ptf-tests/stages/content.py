"""Stages `agents` and `splice`: content services, whose connections an agent begins and the switch translates."""

from __future__ import annotations

from typing import Any, cast

from harness import entries
from harness.base import StageTest
from harness.content import (
    AGENT_1,
    AGENT_2,
    DELTA,
    FAST,
    IMAGES,
    OWN,
    SERVERS_OWN,
    SHOP,
    X1,
    X2,
    X3,
    ContentFlow,
)
from harness.flow import FIRST
from harness.frames import ICMP, IP, TCP, Ether, Packet, layers, octets
from harness.plan import CLIENT, CLIENT_HOST, POOL_A, POOL_B, UPLINK, Server
from sluice.names import DropReason, PinState, Register, Remember, SpliceStatus, Table, Turn

REQUEST = b"GET /a.gif HTTP/1.1\r\nHost: shop\r\n\r\n"
LOAD = (Register.LOAD_FIRST, Register.LOAD_OTHER)
SERVERS = (AGENT_1, AGENT_2, X1, X2, X3)


class ContentTest(StageTest):
    """Base: SHOP with its agents and groups, for the time of the test. IMAGES' connections go to X1, FAST's to X3."""

    def setUp(self) -> None:
        super().setUp()
        self.needs(Table.AGENTS)
        shop = SHOP
        self.insert(
            *(entries.server(server) for server in SERVERS),
            *(
                entries.neighbour(
                    agent.host.address, self.switch.number(agent.host.port), agent.host.port.mac, agent.host.mac
                )
                for agent in (AGENT_1, AGENT_2)
            ),
        )
        self.insert(
            entries.content(shop),
            *(entries.group(group, shop) for group in (IMAGES, FAST)),
            *(entries.origin(shop, agent) for agent in (AGENT_1, AGENT_2)),
            *(entries.content_origin(shop, server) for server in (X1, X2, X3)),
            *(entries.agent(shop, self.switch.number(agent.host.port), agent) for agent in (AGENT_1, AGENT_2)),
            entries.capacities(shop, {AGENT_1: 1}),
            entries.capacities(IMAGES, {X2: 1}),
            entries.capacities(FAST, {X2: 1}),
            entries.ratios(IMAGES, {X1: 1}),
            entries.ratios(FAST, {X3: 1}),
        )
        self.addCleanup(self._empty)

    def _empty(self) -> None:
        for register in LOAD:
            for server in SERVERS:
                self.switch.registers.write(register, server.id, 0)

    def flow(self, **client: Any) -> ContentFlow:
        """A connection by way of AGENT_1 to X1."""
        return ContentFlow(AGENT_1, IMAGES, X1, **client)

    def loads(self, *servers: Server) -> list[int]:
        """Open connections, by the second look's registers."""
        return [self.switch.registers.read([(Register.LOAD_FIRST, server.id)])[0] for server in servers]

    # -- what comes of a frame

    def reaches_agent(self, flow: ContentFlow, frame: Packet) -> None:
        """The client's frame goes to the agent."""
        self.forwards(CLIENT, frame, flow.agent.host.port, flow.at_agent(frame))

    def agent_reaches_server(self, flow: ContentFlow, frame: Packet) -> None:
        """The agent's frame goes to the group's server."""
        self.forwards(flow.agent.host.port, frame, flow.server.host.port, flow.at_server(frame))

    def server_reaches_agent(self, flow: ContentFlow, frame: Packet, expected: Packet | None = None) -> None:
        """The server's frame goes to the agent, with the client as its destination."""
        self.forwards(flow.server.host.port, frame, flow.agent.host.port, flow.answer_at_agent(expected or frame))

    def opens_group(self, flow: ContentFlow) -> None:
        """The agent's whole handshake with the server."""
        self.agent_reaches_server(flow, flow.opening())
        self.server_reaches_agent(flow, flow.opened(), rebuilt(flow.opened(), 536, None, sack=False))
        self.agent_reaches_server(flow, flow.from_agent(flags="A", seq=FIRST + 1, ack=SERVERS_OWN + 1))

    def splices(self, flow: ContentFlow, delta: int = DELTA, shift: int = 0) -> None:
        """The agent's order is applied and confirmed."""
        self.ordered(flow, flow.order(delta, shift))

    def ordered(self, flow: ContentFlow, order: bytes, status: SpliceStatus = SpliceStatus.APPLIED) -> None:
        """The agent's order is answered so."""
        port = flow.agent.host.port
        self.forwards(port, order, port, flow.confirmation(order, status))

    def established(self, shift: int = 0, **client: Any) -> ContentFlow:
        """A spliced connection."""
        flow = self.flow(**client)
        self.opens_group(flow)
        self.splices(flow, shift=shift)
        return flow

    def client_says(self, flow: ContentFlow, frame: Packet, expected: Packet) -> None:
        """The client's frame, with the server's numbers, reaches the server."""
        self.forwards(CLIENT, frame, flow.server.host.port, flow.at_server(expected))

    def server_says(self, flow: ContentFlow, frame: Packet, expected: Packet) -> None:
        """The server's frame, with the client's numbers, reaches the client."""
        self.forwards(flow.server.host.port, frame, CLIENT, flow.at_client(expected))


class ClientsSynClaimsNothing(ContentTest):
    """Handshake and request of an unknown client go to an agent, and its answers to the client; no slot is taken."""

    def runTest(self) -> None:
        flow = self.flow()
        self.reaches_agent(flow, flow.syn())
        answer = flow.from_agent_to_client(flags="SA", seq=OWN, ack=FIRST + 1)
        self.forwards(AGENT_1.host.port, answer, CLIENT, flow.at_client(answer))
        self.reaches_agent(flow, flow.request(flags="A", seq=FIRST + 1, ack=OWN + 1))
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))
        self.assertNotPinned(flow.key)


class FloodTakesNoSlot(ContentTest):
    """SYNs of a thousand clients leave the connection table as it is."""

    def runTest(self) -> None:
        flows = [self.flow(client=f"20.1.{number >> 8}.{number & 255}") for number in range(1000)]
        self.flood(CLIENT, [octets(flow.syn()) for flow in flows])
        for flow in flows:
            self.assertNotPinned(flow.key)


class AgentsTurn(ContentTest):
    """From the agent's SYN to the splice, packets of both sides go to the agent, and the agent's to the server."""

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.assertEqual(self.loads(X1, AGENT_1), [1, 0])
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))
        self.server_reaches_agent(flow, flow.reply(b"200", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 30))
        self.agent_reaches_server(flow, flow.from_agent(REQUEST, flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))
        answer = flow.from_agent_to_client(b"200", flags="PA", seq=OWN + 1, ack=FIRST + 30)
        self.forwards(AGENT_1.host.port, answer, CLIENT, flow.at_client(answer))


class Spliced(ContentTest):
    """After the order both sides' packets pass the agent by: sequence and acknowledgement numbers are translated."""

    def runTest(self) -> None:
        flow = self.established()
        for size in (0, 1, 1459):
            data = flow.request(bytes(size), flags="PA", seq=FIRST + 1, ack=OWN + 1)
            self.client_says(flow, data, flow.request(bytes(size), flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))
            answer = flow.reply(bytes(size), flags="PA", seq=SERVERS_OWN + 5000, ack=FIRST + 1, window=501)
            expected = flow.reply(bytes(size), flags="PA", seq=OWN + 5000, ack=FIRST + 1, window=501)
            answer[TCP].seq %= 1 << 32
            self.server_says(flow, answer, expected)


class SelectiveAcknowledgements(ContentTest):
    """SACK blocks are the server's numbers, and are translated as acknowledgements are: one to four of them."""

    def runTest(self) -> None:
        flow = self.established()
        edges = [OWN + 2000 * number for number in range(1, 9)]
        for blocks in range(1, 5):
            frames = [
                flow.request(
                    flags="A",
                    seq=FIRST + 1,
                    ack=number + 1,
                    options=[
                        ("NOP", None),
                        ("NOP", None),
                        ("SAck", tuple((edge - OWN + number) % (1 << 32) for edge in edges[: 2 * blocks])),
                    ],
                )
                for number in (OWN, SERVERS_OWN)
            ]
            self.client_says(flow, *frames)


class Windows(ContentTest):
    """The server's windows are shifted, never beyond 65,535, and never to none; those of SYNs are not."""

    def runTest(self) -> None:
        cases = {
            3: [(0, 0), (1, 8), (8191, 65528), (8192, 65535), (65535, 65535)],
            -3: [(0, 0), (1, 1), (7, 1), (16, 2)],
        }
        for port, (shift, windows) in enumerate(cases.items(), start=41000):
            flow = self.established(shift, client_port=port)
            for window, expected in windows:
                with self.subTest(shift=shift, window=window):
                    frames = [
                        flow.reply(flags="A", seq=number + 1, ack=FIRST + 1, window=size)
                        for number, size in ((SERVERS_OWN, window), (OWN, expected))
                    ]
                    self.server_says(flow, *frames)
                    mine = [
                        flow.request(flags="A", seq=FIRST + 1, ack=number + 1, window=window)
                        for number in (OWN, SERVERS_OWN)
                    ]
                    self.client_says(flow, *mine)
            again = flow.reply(flags="SA", seq=SERVERS_OWN, ack=FIRST + 1, window=64000)
            expected = flow.reply(flags="SA", seq=OWN, ack=FIRST + 1, window=64000)
            self.server_says(flow, again, rebuilt(expected, 536, None, sack=False))


class ErrorsAboutSegments(ContentTest):
    """An ICMP error about a server's segment carries the server's number inside, or the server ignores it."""

    def runTest(self) -> None:
        flow = self.established()

        def error(source: str, server: bool) -> Packet:
            number = SERVERS_OWN if server else OWN
            inside: Any = flow.reply(bytes(8), flags="A", seq=number + 1, ack=FIRST + 1)
            if not server:
                inside = flow.at_client(inside)
                inside[IP].ttl += 1
            quoted = octets(inside[IP])[:28]
            return layers(
                Ether(dst=CLIENT.mac, src=CLIENT_HOST.mac),
                cast(Any, IP)(src=source, dst=SHOP.address, ttl=64),
                cast(Any, ICMP)(type=3, code=4),
                quoted,
            )

        sent, expected = error("10.0.1.77", server=False), error("10.0.1.77", server=True)
        outer: Any = expected
        outer[Ether].src, outer[Ether].dst = X1.host.port.mac, X1.host.mac
        outer[IP].dst = X1.host.address
        outer[IP].ttl -= 1
        self.forwards(CLIENT, sent, X1.host.port, expected)


class OrdersAreIdempotent(ContentTest):
    """The same order again is confirmed again; another one changes nothing any more."""

    def runTest(self) -> None:
        flow = self.established()
        self.splices(flow)
        self.ordered(flow, flow.order(DELTA + 1), SpliceStatus.NOT_YOURS)
        data = flow.request(b"x", flags="PA", seq=FIRST + 1, ack=OWN + 1)
        self.client_says(flow, data, flow.request(b"x", flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))


class OrdersOfOthers(ContentTest):
    """Only the connection's agent splices it: no other agent, no server, no client; and nobody what is not there."""

    def runTest(self) -> None:
        flow = self.flow()
        self.ordered(flow, flow.order(), SpliceStatus.NO_CONNECTION)
        self.opens_group(flow)
        foreign = flow.order(agent=AGENT_2)
        self.forwards(POOL_B, foreign, POOL_B, flow.confirmation(foreign, SpliceStatus.NOT_YOURS))
        for port in (CLIENT, UPLINK):
            order = bytes.fromhex(port.mac.replace(":", "")) + flow.order()[6:]
            self.drops(port, order, DropReason.NOT_AN_AGENT)
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))


class MalformedOrders(ContentTest):
    """Another operation, another turn, a frame that ends early."""

    def runTest(self) -> None:
        order = self.flow().order()
        self.drops(POOL_A, order[:14] + b"\x02" + order[15:], DropReason.UNSUPPORTED)
        self.drops(POOL_A, order[:35] + b"\x07" + order[36:], DropReason.UNSUPPORTED)


class GroupsAreForAgents(ContentTest):
    """A client that addresses a group, or any host on a port without an agent, is not heard."""

    def runTest(self) -> None:
        flow = self.flow()
        for port, host in ((CLIENT, CLIENT_HOST.mac), (UPLINK, CLIENT_HOST.mac)):
            frame: Any = flow.opening()
            frame[Ether].dst, frame[Ether].src = port.mac, host
            self.drops(port, frame, DropReason.NOT_AN_AGENT)
        self.assertNotPinned(flow.key)


class WithoutASlot(ContentTest):
    """An agent's packet whose connection has no slot goes nowhere, nor does a server's: its numbers are lost."""

    def runTest(self) -> None:
        flow = self.flow()
        self.drops(POOL_A, flow.from_agent(REQUEST, flags="PA", seq=FIRST + 1, ack=1), DropReason.NO_SLOT)
        self.drops(POOL_A, flow.reply(flags="A", seq=5, ack=FIRST + 1), DropReason.UNBOUND)


class ForgedSyn(ContentTest):
    """A SYN in the client's name changes nothing of a spliced connection: the server is to challenge it (RFC 5961)."""

    def runTest(self) -> None:
        flow = self.established()
        forged = flow.request(flags="S", seq=77)
        self.client_says(flow, forged, forged)
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.drops(POOL_A, flow.opening(), DropReason.SPLICED)
        data = flow.request(b"x", flags="PA", seq=FIRST + 1, ack=OWN + 1)
        self.client_says(flow, data, flow.request(b"x", flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))


class PortUsedAgain(ContentTest):
    """Once a connection has begun to end, a SYN of its ports goes to an agent, whose own claims the slot anew."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_says(
            flow,
            flow.request(flags="R", seq=FIRST + 1),
            flow.request(flags="R", seq=FIRST + 1),
        )
        self.assertEqual(self.loads(X1), [0])
        self.reaches_agent(flow, flow.syn())
        again = ContentFlow(AGENT_1, FAST, X3)
        self.opens_group(again)
        self.assertPinned(again, PinState.ESTABLISHED)
        self.assertEqual(self.loads(X1, X3), [0, 1])


class PortUsedAgainAfterItsEnd(ContentTest):
    """Both sides have ended a connection: what comes of the next one goes to an agent, not to the old server."""

    def runTest(self) -> None:
        flow = self.established()
        end, last = OWN + 1, FIRST + 2
        self.client_says(
            flow,
            flow.request(flags="FA", seq=FIRST + 1, ack=end),
            flow.request(flags="FA", seq=FIRST + 1, ack=SERVERS_OWN + 1),
        )
        self.server_says(
            flow,
            flow.reply(flags="FA", seq=SERVERS_OWN + 1, ack=last),
            flow.reply(flags="FA", seq=end, ack=last),
        )
        self.assertPinned(flow, PinState.CLOSED)
        self.reaches_agent(flow, flow.syn())
        self.reaches_agent(flow, flow.request(flags="A", seq=FIRST + 1, ack=OWN + 1))
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))
        again = ContentFlow(AGENT_1, FAST, X3)
        self.opens_group(again)
        self.splices(again)
        self.assertPinned(again, PinState.ESTABLISHED)
        self.assertEqual(self.loads(X1, X3), [0, 1])


class SynOfALiveConnection(ContentTest):
    """A RST and a SYN, which anybody can send, free no slot: what the server sends takes the connection back."""

    def runTest(self) -> None:
        flow = self.established()
        reset = flow.request(flags="R", seq=FIRST + 1)
        self.client_says(flow, reset, reset)
        self.reaches_agent(flow, flow.syn())
        self.server_says(
            flow,
            flow.reply(b"more", flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1),
            flow.reply(b"more", flags="A", seq=OWN + 1, ack=FIRST + 1),
        )
        self.assertPinned(flow, PinState.ESTABLISHED)


class Leaves(ContentTest):
    """An agent leaves a server by a reset to the group, and opens another group; the old server is heard no more."""

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        self.agent_reaches_server(flow, flow.from_agent(flags="R", seq=FIRST + 1))
        moved = ContentFlow(AGENT_1, FAST, X3)
        self.opens_group(moved)
        self.assertEqual(self.loads(X1, X3), [0, 1])
        self.drops(POOL_A, flow.reply(b"late", flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1), DropReason.UNBOUND)
        self.splices(moved)
        self.client_says(
            moved,
            moved.request(b"x", flags="PA", seq=FIRST + 1, ack=OWN + 1),
            moved.request(b"x", flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1),
        )


class AnotherAgentTakesOver(ContentTest):
    """An agent that has gone: its connection's packets go to the other one, whose SYN makes the connection its own."""

    def runTest(self) -> None:
        flow = self.flow()
        self.agent_reaches_server(flow, flow.opening())
        self.switch.modify([entries.capacities(SHOP, {AGENT_2: 1})])
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))
        self.delete(entries.server(AGENT_1))
        other = ContentFlow(AGENT_2, IMAGES, X1)
        self.reaches_agent(other, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))
        self.agent_reaches_server(other, other.opening())
        self.server_reaches_agent(other, other.opened(), rebuilt(other.opened(), 536, None, sack=False))
        self.drops(POOL_A, flow.from_agent(flags="A", seq=FIRST + 1, ack=SERVERS_OWN + 1), DropReason.SPLICED)
        self.splices(other)


class Ends(ContentTest):
    """FINs of both sides end a spliced connection; the last packets still find their way."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_says(
            flow,
            flow.request(flags="FA", seq=FIRST + 1, ack=OWN + 1),
            flow.request(flags="FA", seq=FIRST + 1, ack=SERVERS_OWN + 1),
        )
        self.assertPinned(flow, PinState.CLIENT_CLOSING)
        self.server_says(
            flow,
            flow.reply(b"rest", flags="FA", seq=SERVERS_OWN + 1, ack=FIRST + 2),
            flow.reply(b"rest", flags="FA", seq=OWN + 1, ack=FIRST + 2),
        )
        self.assertPinned(flow, PinState.CLOSED)
        self.assertEqual(self.loads(X1), [0])
        self.client_says(
            flow,
            flow.request(flags="A", seq=FIRST + 2, ack=OWN + 6),
            flow.request(flags="A", seq=FIRST + 2, ack=SERVERS_OWN + 6),
        )


class Remembering(ContentTest):
    """Base: SHOP remembers clients for some seconds."""

    GENERATION = 7

    def setUp(self) -> None:
        super().setUp()
        self.shop(self.GENERATION, 200)
        self.switch.registers.clear(Register.REMEMBERED_CLIENTS)

    def shop(self, generation: int, remember: int) -> None:
        """Change how SHOP remembers until the end of the test."""
        self.switch.modify([entries.content(SHOP, generation, remember)])
        self.addCleanup(self.switch.modify, [entries.content(SHOP)])

    def remembers(self, how: Remember, client_port: int = 39000) -> None:
        """A connection whose agent has the switch remember its client."""
        flow = self.flow(client_port=client_port)
        self.opens_group(flow)
        self.ordered(flow, flow.order(remember=how, generation=self.GENERATION))


class StickyClient(Remembering):
    """Later connections of the client go straight to its server, whatever the weights are: no agent, no translation."""

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        self.switch.modify([entries.ratios(IMAGES, {X2: 1})])
        flow = self.flow()
        self.client_says(flow, flow.syn(), flow.syn())
        self.assertPinned(flow, PinState.PENDING)
        self.assertEqual(self.loads(X1), [2])
        self.client_says(flow, flow.syn(), flow.syn())
        for frame in (
            flow.reply(flags="SA", seq=9, ack=FIRST + 1, options=OFFERED),
            flow.reply(b"x", flags="A", seq=10),
        ):
            self.server_says(flow, frame, rebuilt(frame) if "S" in frame[TCP].flags else frame)
        data = flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=10)
        self.client_says(flow, data, data)
        stranger = self.flow(client="20.9.9.9")
        self.reaches_agent(stranger, stranger.syn())


class MemoryEnds(Remembering):
    """By time, by other rules, by a server that drains or is gone: then an agent takes the connection."""

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
        self.client_says(flow, flow.syn(), flow.syn())


class RefusalForgets(Remembering):
    """A remembered server that refuses a connection is its client's no longer: an agent takes the next one. Nor does a
    reset that answers no SYN end the memory."""

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        flow = self.flow()
        self.client_says(flow, flow.syn(), flow.syn())
        answer = flow.reply(flags="SA", seq=9, ack=FIRST + 1, options=OFFERED)
        self.server_says(flow, answer, rebuilt(answer))
        reset = flow.reply(flags="R", seq=10)
        self.server_says(flow, reset, reset)
        flow = self.flow(client_port=40100)
        self.client_says(flow, flow.syn(), flow.syn())
        reset = flow.reply(flags="RA", seq=0, ack=FIRST + 1)
        self.server_says(flow, reset, reset)
        flow = self.flow(client_port=40200)
        self.reaches_agent(flow, flow.syn())


class AnothersRefusalForgetsNothing(Remembering):
    """A server that refuses does not end the memory of another one, which has come meanwhile."""

    def runTest(self) -> None:
        self.remembers(Remember.CLIENT)
        refused = self.flow()
        self.client_says(refused, refused.syn(), refused.syn())
        self.switch.modify([entries.ratios(IMAGES, {X2: 1})])
        moved = ContentFlow(AGENT_1, IMAGES, X2, client_port=39100)
        self.opens_group(moved)
        self.ordered(moved, moved.order(remember=Remember.CLIENT, generation=self.GENERATION))
        reset = refused.reply(flags="RA", seq=0, ack=FIRST + 1)
        self.server_says(refused, reset, reset)
        flow = ContentFlow(AGENT_1, IMAGES, X2, client_port=40200)
        self.client_says(flow, flow.syn(), flow.syn())


OFFERED: list[tuple[Any, Any]] = [
    ("MSS", 1400),
    ("SAckOK", b""),
    ("Timestamp", (1, 2)),
    ("NOP", None),
    ("WScale", 7),
    (254, b"\x12\x34"),
]
"""As a client offers them, and one that nobody knows."""


def rebuilt(frame: Packet, mss: int = 1400, scale: int | None = 7, sack: bool = True) -> Packet:
    """The SYN or SYN-ACK with what content connections keep of its options."""
    copy: Any = frame.copy()
    kept: list[tuple[Any, Any]] = [("MSS", mss), ("NOP", None), ("NOP", None)]
    kept += [("SAckOK", b"")] if sack else [("NOP", None), ("NOP", None)]
    kept += [("NOP", None), ("WScale", scale)] if scale is not None else [("NOP", None)] * 4
    copy[TCP].options = kept
    return cast(Packet, copy)


GUESSED_MSS = 1446
"""What a guessed server's client is told: the segment and the header in front of it fit in an Ethernet frame."""


class Guess(Remembering):
    """Base: SHOP has seen the client, and guesses its last server."""

    def guesses(self, first_port: int = 39000, **client: Any) -> ContentFlow:
        """A connection up to its handshake: end to end with the remembered server, with the options that are kept."""
        self.remembers(Remember.GUESS, first_port)
        flow = self.flow(**client)
        syn = flow.request(flags="S", seq=FIRST, options=OFFERED)
        self.client_says(flow, syn, rebuilt(syn))
        answer = flow.reply(
            flags="SA", seq=SERVERS_OWN, ack=FIRST + 1, options=[("MSS", 1460), ("NOP", None), ("WScale", 9)]
        )
        self.server_says(flow, answer, rebuilt(answer, GUESSED_MSS, 9, sack=False))
        ack = flow.request(flags="A", seq=FIRST + 1, ack=SERVERS_OWN + 1)
        self.client_says(flow, ack, ack)
        self.assertPinned(flow, PinState.ESTABLISHED)
        return flow

    def asks(self, flow: ContentFlow, payload: bytes = REQUEST, *, spoken: bool = False, **fields: Any) -> None:
        """The client's payload reaches the agent, with what the handshake has said."""
        said: dict[str, Any] = {"flags": "PA", "seq": FIRST + 1, "ack": SERVERS_OWN + 1, **fields}
        data = flow.request(payload, **said)
        self.forwards(
            CLIENT,
            data,
            flow.agent.host.port,
            flow.guessed(data, server_scale=9, client_scale=7, sack=0, mss=1400, spoken=spoken),
        )


class GuessedRight(Guess):
    """The agent hands the request on as it came, and is out of it: numbers are the server's own."""

    def runTest(self) -> None:
        flow = self.guesses()
        for _ in range(2):
            self.asks(flow)
        self.ordered(flow, flow.order(0, remember=Remember.GUESS, generation=self.GENERATION))
        self.agent_reaches_server(flow, flow.from_agent(REQUEST, flags="PA", seq=FIRST + 1, ack=SERVERS_OWN + 1))
        answer = flow.reply(b"200 OK", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 40)
        self.server_says(flow, answer, answer)
        more = flow.request(REQUEST, flags="PA", seq=FIRST + 40, ack=SERVERS_OWN + 7)
        self.client_says(flow, more, more)


class GuessedWrong(Guess):
    """The guessed server gets a reset and no request; the right one answers with the numbers that the client knows."""

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
        self.server_says(
            right,
            right.reply(b"200 OK", flags="PA", seq=778, ack=FIRST + 40, window=400),
            right.reply(b"200 OK", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 40, window=100),
        )
        self.drops(POOL_A, flow.reply(b"late", flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1), DropReason.UNBOUND)
        self.assertEqual(self.loads(X3), [1])

    def reaches_agent_guessed_no_more(self, flow: ContentFlow) -> None:
        """The request again, meanwhile: to an agent, which knows it."""
        self.asks(flow)


class GuessedPieces(Guess):
    """Of a request in any order every segment says where the client began, and which server is guessed."""

    def runTest(self) -> None:
        flow = self.guesses()
        self.asks(flow, bytes(GUESSED_MSS), seq=FIRST + 1 + GUESSED_MSS)
        self.asks(flow, b"x", flags="FA", seq=FIRST + 1 + 2 * GUESSED_MSS)
        self.asks(flow, bytes(GUESSED_MSS))


class GuessedServerSpeaks(Guess):
    """An agent is told when the guessed server has said something: data, or its FIN."""

    def runTest(self) -> None:
        for port, (payload, flags) in enumerate(((b"x", "PA"), (b"", "FA")), start=44000):
            with self.subTest(flags=flags):
                flow = self.guesses(port - 5000, client_port=port)
                bare = flow.reply(flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1)
                self.server_says(flow, bare, bare)
                self.asks(flow)
                answer = flow.reply(payload, flags=flags, seq=SERVERS_OWN + 1, ack=FIRST + 1)
                self.server_says(flow, answer, answer)
                self.asks(flow, spoken=True)


class GuessedIsTaken(Guess):
    """By an order an agent has both sides' packets, and then splices; another connection of the port it cannot take."""

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
        answer = flow.reply(b"200 OK", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 40)
        self.server_says(flow, answer, answer)


class GuessedSynWithData(Guess):
    """Data in a SYN goes to the server, which takes none without a cookie (RFC 7413); no agent is to see such a SYN."""

    def runTest(self) -> None:
        self.remembers(Remember.GUESS)
        flow = self.flow()
        syn = flow.request(b"GET / HTTP/1.0\r\n\r\n", flags="S", seq=FIRST, options=OFFERED)
        self.client_says(flow, syn, rebuilt(syn))


class GuessedOptions(Guess):
    """Options that are not there, or in any order; an impossible one ends them, as with Linux."""

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
                self.client_says(flow, syn, expected)
        impossible = (b"\x02\x00\x01\x01", b"\x01\x01\x02\x04", b"\x05\x01\x01\x01", b"\x08\x0b\x04\x02")
        for port, raw in enumerate(impossible, start=43000):
            with self.subTest(raw=raw):
                flow = self.flow(client_port=port)
                syn = flow.request(raw, flags="S", seq=FIRST, dataofs=6)
                self.client_says(flow, syn, rebuilt(flow.request(flags="S", seq=FIRST), 536, None, False))
