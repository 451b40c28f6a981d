"""The slots that the connection table's hashes select for a connection, and connections for given slots.

The hashes are those of the controller's model of the switch (sluice.dataplane). On a target with other hashes, only
tests that read cells fail.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from zlib import crc32

from sluice.addresses import IPV4_BITS, from_number, from_text
from sluice.dataplane.connection import Connection
from sluice.dataplane.rates import place
from sluice.names import CONNECTION_SLOTS, PROTOCOL_TCP, PROTOCOL_UDP

SLOT_BITS = CONNECTION_SLOTS.bit_length() - 1


@dataclass(frozen=True)
class Response:
    """Where and how the switch stores a response in the registers that measure response rates."""

    slot: int
    fingerprint: int
    """Fingerprint by which the switch decides whether to measure the response."""
    owner: int
    """Value by which the cell identifies the response: the fingerprint, or on Tofino the complete hash."""


@dataclass(frozen=True)
class Tuple5:
    """A connection's 5-tuple, which is the same for packets of both directions."""

    client: str
    client_port: int
    service: str
    service_port: int
    protocol: int = PROTOCOL_TCP

    @property
    def connection(self) -> Connection:
        """The connection as the model of the data plane represents it."""
        client, service = from_text(self.client).packed, from_text(self.service).packed
        return Connection(client, self.client_port, service, self.service_port, self.protocol)

    @property
    def slot_1(self) -> int:
        """Index of the connection's slot in way 1."""
        return self.connection.place.slot_1

    @property
    def slot_2(self) -> int:
        """Index of the connection's slot in way 2."""
        return self.connection.place.slot_2

    @property
    def fingerprint(self) -> int:
        """The 27-bit fingerprint in the connection's key cell on v1model."""
        return self.connection.place.fingerprint

    @property
    def full_fingerprint(self) -> int:
        """The 32-bit fingerprint in the connection's key cell on Tofino."""
        return self.connection.full_fingerprint

    def drawn_by_ratio(self, total: int) -> int:
        """Return the index, below `total`, that the selector by R draws for the connection.

        `total` is the sum of weights: each member has as many successive indices as its weight.
        """
        return self.connection.draw % total

    def drawn_by_capacity(self, total: int) -> int:
        """Return the index, below `total`, that the selector by capacity draws (see `drawn_by_ratio`)."""
        return self.connection.stable_draw % total

    def response(self, tofino: bool) -> Response:
        """Return slot, fingerprint and owner of the connection's response in the registers of response rates.

        Tofino's hash omits the protocol, because Tofino measures TCP only.
        """
        key = self.connection.rate_key
        if tofino:
            client, client_port, service, service_port, _ = self.connection
            ports = service_port.to_bytes(2, "big") + client_port.to_bytes(2, "big")
            key = crc32(service + ports + client)
        slot, fingerprint = place(key)
        return Response(slot, fingerprint, key if tofino else fingerprint)


def connection_of(frame: bytes) -> Tuple5 | None:
    """Return the connection of a client's complete TCP or UDP frame with at most one tag; None for other frames."""
    start = 18 if frame[12:14] == b"\x81\x00" else 14
    if frame[start - 2 : start] != b"\x08\x00" or len(frame) < start + 20:
        return None
    ports = start + (frame[start] & 0xF) * 4
    protocol = frame[start + 9]
    if protocol not in (PROTOCOL_TCP, PROTOCOL_UDP) or len(frame) < ports + 4:
        return None
    client, service = (socket.inet_ntoa(frame[start + at : start + at + 4]) for at in (12, 16))
    client_port, service_port = (int.from_bytes(frame[ports + at : ports + at + 2], "big") for at in (0, 2))
    return Tuple5(client, client_port, service, service_port, protocol)


# A CRC is affine over GF(2): each free bit of the client's address and port toggles a fixed pattern of slot bits. So
# the connections with given slots are the solutions of a linear system, which is solved without a search.
_CLIENTS, _CLIENT_BITS = 20 << 24, 24
"""Network of the clients (20.0.0.0/8) as an integer, and the number of bits that are free in it."""
_PORT_BITS = 16


def colliding(like: Tuple5, *, slot_1: int, slot_2: int | None = None) -> Iterator[Tuple5]:
    """Yield connections to the service of `like` with the given slots (`slot_2` None: any), except `like` itself."""

    def at(free: int) -> Tuple5:
        client = str(from_number(_CLIENTS | free >> _PORT_BITS, IPV4_BITS))
        return Tuple5(client, free & 0xFFFF, like.service, like.service_port, like.protocol)

    def image(connection: Tuple5) -> int:
        value = connection.slot_1
        if slot_2 is not None:
            value |= connection.slot_2 << SLOT_BITS
        return value

    origin = image(at(0))
    target = slot_1 | (slot_2 or 0) << SLOT_BITS
    first, kernel = _solve([image(at(1 << bit)) ^ origin for bit in range(_CLIENT_BITS + _PORT_BITS)], target ^ origin)
    for choice in count():
        if choice >> len(kernel):
            return
        free = first
        for position, vector in enumerate(kernel):
            if choice >> position & 1:
                free ^= vector
        connection = at(free)
        if connection.client_port and connection != like:
            yield connection


def _solve(columns: list[int], target: int) -> tuple[int, list[int]]:
    """Return a number whose bits select columns with sum `target` (mod 2), and a basis of such numbers for sum 0."""
    basis: dict[int, tuple[int, int]] = {}
    kernel: list[int] = []

    def reduced(value: int, chosen: int) -> tuple[int, int]:
        while value and value.bit_length() in basis:
            other, other_chosen = basis[value.bit_length()]
            value ^= other
            chosen ^= other_chosen
        return value, chosen

    for bit, column in enumerate(columns):
        value, chosen = reduced(column, 1 << bit)
        if value:
            basis[value.bit_length()] = (value, chosen)
        else:
            kernel.append(chosen)
    rest, solution = reduced(target, 0)
    if rest:
        raise ValueError("no connection has these slots")
    return solution, kernel
