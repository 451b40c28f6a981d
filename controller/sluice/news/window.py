"""The measurement window, apart from the detection period (section 7.4 of Chen & Heidemann)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluice.addresses import Packed

from .flows import FlowKeys, newest, sampled
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
    """The last few intervals.

    A flow that lives in several of them counts once, at its last rate, where flows can be told apart: counted in
    each, one fast bulk transfer would be a part of the fastest that shrinks as others come, and AR with it.
    """

    def __init__(self, intervals: int) -> None:
        self._ring: deque[_Part] = deque(maxlen=intervals)

    def push(self, rates: FlowRates, interval: Interval, keys: FlowKeys | None = None, share: float = 1.0) -> None:
        """Take in the newest interval, in which a part of the flows was measured; ``keys``, if any, are as many as the
        rates."""
        self._ring.append(_Part(keys, rates, share, interval, interval.total))

    def _flows(self) -> list[tuple[FlowKeys, FlowRates]] | None:
        """Of each interval, the flows that would be measured in all of them; None where they cannot be told apart."""
        least = min(part.share for part in self._ring)
        flows = [sampled(part.keys, part.rates, least) for part in self._ring if part.keys is not None]
        return flows if len(flows) == len(self._ring) else None

    def resize(self, intervals: int) -> None:
        """Keep the newest ``intervals`` from now on."""
        self._ring = deque(self._ring, maxlen=intervals)

    def clear(self) -> None:
        """Forget everything measured."""
        self._ring.clear()

    def measure(self, share: float, min_requests: int) -> Measurement:
        """AR, of the fastest ``share``, and the request rates over the window.

        Without a single response AR is 0 once ``min_requests`` were admitted whose responses would have been
        measured; and unknown below that.
        """
        flows = self._flows()
        if flows is None:
            rates = np.concatenate([part.rates for part in self._ring])
        else:
            rates = newest([keys for keys, _ in flows], [rates for _, rates in flows])[1]
        seconds = self.seconds
        requests = total(part.total for part in self._ring)
        ar = fastest_mean(rates, share)
        if ar is None and sum(part.total.admitted * part.share for part in self._ring) >= min_requests:
            ar = 0.0
        return Measurement(
            ar=ar,
            flows=int(rates.size),
            fastest=fastest_count(int(rates.size), share) if rates.size else 0,
            offered=requests.offered / seconds,
            admitted=requests.admitted / seconds,
            refused=requests.refused / seconds,
            lasting=None if flows is None else _lasting([keys for keys, _ in flows]),
        )

    @property
    def seconds(self) -> float:
        """The length of what is in the window."""
        return sum(part.interval.seconds for part in self._ring)

    def counted(self, destination: Packed) -> tuple[int, float]:
        """Requests offered to a destination, and the seconds in which they were counted; 0 s: nobody counts it."""
        of = [part.interval for part in self._ring if destination in part.interval.requests]
        return (
            sum(interval.requests[destination].offered for interval in of),
            sum(interval.spans.get(destination, interval.seconds) for interval in of),
        )


def _lasting(keys: Sequence[FlowKeys]) -> Portion | None:
    """Of the newest interval's flows, those of an earlier one."""
    return lasting(keys[-1], np.concatenate(keys[:-1])) if len(keys) > 1 else None
