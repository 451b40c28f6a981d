"""Ids of neighbours: the numbers by which the switch's tables identify next hops of either address family. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

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
        self._reserved: frozenset[int] = frozenset()
        self._last = 0

    def assign(self, addresses: Collection[Address]) -> Mapping[Address, int]:
        """Return the ids of these addresses. Addresses with an id keep it, and all other addresses lose theirs.

        Raises OverflowError if there are more addresses than free ids.
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

    def adopt(self, ids: Mapping[Address, int], used: Collection[int]) -> None:
        """Take over the ids of a switch's neighbours, in place of other ids of the same addresses: another controller
        may have assigned them since this controller last wrote to the switch.

        ``used``: all ids in the switch's entries. No address that is not in ``ids`` gets one of them, because a route
        may lead there. Such an address keeps the id that it has, unless the switch uses that id.
        """
        before, self._ids, self._addresses = self._ids, {}, {}
        for address, number in ids.items():
            if number and number not in self._addresses:
                self._put(address, number)
        self._reserved = frozenset(used)
        for address, number in before.items():
            if address not in self._ids and number not in self._addresses and number not in self._reserved:
                self._put(address, number)

    def _put(self, address: Address, number: int) -> None:
        self._ids[address] = number
        self._addresses[number] = address

    def _next(self) -> int:
        for step in range(LARGEST):
            number = (self._last + step) % LARGEST + 1
            if number not in self._addresses and number not in self._reserved:
                self._last = number
                return number
        raise OverflowError(f"all {LARGEST} ids of neighbours are assigned")
