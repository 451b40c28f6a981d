"""Ids of neighbours: the numbers by which the switch's tables identify next hops of either address family. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sluice.addresses import Address

LARGEST = 0xFFFF
"""The largest id. 0 means "none"."""


class NeighbourIds:
    """Assigns an id to each address.

    A freed id is assigned again as late as possible: while the switch's entries are being replaced, a route may still
    lead to a freed id, and the packets of that route must not reach another neighbour.
    """

    def __init__(self) -> None:
        self._ids: dict[Address, int] = {}
        self._addresses: dict[int, Address] = {}
        self._last = 0

    def assign(self, addresses: Collection[Address]) -> Mapping[Address, int]:
        """Return the ids of these addresses. Addresses with an id keep it, and all other addresses lose theirs.

        Raises OverflowError for more than LARGEST addresses.
        """
        for address in self._ids.keys() - addresses:
            del self._addresses[self._ids.pop(address)]
        for address in addresses:
            if address not in self._ids:
                self._put(address, self._next())
        return dict(self._ids)

    def address(self, number: int) -> Address | None:
        """Return the address with an id; None if no address has the id."""
        return self._addresses.get(number)

    def adopt(self, ids: Mapping[Address, int], used: Iterable[int]) -> None:
        """Take over the ids of a switch's neighbours, except where an id or an address is assigned already.

        ``used``: all ids in the switch's entries. They are assigned to other addresses as late as possible.
        """
        self._last = max((self._last, *used))
        for address, number in ids.items():
            if address not in self._ids and number not in self._addresses:
                self._put(address, number)

    def _put(self, address: Address, number: int) -> None:
        self._ids[address] = number
        self._addresses[number] = address

    def _next(self) -> int:
        for step in range(LARGEST):
            number = (self._last + step) % LARGEST + 1
            if number not in self._addresses:
                self._last = number
                return number
        raise OverflowError(f"all {LARGEST} ids of neighbours are assigned")
