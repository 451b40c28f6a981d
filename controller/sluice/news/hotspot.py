"""The hot-spot table, which finds the destination of the crowd by sampled packets (section 4.4 of Chen & Heidemann)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sluice.addresses import Packed, number


@dataclass(slots=True)
class Entry:
    """The table's entry for a destination."""

    destination: Packed
    hits: int
    last_s: float
    """Time of the last hit (sampled packet to the destination), in seconds."""


class HotSpotTable:
    """A hash table of N entries with h(x) = x mod N.

    The paper does not define some cases. Here a destination that is in the table is counted in its slot, even if a
    conflict put it there; taking "the next available entry" each time would split its count. The next available entry
    is the first free one after x mod N, cyclically. In a full table the entry with the fewest hits is replaced by a new
    entry with one hit. Among entries with equally few hits this is the one idle longest, then the one in the lowest
    slot. If several destinations have the most hits, the hot spot is the present hot spot if it is among them,
    otherwise the lowest address.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a hot-spot table has at least one entry, not {size}")
        self._slots: list[Entry | None] = [None] * size
        self._where: dict[Packed, int] = {}
        self.hits = 0
        """Number of samples counted since the table was last cleared."""

    @property
    def size(self) -> int:
        """The number of entries, N."""
        return len(self._slots)

    def __len__(self) -> int:
        return len(self._where)

    def entries(self) -> list[tuple[int, Entry]]:
        """Return the occupied slots with their entries."""
        return [(slot, entry) for slot, entry in enumerate(self._slots) if entry is not None]

    def add(self, time_s: float, destinations: Iterable[Packed]) -> None:
        """Count sampled packets by their destinations, in the order of arrival."""
        for destination in destinations:
            self.hits += 1
            slot = self._where.get(destination)
            entry = None if slot is None else self._slots[slot]
            if entry is not None:
                entry.hits += 1
                entry.last_s = time_s
                continue
            slot = self._free(destination)
            if slot is None:
                slot = self._least()
            self._put(slot, Entry(destination, 1, time_s))

    def expire(self, time_s: float, idle_s: float) -> None:
        """Drop the entries that have had no hit for more than ``idle_s`` seconds."""
        for slot, entry in self.entries():
            if time_s - entry.last_s > idle_s:
                self._slots[slot] = None
                del self._where[entry.destination]

    def clear(self) -> None:
        """Drop all entries."""
        self._slots = [None] * len(self._slots)
        self._where.clear()
        self.hits = 0

    def hottest(
        self, incumbent: Packed | None = None, eligible: Callable[[Packed], bool] = lambda _: True
    ) -> Packed | None:
        """Return the first destination of ``ranked`` that is eligible, that is, the one with the most hits; None if no
        destination is eligible."""
        return next(filter(eligible, self.ranked(incumbent)), None)

    def ranked(self, incumbent: Packed | None = None) -> list[Packed]:
        """Return the destinations in descending order of hits. Among equals, the ``incumbent`` (the present hot spot)
        is first, then the lowest address."""
        ranked = sorted((-entry.hits, entry.destination != incumbent, entry.destination) for _, entry in self.entries())
        return [destination for _, _, destination in ranked]

    def _free(self, destination: Packed) -> int | None:
        size = len(self._slots)
        if len(self._where) == size:
            return None
        first = number(destination)
        return next(slot for i in range(size) if self._slots[slot := (first + i) % size] is None)

    def _least(self) -> int:
        return min(self.entries(), key=lambda e: (e[1].hits, e[1].last_s, e[0]))[0]

    def _put(self, slot: int, entry: Entry) -> None:
        old = self._slots[slot]
        if old is not None:
            del self._where[old.destination]
        self._slots[slot] = entry
        self._where[entry.destination] = slot
