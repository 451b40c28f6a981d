"""A queue of packets that wait until ARP resolves their next hop (RFC 1122, section 2.3.2.2).

Pure: the caller passes times in seconds. Any hashable key identifies a neighbour, so the queue does not depend on the
address family.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class NeighbourQueue(Generic[Key]):
    """Stores the newest packet to each neighbour for a bounded time. A full queue drops the oldest packet."""

    def __init__(self, capacity: int = 64, lifetime_s: float = 1.0) -> None:
        self._capacity = capacity
        self._lifetime_s = lifetime_s
        self._packets: dict[Key, tuple[float, bytes]] = {}
        """Each neighbour's packet with its time of arrival in seconds; the oldest first."""

    def __len__(self) -> int:
        return len(self._packets)

    def put(self, neighbour: Key, packet: bytes, now: float) -> None:
        """Store a packet, and drop an earlier one to the same neighbour."""
        self._packets.pop(neighbour, None)
        if len(self._packets) >= self._capacity:
            del self._packets[next(iter(self._packets))]
        self._packets[neighbour] = (now, packet)

    def take(self, neighbour: Key, now: float) -> bytes | None:
        """Remove and return the packet to a neighbour; None if there is none or it is older than the lifetime."""
        arrived, packet = self._packets.pop(neighbour, (now, None))
        return packet if now - arrived <= self._lifetime_s else None
