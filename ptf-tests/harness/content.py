"""A content service for the packet tests: two agents, two groups that share a server, and a connection's frames."""

from __future__ import annotations

import struct
from typing import Any, cast

from sluice.names import ETHERTYPE_SPLICE, ORDER_SPLICE, PROTOCOL_TCP, SpliceStatus, Turn

from .flow import FIRST, Flow
from .frames import IP, TCP, TTL, Ether, Packet, layers
from .plan import POOL_A, POOL_B, S1_HOST, S2_HOST, S3_HOST, Host, Server, Service

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

OWN = 70_000
"""The agent's initial sequence number, towards the client."""
SERVERS_OWN = 0xFFFF_F000
"""The server's: sequence numbers wrap soon."""
DELTA = (OWN - SERVERS_OWN) % (1 << 32)


class ContentFlow(Flow):
    """A connection to SHOP: its client, an agent and the group and server that the agent opens."""

    def __init__(self, agent: Server, group: Service, server: Server, **client: Any) -> None:
        super().__init__(SHOP, server, **client)
        self.agent = agent
        self.group = group

    def at_agent(self, frame: Packet) -> Packet:
        """What the agent's port must send of a client's frame."""
        copy: Any = self.to(self.agent).at_server(frame)
        return cast(Packet, copy)

    def from_agent(self, payload: bytes = b"", **fields: object) -> Packet:
        """To the group's server in the client's name, as it enters the switch."""
        host = self.agent.host
        tcp: dict[str, Any] = {"sport": self.key.client_port, "dport": self.group.port, **fields}
        network = cast(Any, IP)(src=self.key.client, dst=self.group.address, ttl=TTL)
        return layers(Ether(dst=host.port.mac, src=host.mac), network, cast(Any, TCP)(**tcp), payload)

    def from_agent_to_client(self, payload: bytes = b"", **fields: Any) -> Packet:
        """An answer of the agent's own, as it enters the switch."""
        return self.to(self.agent).reply(payload, **fields)

    def answer_at_agent(self, frame: Packet) -> Packet:
        """What the agent's port must send of its server's frame, in the agent's turn."""
        copy: Any = self.at_client(frame)
        copy[Ether].src, copy[Ether].dst = self.agent.host.port.mac, self.agent.host.mac
        return cast(Packet, copy)

    def order(self, delta: int = DELTA, shift: int = 0, agent: Server | None = None, status: int = 0) -> bytes:
        """The splice order, as the flow's agent (or another one) sends it."""
        host = (agent or self.agent).host
        return self._order(host.port.mac, host.mac, delta, shift, status)

    def confirmation(
        self, status: SpliceStatus, delta: int = DELTA, shift: int = 0, agent: Server | None = None
    ) -> bytes:
        """What comes back of it."""
        host = (agent or self.agent).host
        return self._order(host.mac, host.port.mac, delta, shift, status)

    def _order(self, dst: str, src: str, delta: int, shift: int, status: int) -> bytes:
        ether = bytes.fromhex((dst + src).replace(":", "")) + ETHERTYPE_SPLICE.to_bytes(2, "big")
        key = self.key
        client, service = (bytes(map(int, address.split("."))) for address in (key.client, key.service))
        ends = struct.pack("!4sH4sH", client, key.client_port, service, key.service_port)
        body = bytes((ORDER_SPLICE, status)) + ends + struct.pack("!IbBBB", delta, shift, 0, 0, Turn.SPLICED)
        return (ether + body).ljust(60, b"\0")

    # -- a connection's first frames

    def opening(self) -> Packet:
        """The agent's SYN to the group."""
        return self.from_agent(flags="S", seq=FIRST)

    def opened(self) -> Packet:
        """The server's answer to it."""
        return self.reply(flags="SA", seq=SERVERS_OWN, ack=FIRST + 1)
