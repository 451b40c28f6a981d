"""The measurement window, apart from the detection period (section 7.4 of Chen & Heidemann)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from sluice.addresses import Packed

from .flows import FlowKeys, newest
from .lasting import Portion, lasting
from .rates import FlowRates, fastest_count, fastest_mean
from .requests import Interval, Requests, total


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
    lasting: Portion | None = None
    """Of the newest interval's flows, those that the window saw before; None where they cannot be told apart."""


class MeasurementWindow:
    """The last few intervals.

    A flow that lives in several of them counts once, at its last rate, where flows can be told apart: counted in
    each, one fast bulk transfer would be a part of the fastest that shrinks as others come, and AR with it.
    """

    def __init__(self, intervals: int) -> None:
        self._ring: deque[tuple[FlowKeys | None, FlowRates, Interval, Requests]] = deque(maxlen=intervals)
        """With each interval's total, which is summed once."""

    def push(self, rates: FlowRates, interval: Interval, keys: FlowKeys | None = None) -> None:
        """Take in the newest interval; ``keys``, if any, are as many as the rates."""
        self._ring.append((keys, rates, interval, interval.total))

    def _rates(self) -> FlowRates:
        keys = [keys for keys, _, _, _ in self._ring if keys is not None]
        rates = [rates for _, rates, _, _ in self._ring]
        return newest(keys, rates)[1] if len(keys) == len(rates) else np.concatenate(rates)

    def _lasting(self) -> Portion | None:
        keys = [keys for keys, _, _, _ in self._ring if keys is not None]
        return lasting(keys[-1], np.concatenate(keys[:-1])) if 1 < len(keys) == len(self._ring) else None

    def resize(self, intervals: int) -> None:
        """Keep the newest ``intervals`` from now on."""
        self._ring = deque(self._ring, maxlen=intervals)

    def clear(self) -> None:
        """Forget everything measured."""
        self._ring.clear()

    def measure(self, share: float, min_requests: int, measured: float = 1.0) -> Measurement:
        """AR, of the fastest ``share``, and the request rates over the window.

        Without a single response AR is 0 once ``min_requests`` were admitted whose responses would have been
        measured, which is the part ``measured`` of all; and unknown below that.
        """
        rates = self._rates()
        seconds = self.seconds
        requests = total(whole for _, _, _, whole in self._ring)
        ar = fastest_mean(rates, share)
        if ar is None and requests.admitted * measured >= min_requests:
            ar = 0.0
        return Measurement(
            ar=ar,
            flows=int(rates.size),
            fastest=fastest_count(int(rates.size), share) if rates.size else 0,
            offered=requests.offered / seconds,
            admitted=requests.admitted / seconds,
            refused=requests.refused / seconds,
            lasting=self._lasting(),
        )

    @property
    def seconds(self) -> float:
        """The length of what is in the window."""
        return sum(interval.seconds for _, _, interval, _ in self._ring)

    def counted(self, destination: Packed) -> tuple[int, float]:
        """Requests offered to a destination, and the seconds in which they were counted; 0 s: nobody counts it."""
        of = [interval for _, _, interval, _ in self._ring if destination in interval.requests]
        return (
            sum(interval.requests[destination].offered for interval in of),
            sum(interval.spans.get(destination, interval.seconds) for interval in of),
        )
