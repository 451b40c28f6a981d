"""The flows of one interval, put together from several readings of the switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import ObservationError
from .rates import FlowRates, flow_mask

FlowKeys = NDArray[np.uint64]
"""A key for each flow. The low bits are the flow's fingerprint, by which the flows to be measured are drawn."""


class FlowCollector:
    """Each flow's last response rate. A flow whose cell another flow takes over between two readings is missing."""

    def __init__(self) -> None:
        self._keys: list[FlowKeys] = []
        self._rates: list[FlowRates] = []
        self.share = 1.0
        """The least part of the flows that was measured since the last call of ``take``."""

    def add(self, keys: FlowKeys, rates: FlowRates, share: float = 1.0) -> None:
        """Take in the flows that had packets since the last reading, each with a key and a rate in bit/s; ``share`` is
        the part of all flows that was measured."""
        self._keys.append(keys)
        self._rates.append(rates)
        self.share = min(self.share, share)

    def take(self) -> tuple[FlowKeys, FlowRates]:
        """Return the keys and rates (bit/s) of the flows since the last call, limited to the part that was measured
        throughout."""
        flows = sampled(*newest(self._keys, self._rates), self.share)
        self._keys, self._rates, self.share = [], [], 1.0
        return flows


def matched(keys: FlowKeys | None, rates: FlowRates) -> FlowKeys | None:
    """Return the keys. Raises ObservationError unless there are as many as rates, or none are given."""
    if keys is not None and keys.size != rates.size:
        raise ObservationError(f"{keys.size} keys for {rates.size} flows: give one each")
    return keys


def sampled(keys: FlowKeys, rates: FlowRates, share: float) -> tuple[FlowKeys, FlowRates]:
    """Return the flows that are measured at a ``share`` of all, so that a time when more were measured counts no more
    than others."""
    mask = flow_mask(share)
    if mask == 0:
        return keys, rates
    chosen = (keys & np.uint64(mask)) == 0
    return keys[chosen], rates[chosen]


def newest(keys: Sequence[FlowKeys], rates: Sequence[FlowRates]) -> tuple[FlowKeys, FlowRates]:
    """Return each flow once, with its last rate, from several readings in the order of time; O(n log n)."""
    if not keys:
        return np.zeros(0, np.uint64), np.zeros(0)
    # The newest reading comes first, because `unique` returns the first of equal keys.
    every = np.concatenate(keys[::-1])
    flows, first = np.unique(every, return_index=True)
    return flows, np.concatenate(rates[::-1])[first]
