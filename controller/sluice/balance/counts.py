"""The counts of one server in the switch's ledger, and differences of two readings, between which counters may wrap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

CELL_BITS = 32
"""Width of a ledger cell in bits: its counter is cumulative and wraps at 2^32."""

_MODULUS = 1 << CELL_BITS
_IMPLAUSIBLE = _MODULUS >> 1


class CounterReset(Exception):
    """A cumulative counter increased by half its range or more, so it was reset, not incremented."""


def wrap_safe(now: tuple[int, ...], earlier: tuple[int, ...]) -> list[int]:
    """Return the increase of each cumulative 32-bit counter between two readings, even if the counter has wrapped in
    between.

    Raises CounterReset when a counter went backwards, as after a restart of the switch.
    """
    differences = [(a - b) % _MODULUS for a, b in zip(now, earlier, strict=True)]
    if max(differences) >= _IMPLAUSIBLE:
        raise CounterReset(f"from {earlier} to {now}")
    return differences


@dataclass(frozen=True, slots=True)
class Counts:
    """Packets of one server: cumulative when read from the switch, or the difference of two readings."""

    syn: int = 0
    """SYNs forwarded to the server, retransmissions included."""
    synack: int = 0
    """First SYN-ACKs of the server's connections."""
    synack_again: int = 0
    """Repeated SYN-ACKs, of connections that the server had already answered."""
    completed: int = 0
    """Handshakes completed by the client's ACK."""
    reset: int = 0
    """Resets sent by the server."""

    def since(self, earlier: Counts) -> Counts:
        """Return the packets counted after ``earlier``. Raises CounterReset when a counter went backwards."""
        return Counts(*wrap_safe(self.cells, earlier.cells))

    @property
    def cells(self) -> tuple[int, int, int, int, int]:
        """All counts, in the order of the fields. dataclasses.astuple copies deeply, which is too slow: a decision on
        1,000 servers adds thousands of counts."""
        return (self.syn, self.synack, self.synack_again, self.completed, self.reset)

    @property
    def distinct(self) -> Counts:
        """The counts without answered repetitions: one SYN less for each repeated SYN-ACK, down to the number of first
        SYN-ACKs.

        A client whose round trip is longer than its retransmission timer repeats its SYN, and the server answers each
        SYN. Such a repeated SYN is no sign of a slow server.
        """
        return Counts(
            syn=max(self.syn - self.synack_again, min(self.syn, self.synack)),
            synack=self.synack,
            completed=self.completed,
            reset=self.reset,
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.syn + other.syn,
            self.synack + other.synack,
            self.synack_again + other.synack_again,
            self.completed + other.completed,
            self.reset + other.reset,
        )

    def __sub__(self, other: Counts) -> Counts:
        """Return this sum without ``other``, one of its summands. For the difference of two readings of the switch use
        ``since``."""
        return Counts(
            self.syn - other.syn,
            self.synack - other.synack,
            self.synack_again - other.synack_again,
            self.completed - other.completed,
            self.reset - other.reset,
        )


def total(differences: Iterable[Counts]) -> Counts:
    """Return the sum of several differences."""
    columns = zip(*(counts.cells for counts in differences), strict=True)
    return Counts(*map(sum, columns))
