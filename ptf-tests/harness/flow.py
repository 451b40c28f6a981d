"""The frames of one connection as client and server send them, and as the switch translates them."""

from __future__ import annotations

from typing import Any, cast

from sluice.names import PROTOCOL_UDP

from .frames import IP, TCP, TTL, UDP, Ether, Packet, layers
from .plan import CLIENT, CLIENT_GATEWAY, CLIENT_HOST, Server, Service
from .slots import Tuple5

FIRST = 1000
"""Sequence number of the client's SYN."""
ANSWER = 5000
"""Sequence number of the server's SYN-ACK."""


class Flow:
    """A connection (or a UDP exchange) between a client and a server, by way of the server's service.

    Scapy fills in lengths and checksums when a frame is sent or compared, also those of the expected frames.
    """

    def __init__(
        self, service: Service, server: Server, client: str = CLIENT_HOST.address, client_port: int = 40000
    ) -> None:
        self.service = service
        self.server = server
        self.key = Tuple5(client, client_port, service.address, service.port, service.protocol)

    @classmethod
    def of(cls, key: Tuple5, service: Service, server: Server) -> Flow:
        """Return the flow of a connection that `slots.colliding` returned."""
        return cls(service, server, key.client, key.client_port)

    def to(self, server: Server) -> Flow:
        """Return the same connection with another server."""
        return Flow(self.service, server, self.key.client, self.key.client_port)

    @property
    def client_mac(self) -> str:
        """The destination MAC address of frames for the client."""
        return CLIENT_HOST.mac if self.key.client == CLIENT_HOST.address else CLIENT_GATEWAY.mac

    def _transport(self, source: int, destination: int, **fields: object) -> Packet:
        kind = UDP if self.service.protocol == PROTOCOL_UDP else TCP
        return cast(Packet, cast(Any, kind)(sport=source, dport=destination, **fields))

    def request(self, payload: bytes = b"", ip: dict[str, object] | None = None, **fields: object) -> Packet:
        """Return a packet of the client, as it enters the switch."""
        key = self.key
        network: dict[str, object] = {"src": key.client, "dst": key.service, "ttl": TTL, **(ip or {})}
        return layers(
            Ether(dst=CLIENT.mac, src=self.client_mac),
            cast(Any, IP)(**network),
            self._transport(key.client_port, key.service_port, **fields),
            payload,
        )

    def at_server(self, frame: Packet) -> Packet:
        """Return the frame that the switch must send to the server for a client's frame."""
        copy: Any = frame.copy()
        host = self.server.host
        copy[Ether].src, copy[Ether].dst = host.port.mac, host.mac
        copy[IP].dst = host.address
        copy[IP].ttl -= 1
        copy[IP].payload.dport = self.server.port
        return cast(Packet, copy)

    def reply(self, payload: bytes = b"", ip: dict[str, object] | None = None, **fields: object) -> Packet:
        """Return a packet of the server, as it enters the switch."""
        host, key = self.server.host, self.key
        network: dict[str, object] = {"src": host.address, "dst": key.client, "ttl": TTL, **(ip or {})}
        return layers(
            Ether(dst=host.port.mac, src=host.mac),
            cast(Any, IP)(**network),
            self._transport(self.server.port, key.client_port, **fields),
            payload,
        )

    def at_client(self, frame: Packet) -> Packet:
        """Return the frame that the switch must send to the client for a server's frame."""
        copy: Any = frame.copy()
        copy[Ether].src, copy[Ether].dst = CLIENT.mac, self.client_mac
        copy[IP].src = self.key.service
        copy[IP].ttl -= 1
        copy[IP].payload.sport = self.key.service_port
        return cast(Packet, copy)

    # -- The frames of a TCP connection

    def syn(self) -> Packet:
        """Return the client's SYN."""
        return self.request(flags="S", seq=FIRST)

    def syn_ack(self) -> Packet:
        """Return the server's SYN-ACK."""
        return self.reply(flags="SA", seq=ANSWER, ack=FIRST + 1)

    def ack(self) -> Packet:
        """Return the client's ACK, which ends the handshake."""
        return self.request(flags="A", seq=FIRST + 1, ack=ANSWER + 1)

    def data(self, payload: bytes = b"GET / HTTP/1.0\r\n\r\n") -> Packet:
        """Return a segment of the client with payload."""
        return self.request(payload, flags="PA", seq=FIRST + 1, ack=ANSWER + 1)

    def fin(self) -> Packet:
        """Return the client's FIN."""
        return self.request(flags="FA", seq=FIRST + 1, ack=ANSWER + 1)
