"""The next hops, resolved or not, and the times of the ARP requests for them. Pure: the caller passes times in
seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from sluice.addresses import Address
from sluice.switch.state import Neighbour


@dataclass(slots=True)
class _Entry:
    wanted: bool
    neighbour: Neighbour | None = None
    next_question: float = 0.0
    last_question: float = -math.inf
    unanswered: int = 0


class NeighbourTable:
    """The ARP table: the place (port and MAC address) of each next hop, if it is known. Requests for configured next
    hops never cease; other next hops are dropped if they do not answer."""

    def __init__(self, refresh_s: float, retry_s: float, forget_after: int, capacity: int) -> None:
        self._refresh_s = refresh_s
        self._retry_s = retry_s
        self._forget_after = forget_after
        self._capacity = capacity
        self._entries: dict[Address, _Entry] = {}

    def configure(self, refresh_s: float, retry_s: float, forget_after: int) -> None:
        """Take over the parameters of the configuration after a reload."""
        self._refresh_s, self._retry_s, self._forget_after = refresh_s, retry_s, forget_after

    def want(self, addresses: Iterable[Address]) -> None:
        """Set the next hops that the configuration needs. Next hops that it no longer needs may be dropped from now on;
        those that have left the most requests unanswered are dropped at once if the table would exceed its capacity."""
        wanted = set(addresses)
        for address, entry in self._entries.items():
            entry.wanted = address in wanted
        others = sorted(self._entries.keys() - wanted, key=lambda address: self._entries[address].unanswered)
        for address in others[max(0, self._capacity - len(wanted)) :]:
            del self._entries[address]
        for address in wanted - self._entries.keys():
            self._entries[address] = _Entry(wanted=True)

    def keep(self, possible: Callable[[Address, Neighbour], bool]) -> None:
        """Drop the places that ``possible`` does not accept. ARP requests for their addresses are due at once."""
        for address, entry in self._entries.items():
            if entry.neighbour is not None and not possible(address, entry.neighbour):
                entry.neighbour, entry.next_question, entry.unanswered = None, 0.0, 0

    def adopt(self, address: Address, neighbour: Neighbour) -> None:
        """Add a neighbour that the switch has an entry for, unless the table is full. If the table did not contain its
        address, a request is due at once."""
        if (entry := self._entry(address)) is not None:
            entry.neighbour = entry.neighbour or neighbour

    def unresolved(self, address: Address, now: float) -> Neighbour | None:
        """Schedule a request for a next hop that the switch has no entry for. Returns the next hop's place; None if the
        place is unknown.

        The request is due at once, but at least ``retry_s`` after the previous one (RFC 1122, section 2.3.2.1).
        """
        entry = self._entry(address)
        if entry is None:
            return None
        entry.next_question = min(entry.next_question, max(now, entry.last_question + self._retry_s))
        return entry.neighbour

    def learn(self, address: Address, neighbour: Neighbour, now: float, *, asks_us: bool = False) -> bool:
        """Learn the place of an ARP message's sender. Returns whether the place is new.

        ``asks_us``: the message requests one of the switch's addresses, so the switch will send a reply to its sender.
        Only then is an address added that the table does not contain (RFC 826).
        """
        entry = self._entry(address) if asks_us else self._entries.get(address)
        if entry is None:
            return False
        entry.unanswered = 0
        entry.next_question = now + self._refresh_s
        changed = entry.neighbour != neighbour
        entry.neighbour = neighbour
        return changed

    def due(self, now: float) -> list[Address]:
        """Return the addresses to request now, and schedule their next requests. The interval doubles with each
        unanswered request, up to the lesser of ``refresh_s`` and 32 ``retry_s``."""
        due: list[Address] = []
        for address, entry in self._entries.items():
            if entry.next_question > now:
                continue
            due.append(address)
            patience = self._retry_s * 2 ** min(entry.unanswered, 5)
            entry.next_question = now + min(self._refresh_s, patience)
            entry.last_question = now
            entry.unanswered += 1
        return due

    def next_time(self) -> float | None:
        """Return the time at which the next ARP request is due; None if no request is scheduled."""
        return min((entry.next_question for entry in self._entries.values()), default=None)

    def forget(self) -> bool:
        """Drop addresses that are not configured and have left more than ``forget_after`` requests unanswered. Returns
        whether the place of any of them was known."""
        silent = [
            address
            for address, entry in self._entries.items()
            if not entry.wanted and entry.unanswered > self._forget_after
        ]
        known = any(self._entries[address].neighbour for address in silent)
        for address in silent:
            del self._entries[address]
        return known

    def _entry(self, address: Address) -> _Entry | None:
        """Return the entry of an address, and add one if the table has none; None if the table is full."""
        entry = self._entries.get(address)
        if entry is None and len(self._entries) < self._capacity:
            entry = self._entries[address] = _Entry(wanted=False)
        return entry

    @property
    def known(self) -> dict[Address, Neighbour]:
        """The places of resolved addresses, by address."""
        return {address: e.neighbour for address, e in self._entries.items() if e.neighbour}

    @property
    def missing(self) -> Iterator[Address]:
        """Configured addresses whose place is unknown."""
        return (address for address, e in self._entries.items() if e.wanted and not e.neighbour)
