"""A connection's five fields, and what the switch's hashes make of them: CRC-32, each over an order of its own."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from sluice.addresses import Packed
from sluice.names import CONNECTION_SLOTS, PROTOCOL_TCP

FINGERPRINT_BITS = 27


class _Orders:
    """The orders of a connection's fields that the switch hashes, with addresses of so many bytes."""

    def __init__(self, size: int) -> None:
        address = f"{size}s"

        def order(fields: str) -> Struct:
            return Struct("!" + fields.replace("A", address))

        self.slot_1, self.slot_2, self.fingerprint = order("AAHHB"), order("HHBAA"), order("BHAHA")
        self.first, self.other, self.stable = order("HAHAB"), order("BAAHH"), order("AHAHB")
        self.rate = order("AHHAB")


_ORDERS = {size: _Orders(size) for size in (4, 16)}


class Place(NamedTuple):
    """Where the connection table keeps a connection, if it does."""

    slot_1: int
    slot_2: int
    fingerprint: int


class Connection(NamedTuple):
    """As both directions see it."""

    client: Packed
    client_port: int
    service: Packed
    service_port: int
    protocol: int = PROTOCOL_TCP

    @property
    def place(self) -> Place:
        """Its cell in each way of the connection table, and its fingerprint."""
        return _place(*self)

    def place_in(self, slots: int) -> Place:
        """The same in a table of so many slots a way: builds of other sizes differ."""
        client, client_port, service, service_port, protocol = self
        orders = _ORDERS[len(client)]
        return Place(
            crc32(orders.slot_1.pack(client, service, client_port, service_port, protocol)) % slots,
            crc32(orders.slot_2.pack(service_port, client_port, protocol, service, client)) % slots,
            self.whole_fingerprint % (1 << FINGERPRINT_BITS),
        )

    @property
    def whole_fingerprint(self) -> int:
        """All 32 bits of its fingerprint, which Tofino's keys hold."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].fingerprint.pack(protocol, client_port, client, service_port, service))

    @property
    def draw(self) -> int:
        """What the selector `ratios` draws by."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].first.pack(client_port, client, service_port, service, protocol))

    @property
    def other_draw(self) -> int:
        """What the selector `others_by_ratio` draws by."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].other.pack(protocol, service, client, service_port, client_port))

    @property
    def stable_draw(self) -> int:
        """What the selector `capacities` draws by."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].stable.pack(service, client_port, client, service_port, protocol))

    @property
    def rate_key(self) -> int:
        """Slot (low bits) and fingerprint of its response in the response rates."""
        client, client_port, service, service_port, protocol = self
        return crc32(_ORDERS[len(client)].rate.pack(service, service_port, client_port, client, protocol))


@lru_cache(maxsize=1 << 15)
def _place(client: Packed, client_port: int, service: Packed, service_port: int, protocol: int) -> Place:
    return Connection(client, client_port, service, service_port, protocol).place_in(CONNECTION_SLOTS)
