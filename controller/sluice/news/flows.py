"""Collects the flows of one interval from several readings of the switch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .errors import ObservationError
from .rates import FlowRates, flow_mask

FlowKeys = NDArray[np.uint64]
"""A key for each flow. Its low bits are the flow's fingerprint, which decides whether the flow is measured."""


class FlowCollector:
    """Collects each flow's last response rate. It misses a flow whose register cell another flow takes over between two
    readings."""

    def __init__(self) -> None:
        self._keys: list[FlowKeys] = []
        self._rates: list[FlowRates] = []
        self.share = 1.0
        """The least part of the flows that was measured at any time since the last call of ``take``."""

    def add(self, keys: FlowKeys, rates: FlowRates, share: float = 1.0) -> None:
        """Add the flows that had packets since the last reading, each with a key and a rate in bit/s. ``share`` is the
        part of all flows that was measured."""
        self._keys.append(keys)
        self._rates.append(rates)
        self.share = min(self.share, share)

    def take(self) -> tuple[FlowKeys, FlowRates]:
        """Return the keys and rates (bit/s) of the flows since the last call, without flows that were measured only for
        part of the time."""
        flows = sampled(*newest(self._keys, self._rates), self.share)
        self._keys, self._rates, self.share = [], [], 1.0
        return flows


def matched(keys: FlowKeys | None, rates: FlowRates) -> FlowKeys | None:
    """Return the keys. Raises ObservationError if there are keys, but not as many as rates."""
    if keys is not None and keys.size != rates.size:
        raise ObservationError(f"{keys.size} keys for {rates.size} flows: give one each")
    return keys


def sampled(keys: FlowKeys, rates: FlowRates, share: float) -> tuple[FlowKeys, FlowRates]:
    """Return only those flows that the switch would have measured if it had measured the part ``share`` of all flows.
    Readings in which the switch measured a larger part then have no more weight than the others."""
    mask = flow_mask(share)
    if mask == 0:
        return keys, rates
    chosen = (keys & np.uint64(mask)) == 0
    return keys[chosen], rates[chosen]


def newest(keys: Sequence[FlowKeys], rates: Sequence[FlowRates]) -> tuple[FlowKeys, FlowRates]:
    """Merge several readings in the order of time: return each flow once, with its last rate. O(n log n)."""
    if not keys:
        return np.zeros(0, np.uint64), np.zeros(0)
    # The newest reading comes first, because `unique` returns the first of equal keys.
    every = np.concatenate(keys[::-1])
    flows, first = np.unique(every, return_index=True)
    return flows, np.concatenate(rates[::-1])[first]
