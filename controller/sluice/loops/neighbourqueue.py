"""Packets whose next hop has no MAC address yet, until ARP has found it (RFC 1122, section 2.3.2.2).

Pure: times come in as seconds. Neighbours are named by any hashable key, so that nothing here depends on the family of
their addresses.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class NeighbourQueue(Generic[Key]):
    """The newest packet of each neighbour, for a bounded time; the oldest packets make room for new ones."""

    def __init__(self, capacity: int = 64, lifetime_s: float = 1.0) -> None:
        self._capacity = capacity
        self._lifetime_s = lifetime_s
        self._packets: dict[Key, tuple[float, bytes]] = {}
        """With the time of arrival, oldest first."""

    def __len__(self) -> int:
        return len(self._packets)

    def put(self, neighbour: Key, packet: bytes, now: float) -> None:
        """Keep a packet in place of the neighbour's last one."""
        self._packets.pop(neighbour, None)
        if len(self._packets) >= self._capacity:
            del self._packets[next(iter(self._packets))]
        self._packets[neighbour] = (now, packet)

    def take(self, neighbour: Key, now: float) -> bytes | None:
        """Remove and return the neighbour's packet; None without one, or when it is older than the lifetime."""
        arrived, packet = self._packets.pop(neighbour, (now, None))
        return packet if now - arrived <= self._lifetime_s else None
