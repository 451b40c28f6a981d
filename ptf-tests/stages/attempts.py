"""Tests of an agent's repeated attempts to connect: an attempt does not reach the server that has just refused."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from harness import entries
from harness.content import AGENT_1, IMAGES, SHOP, X1, X2, X3, ContentFlow, ContentTest
from harness.flow import FIRST, Flow
from harness.frames import IP, Ether, Packet, octets
from harness.plan import CLIENT, S1, S1_HOST, S3_HOST, WEB, Server
from sluice.names import PinState, Register

X4 = Server(34, S1_HOST, 8001)
FOUR = (X1, X2, X3, X4)
CLIENTS = 32
OTHERS = 300
"""Lowest of the numbers that identify the selector groups of alternatives; each group omits one server."""


class Refusing(ContentTest):
    """Base class: a group of four servers of equal weight, which refuse each attempt of `attempts`.

    `looks`: the switch compares the loads of candidates. `shares` has the same meaning as in `entries.group`.
    """

    looks = True
    shares = 0

    def setUp(self) -> None:
        super().setUp()
        self.insert(entries.server(X4))
        self.insert(entries.content_origin(SHOP, X4))
        others = {server: OTHERS + number for number, server in enumerate(FOUR)} if self.looks else None
        for server, number in (others or {}).items():
            self.insert(entries.others(number, {other: 16 for other in FOUR if other is not server}))
        self.switch.modify(
            [entries.ratios(IMAGES, dict.fromkeys(FOUR, 16), others), entries.group(IMAGES, SHOP, self.shares)]
        )
        self.addCleanup(self._restore)

    def _restore(self) -> None:
        self.switch.modify([entries.ratios(IMAGES, {X1: 1}), entries.group(IMAGES, SHOP)])
        self.switch.registers.write(Register.DRAW_POINT, IMAGES.id, 0)

    def asks(self, port: int, attempt: int) -> ContentFlow:
        """Send an agent's SYN; assert that the server that receives it is pinned; return the flow with this server."""
        flow = self.flow(client_port=port)
        outcome = self.exchange(AGENT_1.host.port, numbered(flow.opening(), attempt))
        ((_, frame),) = outcome.frames
        sent: Any = Ether(frame)
        (server,) = (s for s in FOUR if (s.host.address, s.port) == (sent[IP].dst, sent[IP].payload.dport))
        flow = ContentFlow(AGENT_1, IMAGES, server, client_port=port)
        self.assertEqual(frame, octets(flow.at_server(numbered(flow.opening(), attempt))))
        (pin,) = self.pins(flow.key)
        self.assertEqual((pin.server, pin.state), (server.id, PinState.PENDING))
        return flow

    def refuses(self, flow: ContentFlow) -> None:
        """Send the server's RST; assert that the agent receives it."""
        self.server_reaches_agent(flow, flow.reply(flags="RA", ack=FIRST + 1))

    def attempts(self, port: int) -> list[Server]:
        """Return the servers that four attempts of a connection reach, in the order of the attempts."""
        servers: list[Server] = []
        for attempt in range(4):
            flow = self.asks(port, attempt)
            self.refuses(flow)
            servers.append(flow.server)
        return servers


def numbered(frame: Packet, attempt: int) -> Packet:
    """Return an agent's SYN with an attempt number, which is in the identification field of the IPv4 header."""
    copy: Any = frame.copy()
    copy[IP].id = attempt
    return copy


class AnotherServerIsAsked(Refusing):
    """If the switch compares candidates, it does not select the server that has just refused, despite its low load."""

    def runTest(self) -> None:
        for port in range(41000, 41000 + CLIENTS):
            servers = self.attempts(port)
            for before, after in pairwise(servers):
                self.assertNotEqual(before, after, servers)
        self.assertEqual(self.loads(*FOUR), [0, 0, 0, 0])


class AnotherServerIsAskedByTurns(AnotherServerIsAsked):
    """As in AnotherServerIsAsked, but the switch draws servers by an evenly spaced sequence instead of by hashes."""

    shares = 64


class HashesDrawAllServers(Refusing):
    """Without a comparison of candidates, four attempts of a connection reach all four servers of equal weight.

    The switch draws servers by hashes.
    """

    looks = False

    def runTest(self) -> None:
        for port in range(41000, 41000 + CLIENTS):
            self.assertEqual(Counter(self.attempts(port)), Counter(FOUR))


class TurnsDrawOtherServers(Refusing):
    """Without a comparison of candidates, four attempts of a connection reach three or four of the four servers.

    The switch draws servers by an evenly spaced sequence.
    """

    looks = False
    shares = 64

    def runTest(self) -> None:
        for port in range(41000, 41000 + CLIENTS):
            self.assertGreaterEqual(len(set(self.attempts(port))), 3)


class SameAttemptAgain(Refusing):
    """Packets of a pinned connection reach its server, whatever attempt number a repeated SYN or a later packet has."""

    def runTest(self) -> None:
        flow = self.asks(41000, 1)
        for attempt in range(4):
            self.agent_reaches_server(flow, numbered(flow.opening(), attempt))
        flow = self.asks(41001, 0)
        self.server_reaches_agent(flow, flow.reply(flags="A", ack=FIRST + 1))
        self.agent_reaches_server(flow, numbered(flow.from_agent(flags="A", seq=FIRST + 1, ack=1), 2))


class ClientsNumbersChooseNothing(ContentTest):
    """The identification field of a client's packet to a plain service does not change which server is drawn."""

    def runTest(self) -> None:
        self.weigh(WEB, {S1: 1, WEB.servers[2]: 1})
        for port in range(42000, 42016):
            servers = [self._chosen(port, number) for number in range(4)]
            self.assertEqual(len(set(servers)), 1)

    def _chosen(self, port: int, number: int) -> str:
        flow = Flow(WEB, S1, client_port=port)
        outcome = self.exchange(CLIENT, numbered(flow.syn(), number))
        self.switch.clear_connections()
        ((_, frame),) = outcome.frames
        self.assertIn(Ether(frame)[IP].dst, (S1_HOST.address, S3_HOST.address))
        return str(Ether(frame)[IP].dst)
