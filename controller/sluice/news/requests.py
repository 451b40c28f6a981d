"""Requests per destination: cumulative counts of the switch in, differences and rates out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sluice.addresses import Packed
from sluice.balance.counts import CounterReset, wrap_safe


@dataclass(frozen=True, slots=True)
class Requests:
    """New-connection requests (SYNs) towards one destination: cumulative, or the difference of two readings."""

    offered: int = 0
    """Arrived at the switch, retransmissions included."""
    admitted: int = 0
    """Connections that admission control let pass; a SYN that repeats one of their SYNs is offered only."""
    refused: int = 0
    """SYNs that admission control held back."""
    returning: int = 0
    """Of the admitted: those that passed because their client is remembered."""

    def since(self, earlier: Requests) -> Requests:
        """The requests counted after ``earlier``. Raises CounterReset when a count went backwards."""
        return Requests(*wrap_safe(self.cells, earlier.cells))

    @property
    def cells(self) -> tuple[int, int, int, int]:
        """All of them, in order (not by dataclasses.astuple, which copies deeply: as balance.Counts.cells)."""
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
        """Part of the requests that was refused; 0 without requests."""
        return self.refused / max(1, self.admitted + self.refused)


def total(parts: Iterable[Requests]) -> Requests:
    """The sum of several differences."""
    return sum(parts, start=Requests())


@dataclass(frozen=True, slots=True)
class Interval:
    """What was counted between two readings."""

    seconds: float
    requests: Mapping[Packed, Requests]
    """By destination; one that was read for the first time is not there."""
    spans: Mapping[Packed, float] = field(default_factory=dict[Packed, float])
    """Seconds that a destination was counted for, where it was not the whole interval."""
    apart: Collection[Packed] = ()
    """Destinations that the one limit for every destination does not hold back."""

    @property
    def total(self) -> Requests:
        """Over all destinations."""
        return total(self.requests.values())

    @property
    def together(self) -> Requests:
        """Over the destinations that one limit for every destination holds back."""
        return total(requests for destination, requests in self.requests.items() if destination not in self.apart)

    def admitted_rate(self, destination: Packed | None) -> float | None:
        """Admitted connections per second (of those that share one limit for None); None when it was not counted."""
        if destination is None:
            return self.together.admitted / self.seconds
        requests = self.requests.get(destination)
        return None if requests is None else requests.admitted / self.spans.get(destination, self.seconds)


class RequestMeter:
    """Turns cumulative readings into intervals. A destination's first reading is only a base."""

    def __init__(self) -> None:
        self._readings: dict[Packed, tuple[float, Requests]] = {}
        self._time: float | None = None

    def rebase(self) -> None:
        """The switch's counters may have been reset: the next reading is a new beginning."""
        self._readings.clear()
        self._time = None

    def keep(self, destinations: Collection[Packed]) -> None:
        """Others are counted no more: where one comes back, its counter may be another one."""
        self._readings = {i: reading for i, reading in self._readings.items() if i in destinations}

    def read(self, time_s: float, cumulative: Mapping[Packed, Requests]) -> Interval | None:
        """What was counted since the last reading; None for the first, and when a counter had been reset.

        An interval in which the switch restarted is of unknown length: its rates would teach a wrong average.
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
        whole = time_s - earlier
        return Interval(whole, requests, {i: span for i, (span, _) in counted.items() if span != whole})

    def peek(self, time_s: float, destination: Packed, now: Requests) -> tuple[float, Requests] | None:
        """Seconds and requests since the last reading, which stays the base; the first reading becomes one.

        Raises CounterReset when a counter went backwards.
        """
        base = self._readings.setdefault(destination, (time_s, now))
        if time_s <= base[0]:
            return None
        return time_s - base[0], now.since(base[1])
