"""A connection's five fields, and what the switch's hashes make of them: CRC-32, each over an order of its own."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from sluice.names import CONNECTION_SLOTS, PROTOCOL_TCP

FINGERPRINT_BITS = 27
_SLOT_1, _SLOT_2, _FINGERPRINT = Struct("!IIHHB"), Struct("!HHBII"), Struct("!BHIHI")
_FIRST, _OTHER, _STABLE, _RATE = Struct("!HIHIB"), Struct("!BIIHH"), Struct("!IHIHB"), Struct("!IHHIB")


class Place(NamedTuple):
    """Where the connection table keeps a connection, if it does."""

    slot_1: int
    slot_2: int
    fingerprint: int


class Connection(NamedTuple):
    """As both directions see it; addresses as numbers."""

    client: int
    client_port: int
    service: int
    service_port: int
    protocol: int = PROTOCOL_TCP

    @property
    def place(self) -> Place:
        """Its cell in each way of the connection table, and its fingerprint."""
        return _place(*self)

    @property
    def draw(self) -> int:
        """What the selector `ratios` draws by."""
        client, client_port, service, service_port, protocol = self
        return crc32(_FIRST.pack(client_port, client, service_port, service, protocol))

    @property
    def other_draw(self) -> int:
        """What the selector `others_by_ratio` draws by."""
        client, client_port, service, service_port, protocol = self
        return crc32(_OTHER.pack(protocol, service, client, service_port, client_port))

    @property
    def stable_draw(self) -> int:
        """What the selector `capacities` draws by."""
        client, client_port, service, service_port, protocol = self
        return crc32(_STABLE.pack(service, client_port, client, service_port, protocol))

    @property
    def rate_key(self) -> int:
        """Slot (low bits) and fingerprint of its response in the response rates."""
        client, client_port, service, service_port, protocol = self
        return crc32(_RATE.pack(service, service_port, client_port, client, protocol))


@lru_cache(maxsize=1 << 15)
def _place(client: int, client_port: int, service: int, service_port: int, protocol: int) -> Place:
    return Place(
        crc32(_SLOT_1.pack(client, service, client_port, service_port, protocol)) % CONNECTION_SLOTS,
        crc32(_SLOT_2.pack(service_port, client_port, protocol, service, client)) % CONNECTION_SLOTS,
        crc32(_FINGERPRINT.pack(protocol, client_port, client, service_port, service)) % (1 << FINGERPRINT_BITS),
    )
