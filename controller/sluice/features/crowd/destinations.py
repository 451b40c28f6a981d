"""Assigns numbers to the destinations that the switch counts or limits. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sluice.addresses import Address

SHARED = 1
"""The number that all destinations with a common limit have."""


class DestinationTable:
    """Assigns the numbers 1 to ``capacity`` - 1. An address retains its number as long as it is wanted."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._numbers: dict[Address, int] = {}

    @property
    def numbers(self) -> Mapping[Address, int]:
        """The assigned numbers, by address."""
        return self._numbers

    def adopt(self, numbers: Mapping[Address, int]) -> None:
        """Take over the numbers that a switch already uses."""
        self._numbers = dict(numbers)

    def want(
        self, addresses: Iterable[Address], *, shared: bool, separate: Collection[Address] = ()
    ) -> Collection[Address]:
        """Number these addresses and drop all others. If there are too few numbers, the last addresses get none; these
        are returned.

        With ``shared``, all addresses except those in ``separate`` have one common number.
        """
        wanted = list(dict.fromkeys(addresses))
        common = [address for address in wanted if shared and address not in separate]
        numbers = dict.fromkeys(common, SHARED)
        taken = set(numbers.values())
        for address in wanted:
            number = None if address in numbers else self._numbers.get(address)
            # Of several addresses that had a common number until now, the first retains the number.
            if number is not None and number not in taken:
                numbers[address] = number
                taken.add(number)
        free = iter(sorted(set(range(1, self._capacity)) - taken))
        fresh = [address for address in wanted if address not in numbers]
        numbers.update(zip(fresh, free, strict=False))
        self._numbers = numbers
        return [address for address in fresh if address not in numbers]
