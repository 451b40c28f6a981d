"""Requests per destination: converts the switch's cumulative counts to differences and rates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sluice.addresses import Packed
from sluice.balance.counts import CounterReset, wrap_safe


@dataclass(frozen=True, slots=True)
class Requests:
    """New-connection requests (SYNs) for one destination: cumulative, or the difference of two readings."""

    offered: int = 0
    """SYNs that arrived at the switch, retransmissions included."""
    admitted: int = 0
    """Connections that admission control admitted. A repeated SYN of an admitted connection counts only as offered."""
    refused: int = 0
    """SYNs that admission control refused."""
    returning: int = 0
    """Connections that were admitted because their client is remembered."""

    def since(self, earlier: Requests) -> Requests:
        """Return the requests counted after ``earlier``. Raises CounterReset when a count went backwards."""
        return Requests(*wrap_safe(self.cells, earlier.cells))

    @property
    def cells(self) -> tuple[int, int, int, int]:
        """All counts, in the order of the fields. As in balance.Counts.cells, dataclasses.astuple would be too slow."""
        return (self.offered, self.admitted, self.refused, self.returning)

    def __add__(self, other: Requests) -> Requests:
        return Requests(
            self.offered + other.offered,
            self.admitted + other.admitted,
            self.refused + other.refused,
            self.returning + other.returning,
        )

    @property
    def refused_share(self) -> float:
        """The part of the requests that was refused; 0 without requests."""
        return self.refused / max(1, self.admitted + self.refused)


def total(differences: Iterable[Requests]) -> Requests:
    """Return the sum of several differences."""
    return sum(differences, start=Requests())


@dataclass(frozen=True, slots=True)
class Interval:
    """The requests counted between two readings."""

    seconds: float
    requests: Mapping[Packed, Requests]
    """The requests by destination, without destinations that were read for the first time."""
    spans: Mapping[Packed, float] = field(default_factory=dict[Packed, float])
    """The seconds for which a destination was counted, for destinations that were not counted during the whole
    interval."""
    exempt: Collection[Packed] = ()
    """Destinations to which the common limit of all destinations does not apply."""

    @property
    def total(self) -> Requests:
        """The sum of the requests for all destinations."""
        return total(self.requests.values())

    @property
    def together(self) -> Requests:
        """The sum of the requests for all destinations to which the common limit applies."""
        return total(requests for destination, requests in self.requests.items() if destination not in self.exempt)

    def admitted_rate(self, destination: Packed | None) -> float | None:
        """Return the admitted connections per second of a destination; for None, of all destinations to which the
        common limit applies. Returns None if the destination was not counted."""
        if destination is None:
            return self.together.admitted / self.seconds
        requests = self.requests.get(destination)
        return None if requests is None else requests.admitted / self.spans.get(destination, self.seconds)


class RequestMeter:
    """Converts cumulative readings to intervals. A destination's first reading is only a base."""

    def __init__(self) -> None:
        self._readings: dict[Packed, tuple[float, Requests]] = {}
        self._time: float | None = None

    def rebase(self) -> None:
        """Use the next reading only as a base for later differences, since the switch's counters may have been
        reset."""
        self._readings.clear()
        self._time = None

    def keep(self, destinations: Collection[Packed]) -> None:
        """Forget all destinations except these: the switch no longer counts the others, and may later assign them other
        counters."""
        self._readings = {i: reading for i, reading in self._readings.items() if i in destinations}

    def read(self, time_s: float, cumulative: Mapping[Packed, Requests]) -> Interval | None:
        """Return the requests since the last reading; None for the first reading, and when a counter was reset.

        The length of an interval in which the switch restarted is unknown, and its rates would distort the averages.
        """
        earlier, self._time = self._time, time_s
        counted: dict[Packed, tuple[float, Requests]] = {}
        reset = False
        for destination, now in cumulative.items():
            try:
                difference = self.peek(time_s, destination, now)
            except CounterReset:
                reset = True
                continue
            if difference is not None:
                counted[destination] = difference
        self._readings = {i: (time_s, now) for i, now in cumulative.items()}
        if earlier is None or reset:
            return None
        requests = {i: requests for i, (_, requests) in counted.items()}
        seconds = time_s - earlier
        return Interval(seconds, requests, {i: span for i, (span, _) in counted.items() if span != seconds})

    def peek(self, time_s: float, destination: Packed, now: Requests) -> tuple[float, Requests] | None:
        """Return the seconds and a destination's requests since its last reading, which remains the base. A first
        reading becomes the base, and the result is None.

        Raises CounterReset when a counter went backwards.
        """
        base = self._readings.setdefault(destination, (time_s, now))
        if time_s <= base[0]:
            return None
        return time_s - base[0], now.since(base[1])
