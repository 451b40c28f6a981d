"""A content service with two agents and two groups that share a server; its frames, and the base class of its tests."""

from __future__ import annotations

import struct
from typing import Any, cast

from sluice.dataplane.table import LOADS
from sluice.names import (
    ETHERTYPE_GUESSED,
    ETHERTYPE_IPV4,
    ETHERTYPE_SPLICE,
    ORDER_SPLICE,
    PROTOCOL_TCP,
    Register,
    Remember,
    SpliceStatus,
    Table,
    Turn,
)

from . import entries
from .base import StageTest
from .flow import FIRST, Flow
from .frames import IP, TCP, TTL, Ether, Packet, changed, layers
from .plan import CLIENT, POOL_A, POOL_B, S1_HOST, S2_HOST, S3_HOST, Host, Server, Service

AGENT_1_HOST = Host(POOL_A, "10.0.2.31", "02:00:00:00:02:31")
AGENT_2_HOST = Host(POOL_B, "10.0.3.32", "02:00:00:00:03:32")
AGENT_1 = Server(21, AGENT_1_HOST, 80)
AGENT_2 = Server(22, AGENT_2_HOST, 80)
X1 = Server(31, S1_HOST, 8000)
X2 = Server(32, S2_HOST, 8000)
X3 = Server(33, S3_HOST, 8000)
SHOP = Service(11, "10.0.0.110", 80, PROTOCOL_TCP, (AGENT_1, AGENT_2))
IMAGES = Service(12, "10.0.9.1", 80, PROTOCOL_TCP, (X1, X2))
FAST = Service(13, "10.0.9.2", 8080, PROTOCOL_TCP, (X2, X3))
SERVERS = (AGENT_1, AGENT_2, X1, X2, X3)
REQUEST = b"GET /a.gif HTTP/1.1\r\nHost: shop\r\n\r\n"

OWN = 70_000
"""Initial sequence number in the agent's SYN-ACK to the client."""
SERVERS_OWN = 0xFFFF_F000
"""Initial sequence number of the server, shortly before sequence numbers wrap."""
DELTA = (OWN - SERVERS_OWN) % (1 << 32)


class ContentFlow(Flow):
    """A connection to SHOP: its client, its agent, and the group and server to which the agent connects."""

    def __init__(self, agent: Server, group: Service, server: Server, **client: Any) -> None:
        super().__init__(SHOP, server, **client)
        self.agent = agent
        self.group = group

    def at_agent(self, frame: Packet) -> Packet:
        """Return the frame that the agent's port must send for a client's frame."""
        copy: Any = self.to(self.agent).at_server(frame)
        return cast(Packet, copy)

    def from_agent(self, payload: bytes = b"", **fields: object) -> Packet:
        """Return an agent's packet to the group's server, in the client's name, as it enters the switch."""
        host = self.agent.host
        tcp: dict[str, Any] = {"sport": self.key.client_port, "dport": self.group.port, **fields}
        network = cast(Any, IP)(src=self.key.client, dst=self.group.address, ttl=TTL)
        return layers(Ether(dst=host.port.mac, src=host.mac), network, cast(Any, TCP)(**tcp), payload)

    def from_agent_to_client(self, payload: bytes = b"", **fields: Any) -> Packet:
        """Return an agent's own segment to the client, as it enters the switch."""
        return self.to(self.agent).reply(payload, **fields)

    def answer_at_agent(self, frame: Packet) -> Packet:
        """Return the frame that the agent's port must send for a server's frame, before the connection is spliced."""
        copy: Any = self.at_client(frame)
        copy[Ether].src, copy[Ether].dst = self.agent.host.port.mac, self.agent.host.mac
        return cast(Packet, copy)

    def order(
        self,
        delta: int = DELTA,
        shift: int = 0,
        agent: Server | None = None,
        *,
        remember: Remember = Remember.NOTHING,
        generation: int = 1,
        turn: Turn = Turn.SPLICED,
        client_shift: int = 0,
    ) -> bytes:
        """Return the order to splice the connection, as the flow's agent (or another agent) sends it to the switch."""
        host, key = (agent or self.agent).host, self.key
        ether = bytes.fromhex((host.port.mac + host.mac).replace(":", "")) + ETHERTYPE_SPLICE.to_bytes(2, "big")
        client, service = (bytes(map(int, address.split("."))) for address in (key.client, key.service))
        ends = struct.pack("!4sH4sH", client, key.client_port, service, key.service_port)
        translated = struct.pack("!IbBBBB", delta, shift, remember, generation, turn, client_shift)
        return (ether + bytes((ORDER_SPLICE, 0)) + ends + translated).ljust(60, b"\0")

    def confirmation(self, order: bytes, status: SpliceStatus) -> bytes:
        """Return the switch's confirmation of an order, with this status."""
        return order[6:12] + order[:6] + order[12:15] + bytes([status]) + order[16:]

    def take(self, first: int = FIRST) -> bytes:
        """Return the order that takes over a guessed connection; `first` is the client's initial sequence number.

        The switch opens a guessed connection to a server before the agent has read the request.
        """
        return self.order(first, generation=0, turn=Turn.AGENT)

    def guessed(
        self, frame: Packet, server_scale: int, client_scale: int, sack: int, mss: int, *, server_has_sent: bool = False
    ) -> bytes:
        """Return the frame that the agent's port must send for a client's payload on a guessed connection.

        The other parameters are the values of fields in the header guessed_h, which precedes the IPv4 header.
        """
        sent = bytes(self.at_agent(frame))
        facts = struct.pack(
            "!BBBBHHIH", server_scale, client_scale, sack, server_has_sent, mss, self.server.id, FIRST, ETHERTYPE_IPV4
        )
        return sent[:12] + ETHERTYPE_GUESSED.to_bytes(2, "big") + facts + sent[14:]

    # -- The first frames of a connection

    def opening(self) -> Packet:
        """Return the agent's SYN to the group."""
        return self.from_agent(flags="S", seq=FIRST)

    def opened(self) -> Packet:
        """Return the server's SYN-ACK."""
        return self.reply(flags="SA", seq=SERVERS_OWN, ack=FIRST + 1)


def rebuilt(frame: Packet, mss: int = 1400, scale: int | None = 7, sack: bool = True) -> Packet:
    """Return a SYN or SYN-ACK with the TCP options that the switch keeps on content connections."""
    copy: Any = frame.copy()
    options: list[tuple[Any, Any]] = [("MSS", mss), ("NOP", None), ("NOP", None)]
    options += [("SAckOK", b"")] if sack else [("NOP", None), ("NOP", None)]
    options += [("NOP", None), ("WScale", scale)] if scale is not None else [("NOP", None)] * 4
    copy[TCP].options = options
    return cast(Packet, copy)


class ContentTest(StageTest):
    """Base class: SHOP exists until the end of the test; IMAGES' connections are sent to X1, those of FAST to X3."""

    NEEDS = (Table.AGENTS,)

    def setUp(self) -> None:
        super().setUp()
        shop = SHOP
        self.insert(
            *(entries.server(server) for server in SERVERS),
            *(self.switch.neighbour(agent.host) for agent in (AGENT_1, AGENT_2)),
            *(entries.host_route(agent.host.address) for agent in (AGENT_1, AGENT_2)),
        )
        self.insert(
            entries.content(shop),
            *(entries.group(group, shop) for group in (IMAGES, FAST)),
            *(entries.origin(shop, agent) for agent in (AGENT_1, AGENT_2)),
            *(entries.content_origin(shop, server) for server in (X1, X2, X3)),
            *(entries.agent_hop(agent) for agent in (AGENT_1, AGENT_2)),
            *(entries.agent(shop, self.switch.number(agent.host.port), agent) for agent in (AGENT_1, AGENT_2)),
            entries.capacities(shop, {AGENT_1: 1}),
            entries.capacities(IMAGES, {X2: 1}),
            entries.capacities(FAST, {X2: 1}),
            entries.ratios(IMAGES, {X1: 1}),
            entries.ratios(FAST, {X3: 1}),
        )
        self.addCleanup(self._empty)

    def _empty(self) -> None:
        for register in LOADS:
            for server in SERVERS:
                self.switch.registers.write(register, server.id, 0)

    def flow(self, **client: Any) -> ContentFlow:
        """Return a connection to X1 by way of AGENT_1."""
        return ContentFlow(AGENT_1, IMAGES, X1, **client)

    def loads(self, *servers: Server) -> list[int]:
        """Return the servers' numbers of open connections, as the switch counts them to compare candidate servers."""
        return [self.switch.registers.read([(Register.LOAD_FIRST, server.id)])[0] for server in servers]

    # -- The effects of one frame

    def reaches_agent(self, flow: ContentFlow, frame: Packet) -> None:
        """Send a client's frame; assert that the agent receives it."""
        self.forwards(CLIENT, frame, flow.agent.host.port, flow.at_agent(frame))

    def agent_reaches_server(self, flow: ContentFlow, frame: Packet) -> None:
        """Send an agent's frame; assert that the group's server receives it."""
        self.forwards(flow.agent.host.port, frame, flow.server.host.port, flow.at_server(frame))

    def server_reaches_agent(self, flow: ContentFlow, frame: Packet, expected: Packet | None = None) -> None:
        """Send a server's frame; assert that the agent receives `expected` (by default the frame itself), with the
        client as its destination."""
        self.forwards(flow.server.host.port, frame, flow.agent.host.port, flow.answer_at_agent(expected or frame))

    def opens_group(self, flow: ContentFlow) -> None:
        """Perform the agent's complete handshake with the server."""
        self.agent_reaches_server(flow, flow.opening())
        self.server_reaches_agent(flow, flow.opened(), rebuilt(flow.opened(), 536, None, sack=False))
        self.agent_reaches_server(flow, flow.from_agent(flags="A", seq=FIRST + 1, ack=SERVERS_OWN + 1))

    def splices(self, flow: ContentFlow, delta: int = DELTA, shift: int = 0, client_shift: int = 0) -> None:
        """Send the agent's order to splice; assert that the switch applies and confirms the order."""
        self.ordered(flow, flow.order(delta, shift, client_shift=client_shift))

    def ordered(self, flow: ContentFlow, order: bytes, status: SpliceStatus = SpliceStatus.APPLIED) -> None:
        """Send an agent's order; assert that the switch confirms the order with this status."""
        port = flow.agent.host.port
        self.forwards(port, order, port, flow.confirmation(order, status))

    def established(self, shift: int = 0, client_shift: int = 0, **client: Any) -> ContentFlow:
        """Return a connection that the switch has spliced."""
        flow = self.flow(**client)
        self.opens_group(flow)
        self.splices(flow, shift=shift, client_shift=client_shift)
        return flow

    def client_sends_spliced(self, flow: ContentFlow, frame: Packet, expected: Packet | None = None) -> None:
        """Send a client's frame; assert that the server receives `expected` (None: the frame) at its own endpoint."""
        self.forwards(CLIENT, frame, flow.server.host.port, flow.at_server(expected or frame))

    def server_sends_spliced(self, flow: ContentFlow, frame: Packet, expected: Packet | None = None) -> None:
        """Send a server's frame; assert that the client receives `expected` (None: the frame) from the service."""
        self.forwards(flow.server.host.port, frame, CLIENT, flow.at_client(expected or frame))

    def client_segment(
        self, flow: ContentFlow, payload: bytes = b"", acked: int = 1, received_window: int | None = None, **fields: Any
    ) -> None:
        """Send a client's segment that acknowledges `acked` sequence numbers of the server.

        Assert that the server receives the acknowledgement as a number of its own sequence, and `received_window` if
        given.
        """
        fields = {"flags": "A", "seq": FIRST + 1, **fields}
        sent, expected = (flow.request(payload, ack=(own + acked) % (1 << 32), **fields) for own in (OWN, SERVERS_OWN))
        expected = expected if received_window is None else changed(expected, TCP_window=received_window)
        self.client_sends_spliced(flow, sent, expected)

    def server_segment(
        self, flow: ContentFlow, payload: bytes = b"", sent: int = 1, received_window: int | None = None, **fields: Any
    ) -> None:
        """Send a server's segment whose sequence number is the server's initial sequence number plus `sent`.

        Assert that the client receives the segment with the agent's sequence numbers, and with `received_window` if
        given.
        """
        fields = {"flags": "A", "ack": FIRST + 1, **fields}
        frame, expected = (flow.reply(payload, seq=(own + sent) % (1 << 32), **fields) for own in (SERVERS_OWN, OWN))
        expected = expected if received_window is None else changed(expected, TCP_window=received_window)
        self.server_sends_spliced(flow, frame, expected)
