"""Which destinations have which numbers in the switch. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sluice.addresses import Address

SHARED = 1
"""The number of the destinations that share one limit."""


class DestinationTable:
    """Numbers 1 to ``capacity`` - 1. An address keeps its number as long as it is wanted."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._numbers: dict[Address, int] = {}

    @property
    def numbers(self) -> Mapping[Address, int]:
        """The present numbers by address."""
        return self._numbers

    def adopt(self, found: Mapping[Address, int]) -> None:
        """Go on with the numbers that a switch already uses."""
        self._numbers = dict(found)

    def want(
        self, addresses: Iterable[Address], *, shared: bool, apart: Collection[Address] = ()
    ) -> Collection[Address]:
        """Number these and forget the others; what there is no room for comes back, the last of them first to go.

        With ``shared`` all have one number, except those ``apart``.
        """
        wanted = list(dict.fromkeys(addresses))
        common = [address for address in wanted if shared and address not in apart]
        kept = dict.fromkeys(common, SHARED)
        taken = set(kept.values())
        for address in wanted:
            number = None if address in kept else self._numbers.get(address)
            # Numbers that were shared are told apart again: the first keeps it.
            if number is not None and number not in taken:
                kept[address] = number
                taken.add(number)
        free = iter(sorted(set(range(1, self._capacity)) - taken))
        fresh = [address for address in wanted if address not in kept]
        kept.update(zip(fresh, free, strict=False))
        self._numbers = kept
        return [address for address in fresh if address not in kept]
