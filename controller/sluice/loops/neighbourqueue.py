"""A queue of packets that wait for ARP to resolve their next hop (RFC 1122, section 2.3.2.2).

Pure: the caller passes times in seconds. Neighbours are any hashable keys, so the queue does not depend on the family
of addresses.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class NeighbourQueue(Generic[Key]):
    """The newest packet of each neighbour, for a bounded time. A full queue drops the oldest packet."""

    def __init__(self, capacity: int = 64, lifetime_s: float = 1.0) -> None:
        self._capacity = capacity
        self._lifetime_s = lifetime_s
        self._packets: dict[Key, tuple[float, bytes]] = {}
        """Each with its time of arrival in seconds; the oldest first."""

    def __len__(self) -> int:
        return len(self._packets)

    def put(self, neighbour: Key, packet: bytes, now: float) -> None:
        """Keep a packet, and drop the neighbour's last one."""
        self._packets.pop(neighbour, None)
        if len(self._packets) >= self._capacity:
            del self._packets[next(iter(self._packets))]
        self._packets[neighbour] = (now, packet)

    def take(self, neighbour: Key, now: float) -> bytes | None:
        """Remove and return the neighbour's packet; None without a packet, or when it is older than the lifetime."""
        arrived, packet = self._packets.pop(neighbour, (now, None))
        return packet if now - arrived <= self._lifetime_s else None
