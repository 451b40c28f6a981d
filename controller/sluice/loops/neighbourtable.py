"""Which next hops are known, which are to be asked for and when. Pure: times come in as seconds."""

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
    """ARP's bookkeeping. Configured next hops are asked for for ever; others are forgotten when they stay away."""

    def __init__(self, refresh_s: float, retry_s: float, forget_after: int, capacity: int) -> None:
        self._refresh_s = refresh_s
        self._retry_s = retry_s
        self._forget_after = forget_after
        self._capacity = capacity
        self._entries: dict[Address, _Entry] = {}

    def configure(self, refresh_s: float, retry_s: float, forget_after: int) -> None:
        """Change the times."""
        self._refresh_s, self._retry_s, self._forget_after = refresh_s, retry_s, forget_after

    def want(self, addresses: Iterable[Address]) -> None:
        """The next hops that the configuration needs; those it no longer needs become like any other."""
        wanted = set(addresses)
        for address, entry in self._entries.items():
            entry.wanted = address in wanted
        for address in wanted - set(self._entries):
            self._entries[address] = _Entry(wanted=True)

    def keep(self, possible: Callable[[Address, Neighbour], bool]) -> None:
        """Forget where those are that cannot be there any more; they are asked for at once."""
        for address, entry in self._entries.items():
            if entry.neighbour is not None and not possible(address, entry.neighbour):
                entry.neighbour, entry.next_question, entry.unanswered = None, 0.0, 0

    def adopt(self, address: Address, neighbour: Neighbour) -> None:
        """Go on from what a running switch holds; it is asked for again at once."""
        entry = self._entries.setdefault(address, _Entry(wanted=False))
        entry.neighbour = entry.neighbour or neighbour

    def unresolved(self, address: Address, now: float) -> Neighbour | None:
        """The switch had a packet for a next hop it does not know; where that is, if it is known here.

        It is asked for at once, but not more often than every ``retry_s`` (RFC 1122, section 2.3.2.1).
        """
        entry = self._entry(address)
        if entry is None:
            return None
        entry.next_question = min(entry.next_question, max(now, entry.last_question + self._retry_s))
        return entry.neighbour

    def heard(self, address: Address, neighbour: Neighbour, now: float, *, asks_us: bool = False) -> bool:
        """Take an ARP's word on where its sender is; True when that is new.

        An address that is neither known nor asked for is learned only from a request for one of our addresses
        (RFC 826: the switch is about to answer its sender).
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
        """The addresses to ask for now; the next question is scheduled, backing off while no answer comes."""
        asked: list[Address] = []
        for address, entry in self._entries.items():
            if entry.next_question > now:
                continue
            asked.append(address)
            patience = self._retry_s * 2 ** min(entry.unanswered, 5)
            entry.next_question = now + min(self._refresh_s, patience)
            entry.last_question = now
            entry.unanswered += 1
        return asked

    def next_time(self) -> float | None:
        """When the next question is due; None when there is none."""
        return min((entry.next_question for entry in self._entries.values()), default=None)

    def forget(self) -> bool:
        """Drop those nobody configured that have not answered for long. True when a known one went."""
        gone = [
            address
            for address, entry in self._entries.items()
            if not entry.wanted and entry.unanswered > self._forget_after
        ]
        known = any(self._entries[address].neighbour for address in gone)
        for address in gone:
            del self._entries[address]
        return known

    def _entry(self, address: Address) -> _Entry | None:
        """The entry of an address, made anew where there is none; None when the table is full."""
        entry = self._entries.get(address)
        if entry is None and len(self._entries) < self._capacity:
            entry = self._entries[address] = _Entry(wanted=False)
        return entry

    @property
    def known(self) -> dict[Address, Neighbour]:
        """The resolved ones."""
        return {address: e.neighbour for address, e in self._entries.items() if e.neighbour}

    @property
    def missing(self) -> Iterator[Address]:
        """Configured ones that have not answered yet."""
        return (address for address, e in self._entries.items() if e.wanted and not e.neighbour)
