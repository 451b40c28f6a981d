"""The measurement window, which is longer than the detection period (section 7.4 of Chen & Heidemann)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluice.addresses import Packed

from .flows import FlowKeys, newest, sampled
from .lasting import Portion, lasting
from .rates import FlowRates, fastest_count, fastest_mean
from .requests import Interval, Requests, total

FASTEST = 6
"""The least number of responses of which AR is to be the mean. If AR were the rate of only the fastest of ten
responses, it would be below half its average in a fifth of the windows (log-normal rates, deviation 1)."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurements over the measurement window."""

    ar: float | None
    """AR, the mean rate of the fastest responses, in bit/s; None without evidence."""
    flows: int
    fastest: int
    """The number of flows whose mean rate is AR."""
    offered: float
    """Requests per second, over all destinations."""
    admitted: float
    refused: float
    seconds: float = math.inf
    """Seconds for which the requests were counted."""
    lasting: Portion | None = None
    """The flows of the newest interval that also had packets in earlier intervals of the window. None if flows have no
    keys, or the window has only one interval."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The flows and requests of one interval."""

    keys: FlowKeys | None
    rates: FlowRates
    share: float
    """The part of the flows that was measured."""
    interval: Interval
    total: Requests
    """The sum of the interval's requests for all destinations, computed once."""


class MeasurementWindow:
    """The newest intervals. At a site with few requests the window contains more intervals than elsewhere.

    A few responses are no measurement of the fastest ones. So the number of intervals is doubled until the fastest part
    has FASTEST responses, until there were requests for as many responses, or until all stored intervals are used.

    If flows have keys, a flow of several intervals counts once, with its last rate. Without keys, a fast bulk transfer
    counts again in each interval. Its weight in AR is then larger, the fewer other flows there are, so AR depends on
    the number of flows.
    """

    def __init__(self, intervals: int, most: int = 0) -> None:
        """``intervals`` is the usual length of the window in intervals, ``most`` the largest length."""
        self._intervals = self._length = intervals
        self._ring: deque[_Part] = deque(maxlen=max(intervals, most))

    def push(self, rates: FlowRates, interval: Interval, keys: FlowKeys | None = None, share: float = 1.0) -> None:
        """Add the newest interval, in which the part ``share`` of the flows was measured. ``keys`` has one key per
        rate, or is None."""
        self._ring.append(_Part(keys, rates, share, interval, interval.total))

    def resize(self, intervals: int, most: int) -> None:
        """Change the usual and the largest length of the window, in intervals. The newest intervals stay."""
        self._intervals = self._length = intervals
        self._ring = deque(self._ring, maxlen=max(intervals, most))

    def clear(self) -> None:
        """Drop all intervals."""
        self._ring.clear()

    def measure(self, share: float, min_requests: int) -> Measurement:
        """Return AR of the fastest ``share`` of the flows, and the request rates over the window.

        Without any response, AR is 0 if at least ``min_requests`` requests were admitted whose responses would have
        been measured. With fewer such requests AR is unknown.
        """
        least = list(self._ring)[-self._intervals :]
        self._length = self._intervals
        rates = newest_rates = _flows(least)
        while max(rates.size, _measurable(self._parts)) * share < FASTEST and self._length < len(self._ring):
            self._length *= 2
            rates = _flows(self._parts)
        requests = total(entry.total for entry in self._parts)
        ar = fastest_mean(rates, share)
        if _measurable(least) >= min_requests and not newest_rates.size:
            ar = 0.0
        return Measurement(
            ar=ar,
            flows=int(rates.size),
            fastest=fastest_count(int(rates.size), share) if rates.size else 0,
            offered=requests.offered / self.seconds,
            admitted=requests.admitted / self.seconds,
            refused=requests.refused / self.seconds,
            seconds=self.seconds,
            lasting=_lasting(least),
        )

    @property
    def _parts(self) -> list[_Part]:
        return list(self._ring)[-self._length :]

    @property
    def seconds(self) -> float:
        """The length of the last measured window, in seconds."""
        return sum(entry.interval.seconds for entry in self._parts)

    @property
    def least_seconds(self) -> float:
        """The length of the usual window in seconds, without the intervals that are added when there are few
        requests."""
        return sum(entry.interval.seconds for entry in list(self._ring)[-self._intervals :])

    def counted(self, destination: Packed) -> tuple[int, float]:
        """Return the requests offered to a destination, and the seconds for which they were counted; 0 s if they were
        not counted."""
        of = [entry.interval for entry in self._parts if destination in entry.interval.requests]
        return (
            sum(interval.requests[destination].offered for interval in of),
            sum(interval.spans.get(destination, interval.seconds) for interval in of),
        )


def _measurable(parts: Sequence[_Part]) -> float:
    """Return the number of admitted requests whose responses would have been measured."""
    return sum(entry.total.admitted * entry.share for entry in parts)


def _flows(parts: Sequence[_Part]) -> FlowRates:
    """Return the last rate of each flow that would be measured in all of the intervals. If flows have no keys, return
    the rates of all flows of each interval."""
    keyed = _keyed(parts)
    if keyed is None:
        return np.concatenate([entry.rates for entry in parts])
    return newest([keys for keys, _ in keyed], [rates for _, rates in keyed])[1]


def _keyed(parts: Sequence[_Part]) -> list[tuple[FlowKeys, FlowRates]] | None:
    """Return the flows of each interval that would be measured in all of the intervals; None if flows have no keys."""
    least = min(entry.share for entry in parts)
    flows = [sampled(entry.keys, entry.rates, least) for entry in parts if entry.keys is not None]
    return flows if len(flows) == len(parts) else None


def _lasting(parts: Sequence[_Part]) -> Portion | None:
    """Return how many flows of the newest interval also had packets in earlier intervals; None if this is unknown."""
    keyed = _keyed(parts)
    if keyed is None or len(keyed) < 2:
        return None
    return lasting(keyed[-1][0], np.concatenate([keys for keys, _ in keyed[:-1]]))
