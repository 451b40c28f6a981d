"""Addresses and ports of connections, and their slots in the connection table. The CRC-32 hashes are computed for
complete NumPy arrays.

A CRC is affine: the CRC of a message is the exclusive or of a constant and of a contribution of each byte. The
contribution depends on the byte's value and position, so all contributions are computed once and then looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sluice.addresses import IPV4_BITS, from_number, from_text
from sluice.dataplane.connection import FINGERPRINT_BITS, Connection, Place

FIRST_CLIENT = 10 << 24 | 64 << 16
CLIENTS = "10.64.0.0/10"
_CLIENT_BITS = 22
_FIRST_PORT, _PORTS = 1024, 64_512
_DRAWN = 1 << 20

Numbers = NDArray[np.uint32]


@dataclass
class Tuples:
    """A service's connections, in ascending order of client and port."""

    client: Numbers
    port: Numbers
    service: str
    service_port: int

    def __post_init__(self) -> None:
        self._keys = _key(self.client, self.port)

    def find(self, client: Numbers, port: Numbers) -> NDArray[np.int64]:
        """Return the index of each pair of client and port in these tuples; -1 for pairs that are not among the
        tuples."""
        keys = _key(client, port)
        positions = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return np.where(self._keys[positions] == keys, positions, -1)

    def places(self, slots: int) -> tuple[Numbers, Numbers, Numbers]:
        """Return each connection's slots in the table, by the first and by the second hash function (way), and its
        fingerprint; ``slots``: number of slots per way."""
        slot_1, slot_2, fingerprint = _hashes(self.client, self.port, self.service, self.service_port)
        return slot_1 % slots, slot_2 % slots, fingerprint % (1 << FINGERPRINT_BITS)


def drawn(count: int, service: str, port: int, *, slots: int, corner: int, seed: int) -> Tuples:
    """Draw ``count`` connections at random; all have slots among the first `slots / corner` slots of each way."""
    source = np.random.default_rng(seed)
    drawn_keys = np.zeros(0, np.uint64)
    while drawn_keys.size < count:
        client = (FIRST_CLIENT | source.integers(0, 1 << _CLIENT_BITS, _DRAWN)).astype(np.uint32)
        ports = (_FIRST_PORT + source.integers(0, _PORTS, _DRAWN)).astype(np.uint32)
        for way in (0, 1) if corner > 1 else ():
            inside = _hashes(client, ports, service, port)[way] % slots < slots // corner
            client, ports = client[inside], ports[inside]
        drawn_keys = np.unique(np.concatenate((drawn_keys, _key(client, ports))))
    chosen = np.sort(source.choice(drawn_keys, count, replace=False))
    return Tuples((chosen >> 16).astype(np.uint32), (chosen & 0xFFFF).astype(np.uint32), service, port)


def _key(client: Numbers, port: Numbers) -> NDArray[np.uint64]:
    return client.astype(np.uint64) << np.uint64(16) | port.astype(np.uint64)


def _hashes(client: Numbers, port: Numbers, service: str, service_port: int) -> tuple[Numbers, Numbers, Numbers]:
    constant, parts = _contributions(service, service_port)
    octets = [*(client >> shift & 0xFF for shift in (24, 16, 8, 0)), port >> 8, port & 0xFF]
    hashes: list[Numbers] = []
    for number in range(3):
        value = np.full(client.size, constant[number], np.uint32)
        for table, octet in zip(parts[number], octets, strict=True):
            value ^= table[octet]
        hashes.append(value)
    return hashes[0], hashes[1], hashes[2]


@cache
def _contributions(service: str, port: int) -> tuple[list[int], list[NDArray[np.uint32]]]:
    """Return the three hashes of client 0.0.0.0, port 0. Also return the contribution of each octet of address and port
    to each hash, by the octet's position and value."""

    def hashed(client: int, client_port: int) -> list[int]:
        address = from_number(client, IPV4_BITS).packed
        hashes: Place = Connection(address, client_port, from_text(service).packed, port).place_in(1 << 32)
        # `place_in` has already removed the fingerprint's upper bits.
        return list(hashes)

    constant = hashed(0, 0)
    parts = np.zeros((3, 6, 256), np.uint32)
    for octet in range(256):
        for place in range(6):
            changed = hashed(octet << 8 * (3 - place), 0) if place < 4 else hashed(0, octet << 8 * (5 - place))
            parts[:, place, octet] = [value ^ base for value, base in zip(changed, constant, strict=True)]
    return constant, list(parts)
