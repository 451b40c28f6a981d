"""A connection's five fields, and the switch's hashes of them; each hash is a CRC-32 over a different order of the
fields."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from sluice.addresses import Packed
from sluice.names import CONNECTION_SLOTS, PROTOCOL_TCP

FINGERPRINT_BITS = 27


class _Orders:
    """The orders in which the switch hashes a connection's fields, for addresses of ``size`` bytes."""

    def __init__(self, size: int) -> None:
        address = f"{size}s"

        def order(fields: str) -> Struct:
            return Struct("!" + fields.replace("A", address))

        self.slot_1, self.slot_2, self.fingerprint = order("AAHHB"), order("HHBAA"), order("BHAHA")
        self.first, self.other, self.stable = order("HAHAB"), order("BAAHH"), order("AHAHB")
        self.rate = order("AHHAB")


_ORDERS = {size: _Orders(size) for size in (4, 16)}


class Place(NamedTuple):
    """A connection's slot in each way (hash table) of the connection table, and the connection's fingerprint."""

    slot_1: int
    slot_2: int
    fingerprint: int


class Connection(NamedTuple):
    """A connection's five fields; they are the same for packets of both directions."""

    client: Packed
    client_port: int
    service: Packed
    service_port: int
    protocol: int = PROTOCOL_TCP

    @property
    def place(self) -> Place:
        """The connection's slot in each way of the connection table, and its fingerprint."""
        return _place(*self)

    def place_in(self, slots: int) -> Place:
        """Return the place in a table with ``slots`` slots per way; builds of the program differ in size."""
        client, client_port, service, service_port, protocol = self
        orders = _ORDERS[len(client)]
        return Place(
            crc32(orders.slot_1.pack(client, service, client_port, service_port, protocol)) % slots,
            crc32(orders.slot_2.pack(service_port, client_port, protocol, service, client)) % slots,
            self.full_fingerprint % (1 << FINGERPRINT_BITS),
        )

    @property
    def full_fingerprint(self) -> int:
        """All 32 bits of the connection's fingerprint, as Tofino's keys contain it."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].fingerprint.pack(protocol, client_port, client, service_port, service))

    @property
    def draw(self) -> int:
        """The hash from which the selector `ratios` selects a server."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].first.pack(client_port, client, service_port, service, protocol))

    @property
    def other_draw(self) -> int:
        """The hash from which the selector `others_by_ratio` selects servers."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].other.pack(protocol, service, client, service_port, client_port))

    @property
    def stable_draw(self) -> int:
        """The hash from which the selector `capacities` selects a server."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].stable.pack(service, client_port, client, service_port, protocol))

    @property
    def rate_key(self) -> int:
        """The key of the connection's response in the rate registers: slot (low bits) and fingerprint."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].rate.pack(service, service_port, client_port, client, protocol))


@lru_cache(maxsize=1 << 15)
def _place(client: Packed, client_port: int, service: Packed, service_port: int, protocol: int) -> Place:
    return Connection(client, client_port, service, service_port, protocol).place_in(CONNECTION_SLOTS)
