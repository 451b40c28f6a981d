"""The measurement window, apart from the detection period (section 7.4 of Chen & Heidemann)."""

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
"""Responses. With one, AR is half its average in a fifth of the windows (log-normal rates, deviation 1)."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What the window holds: the base of every decision."""

    ar: float | None
    """AR, bit/s; None when there is no evidence."""
    flows: int
    fastest: int
    """Flows that AR is the mean of."""
    offered: float
    """Requests per second, over all destinations."""
    admitted: float
    refused: float
    seconds: float = math.inf
    """That the requests were counted for."""
    lasting: Portion | None = None
    """Of the newest interval's flows, those that the window saw before; None where they cannot be told apart."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One interval."""

    keys: FlowKeys | None
    rates: FlowRates
    share: float
    """Of the flows that was measured."""
    interval: Interval
    total: Requests
    """Of the interval, summed once."""


class MeasurementWindow:
    """The last few intervals; of a site with few requests, more of them.

    A handful of responses is no measure of the fastest: the window has twice as many intervals, and again, until it
    holds so many that FASTEST of them are the fastest part, or requests for as many.

    A flow that lives in several of them counts once, at its last rate, where flows can be told apart: counted in
    each, one fast bulk transfer would be a part of the fastest that shrinks as others come, and AR with it.
    """

    def __init__(self, intervals: int, most: int = 0) -> None:
        """So many intervals, and the most that a window has."""
        self._intervals = self._length = intervals
        self._ring: deque[_Part] = deque(maxlen=max(intervals, most))

    def push(self, rates: FlowRates, interval: Interval, keys: FlowKeys | None = None, share: float = 1.0) -> None:
        """Take in the newest interval, in which a part of the flows was measured; ``keys``, if any, are as many as the
        rates."""
        self._ring.append(_Part(keys, rates, share, interval, interval.total))

    def resize(self, intervals: int, most: int) -> None:
        """Keep the newest from now on; see __init__."""
        self._intervals = self._length = intervals
        self._ring = deque(self._ring, maxlen=max(intervals, most))

    def clear(self) -> None:
        """Forget everything measured."""
        self._ring.clear()

    def measure(self, share: float, min_requests: int) -> Measurement:
        """AR, of the fastest ``share``, and the request rates over the window.

        Without a single response AR is 0 once ``min_requests`` were admitted whose responses would have been
        measured; and unknown below that.
        """
        least = list(self._ring)[-self._intervals :]
        self._length = self._intervals
        rates = newest_rates = _flows(least)
        while max(rates.size, _measurable(self._parts)) * share < FASTEST and self._length < len(self._ring):
            self._length *= 2
            rates = _flows(self._parts)
        requests = total(part.total for part in self._parts)
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
        """The length of the window, as last measured."""
        return sum(part.interval.seconds for part in self._parts)

    @property
    def least_seconds(self) -> float:
        """The length of the last few intervals, however few requests there are."""
        return sum(part.interval.seconds for part in list(self._ring)[-self._intervals :])

    def counted(self, destination: Packed) -> tuple[int, float]:
        """Requests offered to a destination, and the seconds in which they were counted; 0 s: nobody counts it."""
        of = [part.interval for part in self._parts if destination in part.interval.requests]
        return (
            sum(interval.requests[destination].offered for interval in of),
            sum(interval.spans.get(destination, interval.seconds) for interval in of),
        )


def _measurable(parts: Sequence[_Part]) -> float:
    """Admitted requests whose responses would have been measured."""
    return sum(part.total.admitted * part.share for part in parts)


def _flows(parts: Sequence[_Part]) -> FlowRates:
    """Of each flow its last rate, of those that would be measured in all of the intervals; where flows cannot be told
    apart, of each interval its flows'."""
    keyed = _keyed(parts)
    if keyed is None:
        return np.concatenate([part.rates for part in parts])
    return newest([keys for keys, _ in keyed], [rates for _, rates in keyed])[1]


def _keyed(parts: Sequence[_Part]) -> list[tuple[FlowKeys, FlowRates]] | None:
    """Of each interval, the flows that would be measured in all of them; None where they cannot be told apart."""
    least = min(part.share for part in parts)
    flows = [sampled(part.keys, part.rates, least) for part in parts if part.keys is not None]
    return flows if len(flows) == len(parts) else None


def _lasting(parts: Sequence[_Part]) -> Portion | None:
    """Of the newest interval's flows, those of an earlier one."""
    keyed = _keyed(parts)
    if keyed is None or len(keyed) < 2:
        return None
    return lasting(keyed[-1][0], np.concatenate([keys for keys, _ in keyed[:-1]]))
