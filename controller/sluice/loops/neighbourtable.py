"""The known next hops, and the times of ARP requests for them. Pure: the caller passes times in seconds."""

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
    """The ARP table. Configured next hops are asked for without end; others are dropped when they do not answer."""

    def __init__(self, refresh_s: float, retry_s: float, forget_after: int, capacity: int) -> None:
        self._refresh_s = refresh_s
        self._retry_s = retry_s
        self._forget_after = forget_after
        self._capacity = capacity
        self._entries: dict[Address, _Entry] = {}

    def configure(self, refresh_s: float, retry_s: float, forget_after: int) -> None:
        """Take over changed times."""
        self._refresh_s, self._retry_s, self._forget_after = refresh_s, retry_s, forget_after

    def want(self, addresses: Iterable[Address]) -> None:
        """Set the next hops that the configuration needs; former ones are treated as any other from now on."""
        wanted = set(addresses)
        for address, entry in self._entries.items():
            entry.wanted = address in wanted
        for address in wanted - set(self._entries):
            self._entries[address] = _Entry(wanted=True)

    def keep(self, possible: Callable[[Address, Neighbour], bool]) -> None:
        """Drop the places that are no longer possible; their addresses are asked for at once."""
        for address, entry in self._entries.items():
            if entry.neighbour is not None and not possible(address, entry.neighbour):
                entry.neighbour, entry.next_question, entry.unanswered = None, 0.0, 0

    def adopt(self, address: Address, neighbour: Neighbour) -> None:
        """Take over a neighbour that the switch has; it is asked for again at once."""
        entry = self._entries.setdefault(address, _Entry(wanted=False))
        entry.neighbour = entry.neighbour or neighbour

    def unresolved(self, address: Address, now: float) -> Neighbour | None:
        """Ask at once for a next hop that the switch does not know, but at most every ``retry_s`` (RFC 1122, section
        2.3.2.1). Returns its place if it is known here.
        """
        entry = self._entry(address)
        if entry is None:
            return None
        entry.next_question = min(entry.next_question, max(now, entry.last_question + self._retry_s))
        return entry.neighbour

    def learn(self, address: Address, neighbour: Neighbour, now: float, *, asks_us: bool = False) -> bool:
        """Take in the place of an ARP message's sender; returns whether it is new.

        An address that is neither known nor asked for is learned only from a request for one of the switch's addresses
        (RFC 826): the switch is about to answer it.
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
        """Return the addresses to ask for now, and schedule their next requests, which back off without an answer."""
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
        """Return when the next request is due; None without any."""
        return min((entry.next_question for entry in self._entries.values()), default=None)

    def forget(self) -> bool:
        """Drop addresses that are not configured and have not answered ``forget_after`` requests. Returns whether the
        place of any was known."""
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
        """Return the entry of an address, a new one where there is none; None when the table is full."""
        entry = self._entries.get(address)
        if entry is None and len(self._entries) < self._capacity:
            entry = self._entries[address] = _Entry(wanted=False)
        return entry

    @property
    def known(self) -> dict[Address, Neighbour]:
        """The places of resolved addresses."""
        return {address: e.neighbour for address, e in self._entries.items() if e.neighbour}

    @property
    def missing(self) -> Iterator[Address]:
        """Configured addresses that have not answered yet."""
        return (address for address, e in self._entries.items() if e.wanted and not e.neighbour)
