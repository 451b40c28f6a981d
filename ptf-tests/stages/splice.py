"""Tests of stages `agents` and `splice`: an agent opens connections, which the switch then translates."""

from __future__ import annotations

from typing import Any, cast

from harness import entries
from harness.content import (
    AGENT_1,
    AGENT_2,
    DELTA,
    FAST,
    IMAGES,
    OWN,
    REQUEST,
    SERVERS_OWN,
    SHOP,
    X1,
    X3,
    ContentFlow,
    ContentTest,
    rebuilt,
)
from harness.flow import FIRST
from harness.frames import ICMP, IP, Ether, Packet, changed, layers, octets
from harness.plan import CLIENT, CLIENT_HOST, POOL_A, POOL_B, UPLINK
from sluice.names import DropReason, PinState, PuntReason, SpliceStatus


class ClientsSynClaimsNothing(ContentTest):
    """Handshake and request of an unknown client reach an agent, and the agent's answers reach the client.

    The connection occupies no slot of the connection table.
    """

    def runTest(self) -> None:
        flow = self.flow()
        self.reaches_agent(flow, flow.syn())
        answer = flow.from_agent_to_client(flags="SA", seq=OWN, ack=FIRST + 1)
        self.forwards(AGENT_1.host.port, answer, CLIENT, flow.at_client(answer))
        self.reaches_agent(flow, flow.request(flags="A", seq=FIRST + 1, ack=OWN + 1))
        self.reaches_agent(flow, flow.request(REQUEST, flags="PA", seq=FIRST + 1, ack=OWN + 1))
        self.assertNotPinned(flow.key)


class FloodTakesNoSlot(ContentTest):
    """SYNs of a thousand clients to a content service do not change the connection table."""

    def runTest(self) -> None:
        flows = [self.flow(client=f"20.1.{number >> 8}.{number & 255}") for number in range(1000)]
        self.flood(CLIENT, [octets(flow.syn()) for flow in flows])
        for flow in flows:
            self.assertNotPinned(flow.key)


class AgentsTurn(ContentTest):
    """From an agent's SYN to the splice, packets of client and server reach the agent.

    Packets of the agent reach the server.
    """

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
    """After the order to splice, packets bypass the agent, with translated sequence and acknowledgement numbers."""

    def runTest(self) -> None:
        flow = self.established()
        for size in (0, 1, 1459):
            self.client_segment(flow, bytes(size), flags="PA")
            self.server_segment(flow, bytes(size), 5000, flags="PA", window=501)


class SelectiveAcknowledgements(ContentTest):
    """One to four SACK blocks of a client are translated to the server's sequence numbers, like acknowledgements."""

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
            self.client_sends_spliced(flow, *frames)


class Windows(ContentTest):
    """The server's windows are shifted as ordered: to at most 65,535, and to at least 1 unless they are 0.

    Windows of SYNs are not shifted.
    """

    def runTest(self) -> None:
        cases = {
            3: [(0, 0), (1, 8), (8191, 65528), (8192, 65535), (65535, 65535)],
            -3: [(0, 0), (1, 1), (7, 1), (16, 2)],
        }
        for port, (shift, windows) in enumerate(cases.items(), start=41000):
            flow = self.established(shift, client_port=port)
            for window, expected in windows:
                with self.subTest(shift=shift, window=window):
                    self.server_segment(flow, received_window=expected, window=window)
                    self.client_segment(flow, window=window)
            again = flow.reply(flags="SA", seq=SERVERS_OWN, ack=FIRST + 1, window=64000)
            expected = flow.reply(flags="SA", seq=OWN, ack=FIRST + 1, window=64000)
            self.server_sends_spliced(flow, again, rebuilt(expected, 536, None, sack=False))


class ClientWindows(ContentTest):
    """For a server that does not scale windows, the client's windows are shifted up, to at most 65,535.

    Windows of SYNs, and windows of the server, are not shifted.
    """

    def runTest(self) -> None:
        cases = {
            1: [(0, 0), (1, 2), (32767, 65534), (32768, 65535)],
            7: [(0, 0), (1, 128), (501, 64128), (512, 65535), (65535, 65535)],
            14: [(0, 0), (3, 49152), (4, 65535), (65535, 65535)],
        }
        for port, (shift, windows) in enumerate(cases.items(), start=41000):
            flow = self.established(client_shift=shift, client_port=port)
            for window, expected in windows:
                with self.subTest(shift=shift, window=window):
                    for payload, flags in ((b"", "A"), (b"odd", "PA"), (b"", "FA")):
                        self.client_segment(flow, payload, received_window=expected, flags=flags, window=window)
                        if flags == "A":
                            self.server_segment(flow, window=window)
            self.client_sends_spliced(flow, flow.request(flags="S", seq=FIRST + 5, window=501))


class WindowsOfBothSides(ContentTest):
    """Both shifts of an order apply, each in its direction, also in segments with SACK blocks."""

    def runTest(self) -> None:
        flow = self.established(-4, 3)
        self.server_segment(flow, b"x", received_window=100, window=1600)
        from_client = [
            flow.request(
                flags="A",
                seq=FIRST + 1,
                ack=number + 1,
                window=size,
                options=[("NOP", None), ("NOP", None), ("SAck", ((number + 9) % (1 << 32), (number + 99) % (1 << 32)))],
            )
            for number, size in ((OWN, 100), (SERVERS_OWN, 800))
        ]
        self.client_sends_spliced(flow, *from_client)


class ErrorsAboutSegments(ContentTest):
    """In an ICMP error about a server's segment, the switch restores the sequence number that the server has sent.

    The server would ignore an error that quotes another sequence number.
    """

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
    """A repeated order is confirmed again; a different order after the splice changes nothing."""

    def runTest(self) -> None:
        flow = self.established()
        self.splices(flow)
        for other in (flow.order(DELTA + 1), flow.order(shift=1), flow.order(client_shift=1)):
            self.ordered(flow, other, SpliceStatus.NOT_YOURS)
        self.client_segment(flow, b"x", flags="PA")


class OrdersOfOthers(ContentTest):
    """Only a connection's own agent can splice it: the switch refuses an order of another agent.

    An order that arrives by a port without an agent, or before the agent's connection to a server, is refused too.
    """

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
    """Orders with an unknown operation, `Turn` or window scale are dropped as unsupported."""

    def runTest(self) -> None:
        order = self.flow().order()
        self.drops(POOL_A, order[:14] + b"\x02" + order[15:], DropReason.UNSUPPORTED)
        self.drops(POOL_A, order[:35] + b"\x07" + order[36:], DropReason.UNSUPPORTED)
        self.drops(POOL_A, self.flow().order(client_shift=15), DropReason.UNSUPPORTED)


class GroupsAreForAgents(ContentTest):
    """A packet to a group is dropped if a client sent it, or if it arrived on a port without an agent."""

    def runTest(self) -> None:
        flow = self.flow()
        for port, host in ((CLIENT, CLIENT_HOST.mac), (UPLINK, CLIENT_HOST.mac)):
            frame: Any = flow.opening()
            frame[Ether].dst, frame[Ether].src = port.mac, host
            self.drops(port, frame, DropReason.NOT_AN_AGENT)
        self.assertNotPinned(flow.key)


class WithoutASlot(ContentTest):
    """A packet of an agent or a server is dropped if its connection has no slot, because the translation is unknown."""

    def runTest(self) -> None:
        flow = self.flow()
        self.drops(POOL_A, flow.from_agent(REQUEST, flags="PA", seq=FIRST + 1, ack=1), DropReason.NO_SLOT)
        self.drops(POOL_A, flow.reply(flags="A", seq=5, ack=FIRST + 1), DropReason.UNBOUND)


class ForgedSyn(ContentTest):
    """A forged SYN in the client's name does not change a spliced connection; the server challenges it (RFC 5961)."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_sends_spliced(flow, flow.request(flags="S", seq=77))
        self.assertPinned(flow, PinState.ESTABLISHED)
        self.drops(POOL_A, flow.opening(), DropReason.SPLICED)
        self.client_segment(flow, b"x", flags="PA")


class SynWithPayload(ContentTest):
    """A SYN with a request is sent to the agent before the splice, and dropped afterwards."""

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        syn = flow.request(REQUEST, flags="S", seq=FIRST)
        self.reaches_agent(flow, syn)
        self.splices(flow)
        self.drops(CLIENT, syn, DropReason.SYN_PAYLOAD)
        self.assertPinned(flow, PinState.ESTABLISHED)


class PortUsedAgain(ContentTest):
    """After a client's RST, a SYN with the connection's ports is sent to an agent, whose own SYN claims the slot."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_sends_spliced(flow, flow.request(flags="R", seq=FIRST + 1))
        self.assertEqual(self.loads(X1), [0])
        self.reaches_agent(flow, flow.syn())
        again = ContentFlow(AGENT_1, FAST, X3)
        self.opens_group(again)
        self.assertPinned(again, PinState.ESTABLISHED)
        self.assertEqual(self.loads(X1, X3), [0, 1])


class PortUsedAgainAfterItsEnd(ContentTest):
    """After both sides have ended a connection, packets with its ports are sent to an agent, not to the old server."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_segment(flow, flags="FA")
        self.server_segment(flow, flags="FA", ack=FIRST + 2)
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
    """An RST and a SYN, which any host can forge, free no slot: the server's packets restore the connection."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_sends_spliced(flow, flow.request(flags="R", seq=FIRST + 1))
        self.reaches_agent(flow, flow.syn())
        self.server_segment(flow, b"more")
        self.assertPinned(flow, PinState.ESTABLISHED)


class Leaves(ContentTest):
    """An agent leaves a server by an RST to its group and opens another group; the old server's packets are dropped."""

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        self.agent_reaches_server(flow, flow.from_agent(flags="R", seq=FIRST + 1))
        moved = ContentFlow(AGENT_1, FAST, X3)
        self.opens_group(moved)
        self.assertEqual(self.loads(X1, X3), [0, 1])
        self.drops(POOL_A, flow.reply(b"late", flags="A", seq=SERVERS_OWN + 1, ack=FIRST + 1), DropReason.UNBOUND)
        self.splices(moved)
        self.client_segment(moved, b"x", flags="PA")


class LateAnswersOfALeftServer(ContentTest):
    """Packets that a server sent before the agent's RST arrived do not return the connection to that server."""

    def runTest(self) -> None:
        late = {"ACK": "A", "data": "PA", "FIN": "FA", "SYN-ACK": "SA"}
        for port, (kind, flags) in enumerate(late.items(), start=43000):
            with self.subTest(kind):
                flow = ContentFlow(AGENT_1, IMAGES, X1, client_port=port)
                self.opens_group(flow)
                self.agent_reaches_server(flow, flow.from_agent(flags="R", seq=FIRST + 1))
                answer = flow.reply(b"late" if kind == "data" else b"", flags=flags, seq=SERVERS_OWN + 1, ack=FIRST + 1)
                if kind == "SYN-ACK":
                    # The SYN-ACK is dropped, because the agent could not distinguish it from the answer to the agent's
                    # next SYN.
                    self.drops(POOL_A, answer, DropReason.UNBOUND)
                else:
                    self.server_reaches_agent(flow, answer)
                self.assertPinned(flow, PinState.CLOSED)
                moved = ContentFlow(AGENT_1, FAST, X3, client_port=port)
                self.opens_group(moved)
                self.splices(moved)


class AnotherAgentTakesOver(ContentTest):
    """If an agent is removed, its connection's packets reach another agent, whose SYN takes over the connection."""

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


class AnswerToAnUnresolvedAgent(ContentTest):
    """An answer to an agent whose MAC address is unknown is sent to the controller with the agent's neighbour id.

    The id names the next hop, because the answer's destination is the client. The answer needs no route to the agent.
    """

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        agent = flow.agent.host
        self.delete(self.switch.neighbour(agent), entries.host_route(agent.address))
        answer = flow.reply(b"200", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 30)
        self.punts(
            flow.server.host.port,
            answer,
            PuntReason.NEIGHBOUR,
            changed(flow.answer_at_agent(answer), Ether_src=answer.src, Ether_dst=answer.dst),
            drop=DropReason.NEIGHBOUR_UNRESOLVED,
            next_hop=agent.address,
        )


class AnswerToARemovedAgent(ContentTest):
    """An answer to an agent that is no longer configured is dropped."""

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        self.delete(entries.agent_hop(flow.agent))
        answer = flow.reply(b"200", flags="PA", seq=SERVERS_OWN + 1, ack=FIRST + 30)
        self.drops(flow.server.host.port, answer, DropReason.SERVER_UNKNOWN)


class Resets(ContentTest):
    """Before the splice an RST is sent to the agent; afterwards an RST is translated, and ends the connection."""

    def runTest(self) -> None:
        flow = self.flow()
        self.opens_group(flow)
        self.reaches_agent(flow, flow.request(flags="R", seq=FIRST + 1))
        for port, by_client in enumerate((True, False), start=43000):
            with self.subTest(by_client=by_client):
                flow = self.established(client_port=port)
                if by_client:
                    self.client_segment(flow, flags="RA")
                else:
                    self.server_segment(flow, flags="RA")
                self.assertPinned(flow, PinState.CLIENT_RESET if by_client else PinState.RESET)


class Keepalives(ContentTest):
    """A keepalive is translated like any other segment.

    It has at most one byte, and a sequence number one below the next.
    """

    def runTest(self) -> None:
        flow = self.established()
        for byte in (b"", b"\0"):
            self.client_segment(flow, byte, seq=FIRST)
            self.server_segment(flow, byte, 0)
        self.assertPinned(flow, PinState.ESTABLISHED)


class Ends(ContentTest):
    """FINs of both sides end a spliced connection, whose last packets are still translated."""

    def runTest(self) -> None:
        flow = self.established()
        self.client_segment(flow, flags="FA")
        self.assertPinned(flow, PinState.CLIENT_CLOSING)
        self.server_segment(flow, b"rest", flags="FA", ack=FIRST + 2)
        self.assertPinned(flow, PinState.CLOSED)
        self.assertEqual(self.loads(X1), [0])
        self.client_segment(flow, acked=6, seq=FIRST + 2)
